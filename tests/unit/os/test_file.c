/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

static char dir[64];
static struct ids ids;

static const char *in_dir(const char *name)
{
        static char paths[4][512];
        static size_t next;
        char *p = paths[next++ % ARRAY_SIZE(paths)];

        (void) snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
        return p;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void) st;
        (void) flag;
        (void) ftw;
        return remove(path);
}

static int setup(void **state)
{
        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) umask(022);
        ids_init(&ids);
        (void) snprintf(dir, sizeof(dir), "%s/fileXXXXXX", check_tmp());
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
        (void) state;
        return nftw(dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text, mode_t mode)
{
        scoped(fd_closep) int fd =
                open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        check_true(fd >= 0);
        check_i64_eq(write(fd, text, strlen(text)), strlen(text));
        check_i64_eq(fchmod(fd, mode), 0);
}

static bool is(const char *name, const char *text)
{
        scoped(fd_closep) int fd = open(in_dir(name), O_RDONLY | O_CLOEXEC);
        char got[256];
        ssize_t n = fd >= 0 ? read(fd, got, sizeof(got)) : -1;

        return n >= 0 && str_eq(str_of(got, (size_t) n), str_from(text));
}

static mode_t mode_of(const char *name)
{
        struct stat st;

        check_i64_eq(lstat(in_dir(name), &st), 0);
        return st.st_mode & 07777;
}

static size_t entries(void)
{
        DIR *d = opendir(dir);
        size_t n = 0;

        check_true(d != NULL);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n - 2;
}

/* --- reading --- */

static void only_regular_files_are_opened(void **state)
{
        struct sockaddr_un sun = { .sun_family = AF_UNIX };
        int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -EBADF;

        check_i64_eq(mkfifo(in_dir("fifo"), 0600), 0);
        (void) snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/sock", dir);
        check_i64_eq(bind(sock, (struct sockaddr *) &sun, sizeof(sun)), 0);
        put("plain", "x", 0644);
        check_i64_eq(symlink("plain", in_dir("link")), 0);
        check_i64_eq(symlink("fifo", in_dir("fifolink")), 0);
        check_i64_eq(symlink("loop", in_dir("loop")), 0);
        {
                const struct {
                        const char *path;
                        int r;
                } cases[] = {
                        { in_dir("fifo"), -EINVAL },
                        { in_dir("sock"), -EINVAL },
                        { "/dev/zero", -EINVAL },
                        { "/dev/tty", -EINVAL },
                        { dir, -EISDIR },
                        { "/no/such", -ENOENT },
                };

                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        check_case(cases[i].path);
                        check_i64_eq(file_open_read(cases[i].path, NULL, &fd), cases[i].r);
                }
        }
        check_i64_eq(file_open_read(in_dir("fifolink"), NULL, &fd), -EINVAL);
        check_i64_eq(file_open_read(in_dir("loop"), NULL, &fd), -ELOOP);
        check_i64_eq(file_open_read(in_dir("plain/x"), NULL, &fd), -ENOTDIR);
        check_i64_eq(file_open_read(in_dir("link"), NULL, &fd), 0);
        (void) fd_close(fd);
        (void) fd_close(sock);
}

static void sizes_of_proc_are_untold(void **state)
{
        struct stat st;
        int fd;

        put("empty", "", 0644);
        check_i64_eq(file_open_read(in_dir("empty"), &st, &fd), 0);
        check_false(file_size_is_unknown(fd, &st));
        (void) fd_close(fd);
        check_i64_eq(file_open_read("/proc/self/status", &st, &fd), 0);
        check_true(file_size_is_unknown(fd, &st));
        (void) fd_close(fd);
}

/* --- directories --- */

static void directories_are_made_with_their_parents(void **state)
{
        struct file_attrs attrs = FILE_ATTRS_KEEP;
        bool made;
        int fd;

        attrs.mode = 0700;
        check_i64_eq(file_mkdirs(in_dir("a/b/c"), 0777, &attrs, &made, &fd), 0);
        check_true(made);
        check_i64_eq(mode_of("a"), 0755);
        check_i64_eq(mode_of("a/b/c"), 0700);
        (void) fd_close(fd);
        attrs.mode = 0711;
        check_i64_eq(file_mkdirs(in_dir("a/b/c"), 0777, &attrs, &made, NULL), 0);
        check_false(made);
        check_i64_eq(mode_of("a/b/c"), 0700);
        check_i64_eq(file_mkdirs(in_dir("a/./x/../y//"), 0777, &attrs, &made, NULL), 0);
        check_true(made);
        check_i64_eq(mode_of("a/y"), 0711);
        check_i64_eq(file_mkdirs(in_dir("a/z/."), 0777, &attrs, &made, NULL), 0);
        check_true(made);
        check_i64_eq(mode_of("a/z"), 0711);
        check_i64_eq(file_mkdirs("/", 0777, &attrs, &made, NULL), 0);
        check_false(made);
}

static void what_is_in_the_way_of_directories_is_reported(void **state)
{
        static char deep[PATH_MAX];

        put("file", "x", 0644);
        check_i64_eq(symlink("nowhere", in_dir("dangling")), 0);
        check_i64_eq(symlink("made", in_dir("link")), 0);
        check_i64_eq(mkdir(in_dir("made"), 0755), 0);
        check_i64_eq(file_mkdirs(in_dir("file"), 0777, &FILE_ATTRS_KEEP, NULL, NULL), -ENOTDIR);
        check_i64_eq(file_mkdirs(in_dir("file/x"), 0777, &FILE_ATTRS_KEEP, NULL, NULL), -ENOTDIR);
        check_i64_eq(file_mkdirs(in_dir("dangling/x"), 0777, &FILE_ATTRS_KEEP, NULL, NULL),
                     -ENOENT);
        check_i64_eq(file_mkdirs(in_dir("link/x"), 0777, &FILE_ATTRS_KEEP, NULL, NULL), 0);
        check_i64_eq(mode_of("made/x"), 0755);
        memset(deep, 'x', 300);
        deep[0] = '/';
        check_i64_eq(file_mkdirs(deep, 0777, &FILE_ATTRS_KEEP, NULL, NULL), -ENAMETOOLONG);
}

/* --- moving --- */

static void a_move_replaces_nothing(void **state)
{
        put("a", "A", 0644);
        put("b", "B", 0644);
        check_i64_eq(file_move(in_dir("a"), in_dir("b")), -EEXIST);
        check_true(is("a", "A") && is("b", "B"));
        check_i64_eq(file_move(in_dir("a"), in_dir("c")), 0);
        check_true(is("c", "A"));
        check_i64_eq(file_move(in_dir("a"), in_dir("d")), -ENOENT);
        check_i64_eq(mkdir(in_dir("dir"), 0755), 0);
        check_i64_eq(file_move(in_dir("dir"), in_dir("dir/in")), -EINVAL);
        check_i64_eq(symlink("nowhere", in_dir("dangling")), 0);
        check_i64_eq(file_move(in_dir("c"), in_dir("dangling")), -EEXIST);
}

/* --- writing --- */

static int write_all(const char *name, const char *text, const struct file_attrs *attrs)
{
        struct atomic_file f;
        int r = atomic_file_open(&f, in_dir(name), &ids);

        if (r == 0)
                r = atomic_file_write(&f, text, strlen(text));
        if (r == 0)
                r = atomic_file_commit(&f, attrs);
        if (r == 0)
                r = atomic_file_sync_dir(&f);
        atomic_file_discard(&f);
        return r;
}

static void a_file_appears_or_is_replaced_at_once(void **state)
{
        struct file_attrs attrs = FILE_ATTRS_KEEP;
        struct atomic_file f;

        check_i64_eq(write_all("new", "1", &attrs), 0);
        check_true(is("new", "1"));
        check_i64_eq(mode_of("new"), 0755);
        put("old", "old", 0640);
        check_i64_eq(atomic_file_open(&f, in_dir("old"), &ids), 0);
        check_true(f.exists);
        check_i64_eq(atomic_file_write(&f, "new", 3), 0);
        check_true(is("old", "old"));
        check_i64_eq(atomic_file_commit(&f, &attrs), 0);
        atomic_file_discard(&f);
        check_true(is("old", "new"));
        check_i64_eq(mode_of("old"), 0640);
        attrs.mode = 04711;
        check_i64_eq(write_all("old", "newer", &attrs), 0);
        check_i64_eq(mode_of("old"), 04711);
        check_u64_eq(entries(), 2);
}

/* Both began when there was none; the second says nothing of a mode. */
static void of_two_new_files_the_later_keeps_what_the_earlier_got(void **state)
{
        struct file_attrs attrs = FILE_ATTRS_KEEP;
        struct atomic_file one, two;

        check_i64_eq(atomic_file_open(&one, in_dir("new"), &ids), 0);
        check_i64_eq(atomic_file_open(&two, in_dir("new"), &ids), 0);
        check_i64_eq(atomic_file_write(&two, "two", 3), 0);
        attrs.mode = 0600;
        check_i64_eq(atomic_file_commit(&one, &attrs), 0);
        check_i64_eq(atomic_file_commit(&two, &FILE_ATTRS_KEEP), 0);
        atomic_file_discard(&one);
        atomic_file_discard(&two);
        check_true(is("new", "two"));
        check_i64_eq(mode_of("new"), 0600);
        check_u64_eq(entries(), 1);
}

/* The path comes to mean another file while the new one is written. */
static void the_hidden_name_repeats_unless_it_is_taken(void **state)
{
        struct atomic_file one, two;
        char name[sizeof(one._temp)];

        (void) state;
        check_i64_eq(atomic_file_open(&one, in_dir("new"), &ids), 0);
        check_i64_eq(atomic_file_open(&two, in_dir("new"), &ids), 0);
        check_true(strcmp(one._temp, two._temp) != 0);
        memcpy(name, one._temp, sizeof(name));
        atomic_file_discard(&two);
        atomic_file_discard(&one);
        check_i64_eq(atomic_file_open(&one, in_dir("other"), &ids), 0);
        check_z_eq(one._temp, name);
        atomic_file_discard(&one);
        put(name, "not ours", 0600);
        check_i64_eq(write_all("new", "1", &FILE_ATTRS_KEEP), 0);
        check_true(is("new", "1"));
        check_true(is(name, "not ours"));
        check_u64_eq(entries(), 2);
}

static void what_will_be_replaced_can_be_read(void **state)
{
        struct atomic_file f;
        char text[8] = "";
        int fd;

        put("a", "a", 0600);
        put("b", "b", 0600);
        check_i64_eq(symlink("a", in_dir("link")), 0);
        check_i64_eq(atomic_file_open(&f, in_dir("link"), &ids), 0);
        check_i64_eq(unlink(in_dir("link")), 0);
        check_i64_eq(symlink("b", in_dir("link")), 0);
        check_i64_eq(atomic_file_open_old(&f, &fd), 0);
        check_i64_eq(read(fd, text, sizeof(text)), 1);
        check_true(text[0] == 'a');
        (void) fd_close(fd);
        atomic_file_discard(&f);
        check_i64_eq(atomic_file_open(&f, in_dir("none"), &ids), 0);
        check_i64_eq(atomic_file_open_old(&f, &fd), -ENOENT);
        atomic_file_discard(&f);
}

/* The text of such a link is no name of the file it leads to. */
static void links_to_descriptors_are_not_written_through(void **state)
{
        char path[64];
        int fd;

        put("gone", "x", 0600);
        fd = open(in_dir("gone"), O_RDWR | O_CLOEXEC);
        check_i64_eq(unlink(in_dir("gone")), 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        check_i64_eq(symlink(path, in_dir("link")), 0);
        check_i64_eq(write_all("link", "new", &FILE_ATTRS_KEEP), -EINVAL);
        (void) fd_close(fd);
        check_u64_eq(entries(), 1);
}

static void a_discarded_file_leaves_no_trace(void **state)
{
        struct atomic_file f;

        put("old", "old", 0640);
        check_i64_eq(atomic_file_open(&f, in_dir("old"), &ids), 0);
        check_i64_eq(atomic_file_write(&f, "new", 3), 0);
        check_u64_eq(entries(), 2);
        atomic_file_discard(&f);
        check_true(is("old", "old"));
        check_u64_eq(entries(), 1);
        f = ATOMIC_FILE_NULL;
        atomic_file_discard(&f);
}

static void links_are_written_through(void **state)
{
        put("target", "old", 0600);
        check_i64_eq(mkdir(in_dir("sub"), 0755), 0);
        check_i64_eq(symlink("../target", in_dir("sub/one")), 0);
        check_i64_eq(symlink("sub/one", in_dir("two")), 0);
        check_i64_eq(write_all("two", "new", &FILE_ATTRS_KEEP), 0);
        check_true(is("target", "new"));
        check_i64_eq(mode_of("target"), 0600);
        check_i64_eq(symlink("sub/made", in_dir("dangling")), 0);
        check_i64_eq(write_all("dangling", "new", &FILE_ATTRS_KEEP), 0);
        check_true(is("sub/made", "new"));
        check_i64_eq(symlink(in_dir("target"), in_dir("absolute")), 0);
        check_i64_eq(write_all("absolute", "newer", &FILE_ATTRS_KEEP), 0);
        check_true(is("target", "newer"));
}

static void what_is_no_file_is_not_written(void **state)
{
        static char name[300];
        struct atomic_file f;

        check_i64_eq(mkfifo(in_dir("fifo"), 0600), 0);
        check_i64_eq(mkdir(in_dir("sub"), 0755), 0);
        check_i64_eq(symlink("loop", in_dir("loop")), 0);
        check_i64_eq(symlink("nowhere/x", in_dir("lost")), 0);
        check_i64_eq(write_all("fifo", "x", &FILE_ATTRS_KEEP), -EINVAL);
        check_i64_eq(write_all("sub", "x", &FILE_ATTRS_KEEP), -EISDIR);
        check_i64_eq(write_all("sub/", "x", &FILE_ATTRS_KEEP), -EISDIR);
        check_i64_eq(write_all("sub/.", "x", &FILE_ATTRS_KEEP), -EISDIR);
        check_i64_eq(write_all("loop", "x", &FILE_ATTRS_KEEP), -ELOOP);
        check_i64_eq(write_all("lost", "x", &FILE_ATTRS_KEEP), -ENOENT);
        check_i64_eq(write_all("none/x", "x", &FILE_ATTRS_KEEP), -ENOENT);
        memset(name, 'x', 299);
        check_i64_eq(write_all(name, "x", &FILE_ATTRS_KEEP), -ENAMETOOLONG);
        check_i64_eq(atomic_file_open(&f, "/dev/null", &ids), -EINVAL);
        check_i64_eq(atomic_file_open(&f, "/", &ids), -EISDIR);
        check_true(atomic_file_open(&f, "/proc/self/mem", &ids) < 0
                   || atomic_file_write(&f, "x", 1) < 0);
        atomic_file_discard(&f);
        check_u64_eq(entries(), 4);
}

/* The process may not write more than a few bytes to any file. */
static void a_failed_write_leaves_the_old_file(void **state)
{
        struct rlimit was, small;
        int r;

        put("old", "old", 0640);
        check_i64_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
        small = (struct rlimit){ 4, was.rlim_max };
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = write_all("old", "longer than four", &FILE_ATTRS_KEEP);
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
        check_i64_eq(r, -EFBIG);
        check_true(is("old", "old"));
        check_u64_eq(entries(), 1);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
        static char big[64 * 1024];
        struct atomic_file f;
        int r;

        check_i64_eq(mkdir(in_dir("small"), 0755), 0);
        if (mount("none", in_dir("small"), "tmpfs", 0, "size=65536") < 0)
                skip_because("may not mount");
        put("small/old", "old", 0640);
        check_i64_eq(atomic_file_open(&f, in_dir("small/old"), &ids), 0);
        r = atomic_file_write(&f, big, sizeof(big));
        atomic_file_discard(&f);
        check_i64_eq(r, -ENOSPC);
        check_true(is("small/old", "old"));
        check_i64_eq(write_all("small/old", "fits again", &FILE_ATTRS_KEEP), 0);
        check_i64_eq(umount(in_dir("small")), 0);
}

/* As /etc/hosts is in a container. */
static void a_mounted_file_is_filled_in_place(void **state)
{
        struct stat before, after;

        put("real", "old and longer", 0640);
        put("mounted", "", 0644);
        if (mount(in_dir("real"), in_dir("mounted"), NULL, MS_BIND, NULL) < 0)
                skip_because("may not mount");
        check_i64_eq(stat(in_dir("real"), &before), 0);
        check_i64_eq(write_all("mounted", "new", &FILE_ATTRS_KEEP), 0);
        check_i64_eq(stat(in_dir("real"), &after), 0);
        check_i64_eq(umount(in_dir("mounted")), 0);
        check_true(is("real", "new"));
        check_u64_eq(before.st_ino, after.st_ino);
        check_i64_eq(mode_of("real"), 0640);
        check_u64_eq(entries(), 2);
}

static void attributes_are_set(void **state)
{
        struct file_attrs attrs = { 12, 34, 02750 };
        struct stat st;

        put("x", "x", 0644);
        check_i64_eq(file_set_attrs(in_dir("no"), &attrs), -ENOENT);
        if (geteuid() != 0)
                skip_because("needs root");
        check_i64_eq(file_set_attrs(in_dir("x"), &attrs), 0);
        check_i64_eq(stat(in_dir("x"), &st), 0);
        check_u64_eq(st.st_uid, 12);
        check_u64_eq(st.st_gid, 34);
        check_i64_eq(mode_of("x"), 02750);
        check_i64_eq(write_all("x", "y", &FILE_ATTRS_KEEP), 0);
        check_i64_eq(stat(in_dir("x"), &st), 0);
        check_u64_eq(st.st_uid, 12);
        check_i64_eq(mode_of("x"), 02750);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(only_regular_files_are_opened),
                TEST(sizes_of_proc_are_untold),
                TEST(directories_are_made_with_their_parents),
                TEST(what_is_in_the_way_of_directories_is_reported),
                TEST(a_move_replaces_nothing),
                TEST(a_file_appears_or_is_replaced_at_once),
                TEST(of_two_new_files_the_later_keeps_what_the_earlier_got),
                TEST(the_hidden_name_repeats_unless_it_is_taken),
                TEST(what_will_be_replaced_can_be_read),
                TEST(links_to_descriptors_are_not_written_through),
                TEST(a_discarded_file_leaves_no_trace),
                TEST(links_are_written_through),
                TEST(what_is_no_file_is_not_written),
                TEST(a_failed_write_leaves_the_old_file),
                TEST(a_full_disk_leaves_the_old_file),
                TEST(a_mounted_file_is_filled_in_place),
                TEST(attributes_are_set),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
