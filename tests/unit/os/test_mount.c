/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "os/userns.h"
#include "tests/lib/apart.h"
#include "tests/lib/fake_root.h"

#define FIRST 7000000U

static int put(int dir, const char *name, const char *text)
{
        scoped(fd_closep) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text) ? 0 : -errno;
}

static bool holds(int dir, const char *name, const char *text)
{
        scoped(fd_closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
        char is[64] = "";

        return fd >= 0 && read(fd, is, sizeof(is) - 1) >= 0 && strcmp(is, text) == 0;
}

static int make_tmpfs(unsigned attrs)
{
        const struct mount_option options[] = { { "size", "1m" }, { "mode", "0755" } };
        int fd = -EBADF;
        int r = mount_new_fs(&(struct mount_fs_spec){ "tmpfs", "sandbox", options, 2, attrs }, &fd);

        return r < 0 ? r : fd;
}

/* --- making and attaching --- */

static int made_and_attached(void *data)
{
        const char *at = data;
        scoped(fd_closep) int fd = make_tmpfs(MOUNT_SAFE), place = -EBADF;
        struct statvfs st;

        apart_check(fd >= 0);
        apart_check(put(fd, "file", "hello") == 0);
        place = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
        apart_check(place >= 0);
        apart_check(faccessat(place, "file", F_OK, 0) < 0 && errno == ENOENT);
        apart_check(mount_attach(fd, place) == 0);
        apart_check(chdir(at) == 0);
        apart_check(holds(AT_FDCWD, "file", "hello"));
        apart_check(fstatvfs(fd, &st) == 0);
        apart_check((st.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC))
                    == (ST_NOSUID | ST_NODEV | ST_NOEXEC));
        apart_check(st.f_blocks * st.f_frsize == MiB);
        apart_check(mount_set_attrs(fd, MOUNT_READONLY, false) == 0);
        apart_check(put(AT_FDCWD, "other", "") == -EROFS);
        return 0;
}

static void test_a_new_file_system(void **state)
{
        struct fake_root t;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        fake_root_open(&t);
        apart_run(made_and_attached, t.root, CLONE_NEWNS);
        fake_root_close(&t); /* fails if the mount is seen out here */
}

static void test_bad_options(void **state)
{
        const struct mount_option bad[] = { { "nonsense", "1" } };
        int fd = -EBADF;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        check_i64_eq(mount_new_fs(&(struct mount_fs_spec){ .type = "nofs" }, &fd), -ENODEV);
        check_i64_eq(mount_new_fs(&(struct mount_fs_spec){ "tmpfs", NULL, bad, 1, 0 }, &fd),
                     -EINVAL);
        check_i64_eq(fd, -EBADF);
}

/* --- views and owners --- */

static int owners_are_translated(void *data)
{
        const struct userns_range range = { FIRST, 65536 };
        scoped(fd_closep) int userns = -EBADF, view = -EBADF;
        struct stat st;
        int place;

        apart_check(userns_make(&range, &userns) == 0);
        apart_check(mount_clone(AT_FDCWD, data, false, &view) == 0);
        apart_check(mount_idmap(view, userns) == 0);
        apart_check(fstatat(view, "a", &st, 0) == 0);
        apart_check(st.st_uid == FIRST && st.st_gid == FIRST);
        apart_check(lstat(fake_root_path(data, "/a"), &st) == 0);
        apart_check(st.st_uid == 0);
        apart_check(mount_set_attrs(view, MOUNT_READONLY, true) == 0);
        apart_check(put(view, "b", "") == -EROFS);

        /* What is attached can't be changed any more. */
        place = open(data, O_PATH | O_CLOEXEC);
        apart_check(mount_attach(view, place) == 0);
        apart_check(mount_idmap(view, userns) < 0);
        return 0;
}

static void test_owners_are_translated(void **state)
{
        struct fake_root t;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        fake_root_open(&t);
        fake_root_put(&t, "/a", "");
        apart_run(owners_are_translated, t.root, CLONE_NEWNS);
        fake_root_close(&t);
}

static int links_are_not_followed(void *data)
{
        scoped(fd_closep) int root = open(data, O_PATH | O_CLOEXEC), view = -EBADF;
        struct stat st;

        apart_check(symlinkat("/etc", root, "link") == 0);
        apart_check(mount_clone(root, "link", false, &view) == 0);
        apart_check(fstat(view, &st) == 0);
        apart_check(S_ISLNK(st.st_mode));
        return 0;
}

static void test_links_are_not_followed(void **state)
{
        struct fake_root t;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        fake_root_open(&t);
        apart_run(links_are_not_followed, t.root, CLONE_NEWNS);
        fake_root_close(&t);
}

/* --- layers --- */

struct layers_case {
        const char *name;
        size_t lowers;
        bool detached; /* the lowers are views that were not attached */
};

static const struct layers_case layers_cases[] = {
        { "two", 2, false },
        { "two, detached", 2, true },
        { "more than one text holds", 40, true },
        { "the most", MOUNT_LOWERS_MAX, false },
};

struct layers_world {
        struct fake_root *root;
        const struct layers_case *c;
        bool unsupported;
};

/* lowers/N/<N> and lowers/N/top; upper, work. */
static void make_layers(const struct fake_root *t, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char name[64];

                (void) snprintf(name, sizeof(name), "/%zu/%zu", i, i);
                fake_root_put(t, name, "");
                (void) snprintf(name, sizeof(name), "/%zu/top", i);
                (void) snprintf(name + 32, sizeof(name) - 32, "%zu", i);
                fake_root_put(t, name, name + 32);
        }
        fake_root_put(t, "/upper/x", "");
        fake_root_put(t, "/scratch/x", "");
        check_i64_eq(unlink(fake_root_path(t, "/scratch/x")), 0);
}

static bool mounts_show(const char *text)
{
        static char mounts[65536];
        scoped(fd_closep) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        ssize_t got;

        while ((got = read(fd, mounts + n, sizeof(mounts) - 1 - n)) > 0)
                n += (size_t) got;
        mounts[n] = '\0';
        return strstr(mounts, text) != NULL;
}

static int open_lowers(const struct layers_world *w, int *lowers)
{
        for (size_t i = 0; i < w->c->lowers; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "/%zu", i);
                lowers[i] = -EBADF;
                if (w->c->detached)
                        apart_check(mount_clone(AT_FDCWD, fake_root_path(w->root, name), false,
                                                &lowers[i])
                                    == 0);
                else
                        lowers[i] = open(fake_root_path(w->root, name), O_PATH | O_CLOEXEC);
                apart_check(lowers[i] >= 0);
        }
        return 0;
}

static int layers_are_one(void *data)
{
        const struct layers_world *w = data;
        struct mount_overlay_spec l = { .n_lowers = w->c->lowers };
        int lowers[MOUNT_LOWERS_MAX], fd = -EBADF, place, r;

        if (open_lowers(w, lowers) != 0)
                return 1;
        l.lowers = lowers;
        l.upper = open(fake_root_path(w->root, "/upper"), O_PATH | O_CLOEXEC);
        l.work = open(fake_root_path(w->root, "/scratch"), O_PATH | O_CLOEXEC);
        r = mount_overlay(&l, &fd);
        if (r == -EINVAL && w->c->detached)
                return 77;
        errno = -r;
        apart_check(r == 0);
        for (size_t i = 0; i < w->c->lowers; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "%zu", i);
                apart_check(faccessat(fd, name, F_OK, 0) == 0);
        }
        apart_check(holds(fd, "top", "0"));
        apart_check(put(fd, "new", "new") == 0);
        apart_check(access(fake_root_path(w->root, "/upper/new"), F_OK) == 0);
        place = open("/mnt", O_PATH | O_CLOEXEC);
        apart_check(mount_attach(fd, place) == 0);
        apart_check(mounts_show("/proc/self/fd/"));
        apart_check(!mounts_show(w->root->root));
        return 0;
}

static void test_layers_are_one_tree(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        for (size_t i = 0; i < ARRAY_SIZE(layers_cases); i++) {
                struct fake_root t;
                struct layers_world w = { &t, &layers_cases[i], false };
                int status;

                check_case(w.c->name);
                fake_root_open(&t);
                make_layers(&t, w.c->lowers);
                status = apart_status(layers_are_one, &w, CLONE_NEWNS);
                fake_root_close(&t);
                if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                        print_message("# kernel before 6.15: no detached lowers\n");
                else if (status != 0)
                        fail_msg("%s (%#x)", apart_note_, (unsigned) status);
        }
}

static void test_number_of_layers(void **state)
{
        struct mount_overlay_spec none = { .upper = -EBADF, .work = -EBADF };
        struct mount_overlay_spec many = none;
        int fd;

        (void) state;
        many.n_lowers = MOUNT_LOWERS_MAX + 1;
        check_i64_eq(mount_overlay(&none, &fd), -EINVAL);
        check_i64_eq(mount_overlay(&many, &fd), -EINVAL);
}

/* --- a new root --- */

static int root_is_exchanged(void *data)
{
        scoped(fd_closep) int fd = make_tmpfs(0), place = -EBADF;
        struct statfs st;

        apart_check(fd >= 0);
        apart_check(put(fd, "only", "this") == 0);
        place = open(data, O_PATH | O_CLOEXEC);
        apart_check(mount_attach(fd, place) == 0);
        apart_check(mount_pivot_root(fd) == 0);
        apart_check(holds(AT_FDCWD, "/only", "this"));
        apart_check(holds(AT_FDCWD, "only", "this"));
        apart_check(access("/proc", F_OK) < 0 && errno == ENOENT);
        apart_check(chdir("..") == 0);
        apart_check(statfs(".", &st) == 0);
        apart_check(st.f_type == TMPFS_MAGIC);
        return 0;
}

/* How a process that may use chroot escapes from one: with a root below the working directory. */
static int climb(void)
{
        if (mkdir("deep", 0755) < 0 || chroot("deep") < 0)
                return -errno;
        for (int i = 0; i < 4; i++)
                if (chdir("..") < 0)
                        return -errno;
        return chroot(".") < 0 ? -errno : 0;
}

static int attach_to(int fd, const char *path)
{
        scoped(fd_closep) int place = open(path, O_PATH | O_CLOEXEC);

        return mount_attach(fd, place);
}

static int root_is_covered(void *data)
{
        scoped(fd_closep) int bottom = make_tmpfs(0), stage = make_tmpfs(0), fd = make_tmpfs(0);

        apart_check(put(fd, "only", "this") == 0);
        apart_check(mkdirat(bottom, "stage", 0755) == 0 && mkdirat(stage, "root", 0755) == 0);
        apart_check(attach_to(bottom, data) == 0);
        apart_check(mount_pivot_root(bottom) == 0);
        apart_check(attach_to(stage, "/stage") == 0);
        apart_check(attach_to(fd, "/stage/root") == 0);
        apart_check(fchdir(stage) == 0 && chroot(".") == 0);
        apart_check(mount_over_root(fd, bottom, stage) == 0);
        apart_check(holds(AT_FDCWD, "/only", "this") && holds(AT_FDCWD, "only", "this"));
        apart_check(climb() == 0);
        apart_check(holds(AT_FDCWD, "/only", "this"));
        apart_check(access("/stage", F_OK) < 0 && errno == ENOENT);
        /* A process whose root is not that of its mount namespace cannot create user namespaces. */
        apart_check(unshare(CLONE_NEWUSER) == 0);
        return 0;
}

static void test_a_covered_root(void **state)
{
        struct fake_root t;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        fake_root_open(&t);
        apart_run(root_is_covered, t.root, CLONE_NEWNS);
        fake_root_close(&t);
}

static void test_a_new_root(void **state)
{
        struct fake_root t;

        (void) state;
        if (!apart_possible())
                skip_because("mounting needs root");
        fake_root_open(&t);
        apart_run(root_is_exchanged, t.root, CLONE_NEWNS);
        fake_root_close(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_file_system),
                cmocka_unit_test(test_bad_options),
                cmocka_unit_test(test_owners_are_translated),
                cmocka_unit_test(test_links_are_not_followed),
                cmocka_unit_test(test_layers_are_one_tree),
                cmocka_unit_test(test_number_of_layers),
                cmocka_unit_test(test_a_new_root),
                cmocka_unit_test(test_a_covered_root),
        };

        return cmocka_run_group_tests_name("mount", tests, NULL, NULL);
}
