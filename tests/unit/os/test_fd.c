/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>

#include "tests/lib/apart.h"

/* They stand in each other's places, and one is far away; the others go. */
static int kept(void *data)
{
        int proc = open("/proc", O_PATH | O_CLOEXEC), sys = open("/sys", O_PATH | O_CLOEXEC);
        int a = fcntl(proc, F_DUPFD_CLOEXEC, 400), b = fcntl(sys, F_DUPFD_CLOEXEC, 400);
        int far = fcntl(a, F_DUPFD_CLOEXEC, 500), other = fcntl(a, F_DUPFD_CLOEXEC, 600);
        char path[64], target[64] = "";

        (void) data;
        apart_check(a >= 400 && b >= 400 && far >= 500);
        apart_check(dup2(b, 3) == 3 && dup2(a, 4) == 4);
        a = 4;
        b = 3;
        apart_check(fd_keep_only((int *const[]){ &a, &far, &b }, 3) == 0);
        apart_check(a == 3 && far == 4 && b == 5);
        for (int fd = 0; fd < 700; fd++)
                apart_check((fcntl(fd, F_GETFD) >= 0) == (fd < 6));
        apart_check(fcntl(other, F_GETFD) < 0);
        for (int fd = 3; fd < 6; fd++) {
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                memset(target, 0, sizeof(target));
                apart_check(readlink(path, target, sizeof(target) - 1) > 0);
                apart_check(strcmp(target, fd == 5 ? "/sys" : "/proc") == 0);
                apart_check(fcntl(fd, F_GETFD) == FD_CLOEXEC);
        }
        return 0;
}

static int one_is_none(void *data)
{
        int a = -EBADF;

        (void) data;
        apart_check(fd_keep_only((int *const[]){ &a }, 1) == -EBADF);
        return 0;
}

static void test_keep_only(void **state)
{
        (void) state;
        apart_run(kept, NULL, 0);
        apart_run(one_is_none, NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keep_only),
        };

        return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
