/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/fd.h"
#include "tests/lib/check.h"

static void test_a_sealed_copy_cannot_be_changed(void **state)
{
        scoped(fd_closep) int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        scoped(fd_closep) int copy = -EBADF, again = -EBADF;
        char path[64], byte = 0;
        void *map;

        (void) state;
        check_i64_eq(memfd_sealed_copy(self, "copy", &copy), 0);
        check_true(memfd_is_sealed(copy));
        check_false(memfd_is_sealed(self));
        check_i64_eq(lseek(copy, 0, SEEK_END), lseek(self, 0, SEEK_END));
        check_i64_eq(pwrite(copy, &byte, 1, 0), -1);
        check_i64_eq(ftruncate(copy, 0), -1);
        check_i64_eq(ftruncate(copy, 1 << 30), -1);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
        again = open(path, O_WRONLY | O_CLOEXEC);
        check_true(again < 0 || pwrite(again, &byte, 1, 0) < 0);
        map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
        check_true(map == MAP_FAILED);
}

static void test_what_is_no_file(void **state)
{
        int copy = -EBADF;

        (void) state;
        check_i64_eq(memfd_sealed_copy(-EBADF, "copy", &copy), -EBADF);
        check_false(memfd_is_sealed(-EBADF));
        check_i64_eq(copy, -EBADF);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_sealed_copy_cannot_be_changed),
                cmocka_unit_test(test_what_is_no_file),
        };

        return cmocka_run_group_tests_name("memfd", tests, NULL, NULL);
}
