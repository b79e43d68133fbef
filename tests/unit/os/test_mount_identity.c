/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount_identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

/* /proc is a mount point on every host, and there is no link on the way. */
static struct mount_identity identity_at(const char *path)
{
        scoped(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC);
        struct mount_identity m;

        check_true(fd >= 0);
        check_i64_eq(mount_identity_of(fd, &m), 0);
        return m;
}

static int check(const struct mount_identity *m, const char *path)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, KiB);
        mount_identity_write(&b, m, str_from(path));
        return mount_identity_check(buf_str(&b));
}

static void what_is_mounted_is_known_again(void **state)
{
        struct mount_identity proc = identity_at("/proc"), other = proc;

        check_i64_eq(check(&proc, "/proc"), 0);
        other.ino++;
        check_i64_eq(check(&other, "/proc"), -ESTALE);
        other = proc;
        other.dev++;
        check_i64_eq(check(&other, "/proc"), -ESTALE);
        check_i64_eq(check(&proc, "/proc/sys"), -ESTALE);
        check_i64_eq(check(&proc, "/proc/nothing/such"), -ENOENT);
}

/* Each of these leads to the right file, and says nothing about what was mounted there. */
static void a_way_there_is_not_enough(void **state)
{
        char dir[64], link[96], inner[96];
        struct mount_identity m, proc = identity_at("/proc");

        (void) snprintf(dir, sizeof(dir), "%s/identityXXXXXX", check_tmp());
        check_true(mkdtemp(dir) != NULL);
        (void) snprintf(link, sizeof(link), "%s/link", dir);
        (void) snprintf(inner, sizeof(inner), "%s/link/sys/..", dir);
        check_i64_eq(symlink("/proc", link), 0);
        m = identity_at(dir);
        check_i64_eq(check(&m, dir), -ENOTUNIQ);
        check_i64_eq(check(&proc, link), -ELOOP);
        check_i64_eq(check(&proc, inner), -ELOOP);
        check_i64_eq(check(&proc, "/proc/self/root/proc"), -ELOOP);
        check_i64_eq(unlink(link), 0);
        check_i64_eq(rmdir(dir), 0);
}

static void malformed_text_is_refused(void **state)
{
        static const struct {
                const char *name, *text;
        } cases[] = {
                { "empty", "" },
                { "a number", "1" },
                { "no path", "1:2" },
                { "an empty path", "1:2:" },
                { "a relative path", "1:2:proc" },
                { "no device", ":2:/proc" },
                { "no inode", "1::/proc" },
                { "a negative number", "-1:2:/proc" },
                { "too large a number", "99999999999999999999:2:/proc" },
                { "words", "a:b:/proc" },
        };
        char long_path[8192];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(mount_identity_check(str_from(cases[i].text)), -EINVAL);
        }
        memset(long_path, '/', sizeof(long_path));
        memcpy(long_path, "1:2:", 4);
        check_i64_eq(mount_identity_check(str_of(long_path, sizeof(long_path))), -EINVAL);
        check_i64_eq(mount_identity_check(str_of("1:2:/a\0b", 8)), -EINVAL);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_mounted_is_known_again),
                cmocka_unit_test(a_way_there_is_not_enough),
                cmocka_unit_test(malformed_text_is_refused),
        };

        return cmocka_run_group_tests_name("mount_identity", tests, NULL, NULL);
}
