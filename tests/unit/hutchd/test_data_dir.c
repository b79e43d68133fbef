/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/data_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/walk.h"
#include "tests/lib/check.h"

struct world {
        char root[80], path[96];
        struct ids ids;
        struct err err;
};

static int setup(void **state)
{
        struct world *w = xnew(struct world);

        (void) snprintf(w->root, sizeof(w->root), "%s/hutchd-data-XXXXXX", check_tmp());
        if (!mkdtemp(w->root)) {
                free(w);
                return -1;
        }
        (void) snprintf(w->path, sizeof(w->path), "%s/a/b", w->root);
        ids_init(&w->ids);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, AT_FDCWD, w->root);
        while ((r = walk_remove_step(&rm)) > 0)
                ;
        walk_remove_done(&rm);
        free(w);
        return r;
}

static const char *in(const struct world *w, const char *name)
{
        static char path[200];

        (void) snprintf(path, sizeof(path), "%s/%s", w->path, name);
        return path;
}

static mode_t mode_of(const char *path)
{
        struct stat st;

        check_i64_eq(stat(path, &st), 0);
        return st.st_mode & 07777;
}

static void write_file(const char *path, struct str bytes, mode_t mode)
{
        scoped(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

        check_true(fd >= 0 && write(fd, bytes.p, bytes.n) == (ssize_t) bytes.n);
        check_i64_eq(fchmod(fd, mode), 0);
}

static void must_open(struct world *w, struct data_dir *d)
{
        int r = data_dir_open(d, w->path, &w->ids, &w->err);

        check_z_eq(r < 0 ? w->err.message : "", "");
}

static void must_fail(struct world *w, enum err_code code, const char *part)
{
        struct err e = { 0 };
        struct data_dir d;

        check_i64_eq(data_dir_open(&d, w->path, &w->ids, &e), ERR_RETURN(code));
        if (!strstr(e.message, part))
                check_z_eq(e.message, part);
}

static void test_made_once_and_found_again(void **state)
{
        struct world *w = *state;
        struct data_dir first, second;
        char dir[200];

        must_open(w, &first);
        check_i64_eq(mode_of(w->path), 0700);
        check_i64_eq(mode_of(in(w, "installation")), 0600);
        check_i64_eq(mode_of(in(w, "secret")), 0600);
        check_true(id_is_hex(str_from(first.installation)));
        check_i64_eq(data_dir_driver(&first, "x", dir, sizeof(dir), &w->err), 0);
        check_z_eq(dir, in(w, "drivers/x"));
        check_i64_eq(mode_of(dir), 0700);
        check_i64_eq(data_dir_path(&first, "y", dir, sizeof(dir), &w->err), 0);
        check_z_eq(dir, in(w, "y"));
        check_true(data_dir_path(&first, "y", dir, 4, &w->err) < 0);

        second = first;
        data_dir_close(&first);
        check_true(memcmp(first.secret, (uint8_t[DATA_SECRET_SIZE]){ 0 }, DATA_SECRET_SIZE) == 0);
        must_open(w, &first);
        check_z_eq(first.installation, second.installation);
        check_true(memcmp(first.secret, second.secret, DATA_SECRET_SIZE) == 0);
        data_dir_close(&first);
}

static void test_two_installations_differ(void **state)
{
        struct world *w = *state;
        struct data_dir a, b;

        must_open(w, &a);
        (void) snprintf(w->path, sizeof(w->path), "%s/c", w->root);
        must_open(w, &b);
        check_true(strcmp(a.installation, b.installation) != 0);
        check_true(memcmp(a.secret, b.secret, DATA_SECRET_SIZE) != 0);
        data_dir_close(&a);
        data_dir_close(&b);
}

/* The error of a second process that opens the same directory, or nothing. */
static void open_second(struct world *w, char ret[static 512])
{
        int pipe_fds[2], status;
        ssize_t n;
        pid_t pid;

        check_i64_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0) {
                struct data_dir d;

                w->err.message[0] = '\0';
                if (data_dir_open(&d, w->path, &w->ids, &w->err) == 0)
                        data_dir_close(&d);
                (void) !write(pipe_fds[1], w->err.message, strlen(w->err.message));
                _exit(0);
        }
        (void) close(pipe_fds[1]);
        n = read(pipe_fds[0], ret, 511);
        ret[n > 0 ? n : 0] = '\0';
        (void) close(pipe_fds[0]);
        check_true(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_one_at_a_time(void **state)
{
        struct world *w = *state;
        char mine[64], said[512];
        struct data_dir d;

        must_open(w, &d);
        (void) snprintf(mine, sizeof(mine), "in use by another hutchd, process %d", (int) getpid());
        open_second(w, said);
        check_true(strstr(said, mine));
        data_dir_close(&d);
        open_second(w, said);
        check_z_eq(said, "");
}

/* Nor does a child that has not become another program yet. */
static void test_a_child_does_not_keep_the_lock(void **state)
{
        struct world *w = *state;
        char said[512];
        struct data_dir d;
        int fds[2];
        pid_t pid;

        check_i64_eq(pipe2(fds, O_CLOEXEC), 0);
        must_open(w, &d);
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0) {
                char c;

                (void) close(fds[1]);
                (void) !read(fds[0], &c, 1);
                _exit(0);
        }
        data_dir_close(&d);
        open_second(w, said);
        check_z_eq(said, "");
        (void) close(fds[0]);
        (void) close(fds[1]);
        check_true(waitpid(pid, NULL, 0) == pid);
}

static void test_others_may_not_write(void **state)
{
        struct world *w = *state;
        static const mode_t modes[] = { 0770, 0702, 01777 };
        struct data_dir d;

        must_open(w, &d);
        data_dir_close(&d);
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                check_i64_eq(chmod(w->path, modes[i]), 0);
                must_fail(w, ERR_FORBIDDEN, "others may write");
        }
        check_i64_eq(chmod(w->path, 0755), 0); /* looking is no harm: what is in it is 0600 */
        must_open(w, &d);
        data_dir_close(&d);
        check_i64_eq(chmod(in(w, "secret"), 0640), 0);
        must_fail(w, ERR_FORBIDDEN, "chmod 600");
}

static void test_damage_is_reported_and_left_alone(void **state)
{
        static const struct {
                const char *file;
                struct str bytes;
                const char *part;
        } cases[] = {
                { "secret", { "short", 5 }, "it has 5 bytes instead of 32" },
                { "secret", { "", 0 }, "it has 0 bytes" },
                { "installation", { "", 0 }, "it has 0 bytes" },
                { "installation", { "0123456789ABCDEF0123456789ABCDEF\n", 33 }, "hexadecimal" },
                { "installation", { "0123456789abcdef0123456789abcdefX", 33 }, "hexadecimal" },
        };
        struct world *w = *state;
        struct data_dir d;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct stat st;

                check_case(cases[i].part);
                must_open(w, &d);
                data_dir_close(&d);
                write_file(in(w, cases[i].file), cases[i].bytes, 0600);
                must_fail(w, ERR_INTERNAL, cases[i].part);
                check_i64_eq(stat(in(w, cases[i].file), &st), 0);
                check_u64_eq(st.st_size, cases[i].bytes.n);
                check_i64_eq(unlink(in(w, cases[i].file)), 0);
        }
}

static void test_a_store_without_an_id_has_lost_it(void **state)
{
        struct world *w = *state;
        struct data_dir d;

        must_open(w, &d);
        data_dir_close(&d);
        write_file(in(w, "store.sqlite"), STR("x"), 0600);
        must_open(w, &d);
        data_dir_close(&d);
        check_i64_eq(unlink(in(w, "installation")), 0);
        must_fail(w, ERR_INTERNAL, "installation is missing, but ");
        check_true(access(in(w, "installation"), F_OK) < 0);
}

static void test_something_else_in_the_way(void **state)
{
        struct world *w = *state;

        (void) snprintf(w->path, sizeof(w->path), "%s/file", w->root);
        write_file(w->path, STR("x"), 0600);
        must_fail(w, err_code_from_errno(-ENOTDIR), "create the directory");
}

/* A disk without room, told by the limit of file sizes; in a process of its own. */
static void test_no_room(void **state)
{
        struct world *w = *state;
        struct data_dir d;
        int status;
        pid_t pid = fork();

        check_true(pid >= 0);
        if (pid == 0) {
                struct rlimit none = { 0, 0 };
                int r;

                (void) signal(SIGXFSZ, SIG_IGN);
                (void) setrlimit(RLIMIT_FSIZE, &none);
                r = data_dir_open(&d, w->path, &w->ids, &w->err);
                _exit(r < 0 && strstr(w->err.message, "installation: File too large") ? 0 : 1);
        }
        check_true(waitpid(pid, &status, 0) == pid);
        check_i64_eq(status, 0);
        check_true(access(in(w, "installation"), F_OK) < 0); /* not there, rather than empty */
        must_open(w, &d);
        data_dir_close(&d);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_made_once_and_found_again),
                TEST(test_two_installations_differ),
                TEST(test_one_at_a_time),
                TEST(test_a_child_does_not_keep_the_lock),
                TEST(test_others_may_not_write),
                TEST(test_damage_is_reported_and_left_alone),
                TEST(test_a_store_without_an_id_has_lost_it),
                TEST(test_something_else_in_the_way),
                TEST(test_no_room),
        };

        (void) umask(022);
        return cmocka_run_group_tests_name("hutchd/data_dir", tests, NULL, NULL);
}
