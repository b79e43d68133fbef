/* SPDX-License-Identifier: Apache-2.0 */
#include "os/in_root.h"

#include <fcntl.h>
#include <linux/magic.h>

#include "tests/lib/fake_root.h"

/* A tree with everything an image can do to paths:
 *
 *         dir/file  abs -> /dir  up -> ../../../../..  out -> /../../etc  self -> self
 *         magic -> /proc/self/root  plain (a file)  dir/back -> ..
 */
static int open_tree_of_links(struct fake_root *t)
{
        static const char *const links[][2] = {
                { "/dir", "/abs" },  { "../../../../..", "/up" },     { "/../../etc", "/out" },
                { "self", "/self" }, { "/proc/self/root", "/magic" }, { "..", "/dir/back" },
        };
        int fd;

        fake_root_open(t);
        fake_root_put(t, "/dir/file", "inner");
        fake_root_put(t, "/plain", "");
        fake_root_put(t, "/etc/passwd", "ours");
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                check_i64_eq(symlink(links[i][0], fake_root_path(t, links[i][1])), 0);
        fd = open(t->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_true(fd >= 0);
        return fd;
}

static const struct {
        const char *path;
        bool no_symlinks;
        int r;
        const char *content; /* of what is found */
} opens[] = {
        { "dir/file", false, 0, "inner" },
        { "/dir/file", false, 0, "inner" },
        { "dir/file", true, 0, "inner" },
        { "abs/file", false, 0, "inner" },
        { "abs/file", true, -ELOOP, NULL },
        { "../../dir/file", false, 0, "inner" },
        { "up/dir/file", false, 0, "inner" },
        { "out/passwd", false, 0, "ours" },
        { "dir/back/etc/passwd", false, 0, "ours" },
        { "self", false, -ELOOP, NULL },
        { "magic/etc/passwd", false, -ENOENT, NULL }, /* there is no /proc in here */
        { "nothing", false, -ENOENT, NULL },
        { "plain/x", false, -ENOTDIR, NULL },
};

static void test_no_path_leads_out(void **state)
{
        scoped(fd_closep) int root = -EBADF;
        struct fake_root t;

        (void) state;
        root = open_tree_of_links(&t);
        for (size_t i = 0; i < ARRAY_SIZE(opens); i++) {
                const struct in_root_how how = { O_RDONLY, 0, opens[i].no_symlinks };
                scoped(fd_closep) int fd = -EBADF;
                char text[32] = "";

                check_case(opens[i].path);
                check_i64_eq(in_root_open(root, opens[i].path, &how, &fd), opens[i].r);
                if (opens[i].r < 0)
                        continue;
                check_true(read(fd, text, sizeof(text) - 1) > 0);
                check_z_eq(text, opens[i].content);
        }
        fake_root_close(&t);
}

static void test_links_of_proc_are_not_followed(void **state)
{
        scoped(fd_closep) int proc = open("/proc", O_PATH | O_CLOEXEC);
        int fd = -EBADF;

        (void) state;
        check_i64_eq(in_root_open(proc, "self/root/etc/passwd", &(struct in_root_how){ 0 }, &fd),
                     -ELOOP);
        check_i64_eq(in_root_open(proc, "self/fd/0", &(struct in_root_how){ .flags = O_PATH }, &fd),
                     -ELOOP);
}

static const struct {
        const char *path;
        int r;
} dirs[] = {
        { "dir", 0 },
        { "/dir", 0 },
        { "dir/new/deeper/", 0 },
        { "dir//./new", 0 },
        { "/", 0 },
        { "abs", -ELOOP },
        { "abs/x", -ELOOP },
        { "up", -ELOOP },
        { "plain", -ENOTDIR },
        { "plain/x", -ENOTDIR },
        { "dir/..", -EINVAL },
        { "self", -ELOOP },
};

static void test_directories_are_made_without_links(void **state)
{
        scoped(fd_closep) int root = -EBADF;
        struct fake_root t;

        (void) state;
        root = open_tree_of_links(&t);
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                scoped(fd_closep) int fd = -EBADF;
                struct stat is, should;

                check_case(dirs[i].path);
                check_i64_eq(in_root_mkdirs(root, dirs[i].path, geteuid(), &fd), dirs[i].r);
                if (dirs[i].r < 0)
                        continue;
                check_i64_eq(fstat(fd, &is), 0);
                check_i64_eq(stat(fake_root_path(&t, "/"), &should), 0);
                check_u64_eq(is.st_dev, should.st_dev);
                check_true(S_ISDIR(is.st_mode));
        }
        check_i64_eq(access(fake_root_path(&t, "/dir/new/deeper"), F_OK), 0);
        fake_root_close(&t);
}

static void test_directories_have_an_owner(void **state)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        struct fake_root t;
        struct stat st;

        (void) state;
        if (geteuid() != 0)
                skip_because("only root can change the owner of directories");
        root = open_tree_of_links(&t);
        check_i64_eq(in_root_mkdirs(root, "dir/a/b", 4711, &fd), 0);
        check_i64_eq(fstat(fd, &st), 0);
        check_u64_eq(st.st_uid, 4711);
        check_u64_eq(st.st_gid, 4711);
        check_i64_eq(stat(fake_root_path(&t, "/dir/a"), &st), 0);
        check_u64_eq(st.st_uid, 4711);
        check_i64_eq(stat(fake_root_path(&t, "/dir"), &st), 0); /* was there */
        check_u64_eq(st.st_uid, 0);
        fake_root_close(&t);
}

static void test_names_that_are_too_long(void **state)
{
        scoped(fd_closep) int root = open("/tmp", O_PATH | O_CLOEXEC);
        char name[NAME_MAX + 2];
        int fd = -EBADF;

        (void) state;
        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        check_i64_eq(in_root_mkdirs(root, name, 0, &fd), -ENAMETOOLONG);
}

static void test_the_file_system_is_checked(void **state)
{
        scoped(fd_closep) int proc = open("/proc", O_PATH | O_CLOEXEC);
        scoped(fd_closep) int tmp = open("/tmp", O_PATH | O_CLOEXEC);

        (void) state;
        check_i64_eq(in_root_check_fs(proc, PROC_SUPER_MAGIC), 0);
        check_i64_eq(in_root_check_fs(tmp, PROC_SUPER_MAGIC), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_path_leads_out),
                cmocka_unit_test(test_links_of_proc_are_not_followed),
                cmocka_unit_test(test_directories_are_made_without_links),
                cmocka_unit_test(test_directories_have_an_owner),
                cmocka_unit_test(test_names_that_are_too_long),
                cmocka_unit_test(test_the_file_system_is_checked),
        };

        return cmocka_run_group_tests_name("in_root", tests, NULL, NULL);
}
