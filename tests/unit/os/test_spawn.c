/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

static char *const default_env[] = { (char *) "PATH=/usr/bin:/bin", NULL };

/* Runs it and returns what it printed to 1 and 2. */
static int run(struct spawn *s, char *out, size_t size, int *ret_status)
{
        scoped(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        scoped(fd_closep) int reader = -EBADF;
        size_t n = 0;
        int fds[2], r;
        pid_t pid;

        check_i64_eq(pipe2(fds, O_CLOEXEC), 0);
        reader = fds[0];
        s->fds[0] = null;
        s->fds[1] = s->fds[2] = fds[1];
        if (!s->envp)
                s->envp = default_env;
        r = spawn_program(s, &pid);
        (void) close(fds[1]);
        out[0] = '\0';
        if (r < 0)
                return r;
        for (ssize_t got; n + 1 < size && (got = read(reader, out + n, size - 1 - n)) > 0;)
                n += (size_t) got;
        out[n] = '\0';
        check_i64_eq(waitpid(pid, ret_status, 0), pid);
        return 0;
}

static void test_programs_that_run(void **state)
{
        static const struct {
                const char *name;
                const char *argv[5];
                const char *cwd, *should;
                int code;
        } cases[] = {
                { "by path", { "/bin/echo", "a", "b" }, NULL, "a b\n", 0 },
                { "by name", { "echo", "x" }, NULL, "x\n", 0 },
                { "exit code", { "sh", "-c", "exit 7" }, NULL, "", 7 },
                { "cwd", { "sh", "-c", "pwd" }, "/usr", "/usr\n", 0 },
                { "relative to cwd", { "./echo", "r" }, "/bin", "r\n", 0 },
                { "both streams", { "sh", "-c", "echo o; echo e >&2" }, NULL, "o\ne\n", 0 },
                { "leads a session",
                  { "sh", "-c", "ps -o sid= -p $$ | grep -c $$" },
                  NULL,
                  "1\n",
                  0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct spawn s = { .argv = (char *const *) cases[i].argv, .cwd = cases[i].cwd };
                char out[256];
                int status = -1;

                check_case(cases[i].name);
                check_i64_eq(run(&s, out, sizeof(out), &status), 0);
                check_z_eq(out, cases[i].should);
                check_true(WIFEXITED(status));
                check_i64_eq(WEXITSTATUS(status), cases[i].code);
        }
}

static void test_programs_that_cannot(void **state)
{
        static char long_name[8192];
        static const struct {
                const char *name;
                const char *argv[2];
                const char *cwd;
                int error;
        } cases[] = {
                { "no such path", { "/no/such" }, NULL, -ENOENT },
                { "no such name", { "no-such-program" }, NULL, -ENOENT },
                { "empty name", { "" }, NULL, -ENOENT },
                { "not executable", { "/etc/passwd" }, NULL, -EACCES },
                { "a directory", { "/etc" }, NULL, -EACCES },
                { "no such cwd", { "true" }, "/no/such", -ENOENT },
                { "cwd is a file", { "true" }, "/etc/passwd", -ENOTDIR },
                { "endless name", { long_name }, NULL, -ENAMETOOLONG },
        };

        memset(long_name, 'x', sizeof(long_name) - 1);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct spawn s = { .argv = (char *const *) cases[i].argv, .cwd = cases[i].cwd };
                char out[16];
                int status;

                check_case(cases[i].name);
                check_i64_eq(run(&s, out, sizeof(out), &status), cases[i].error);
                check_i64_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
        }
}

/* --- where programs are looked for --- */

/* A directory with "good", which exits with 7, and "plain", which may not be executed. */
struct world {
        char dir[64], good[80], plain[80];
        int null;
};

static void make_script(const char *path, mode_t mode)
{
        static const char text[] = "#!/bin/sh\nexit 7\n";
        scoped(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

        check_i64_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
}

static void world_open(struct world *w)
{
        (void) snprintf(w->dir, sizeof(w->dir), "%s/spawnXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        (void) snprintf(w->good, sizeof(w->good), "%s/good", w->dir);
        (void) snprintf(w->plain, sizeof(w->plain), "%s/plain", w->dir);
        make_script(w->good, 0755);
        make_script(w->plain, 0644);
        w->null = open("/dev/null", O_RDWR | O_CLOEXEC);
        check_true(w->null >= 0);
}

static void world_close(struct world *w)
{
        w->null = fd_close(w->null);
        (void) unlink(w->good);
        (void) unlink(w->plain);
        check_i64_eq(rmdir(w->dir), 0);
}

/* The exit code, or a negative errno. */
static int exit_code_of(const struct world *w, char *const *argv, char *const *envp)
{
        const struct spawn s = {
                .argv = argv, .envp = envp, .cwd = w->dir, .fds = { w->null, w->null, w->null }
        };
        pid_t pid;
        int status, r = spawn_program(&s, &pid);

        if (r < 0)
                return r;
        check_i64_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static void test_programs_are_found_as_execvp_finds_them(void **state)
{
        static char long_name[PATH_MAX + 1], long_dirs[PATH_MAX + 80];
        struct world w;

        world_open(&w);
        memset(long_name, 'a', PATH_MAX);
        memset(long_dirs, '/', PATH_MAX);
        (void) snprintf(long_dirs + PATH_MAX, 80, ":%s", w.dir);
        {
                const struct {
                        const char *what, *program, *path;
                        int expected;
                        bool exists;
                } cases[] = {
                        { "a path", w.good, "/nowhere", 7, true },
                        { "a path from cwd", "./good", "/nowhere", 7, false },
                        { "in the only directory", "good", w.dir, 7, true },
                        { "an empty directory is cwd", "good", ":/nowhere", 7, false },
                        { "an empty PATH too", "good", "", 7, false },
                        { "after a directory that cannot exist", "good", long_dirs, 7, true },
                        { "nowhere", "good", "/nowhere", -ENOENT, false },
                        { "the default has no such thing", "good", NULL, -ENOENT, false },
                        { "the default has a shell", "sh", NULL, 0, true },
                        { "no permission", "plain", w.dir, -EACCES, false },
                        { "no permission, by path", w.plain, w.dir, -EACCES, false },
                        { "not a directory", "/dev/null/good", w.dir, -ENOTDIR, false },
                        { "too long", long_name, w.dir, -ENAMETOOLONG, false },
                        { "no name", "", w.dir, -ENOENT, false },
                };

                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        static char variable[2 * PATH_MAX];
                        char *argv[] = { (char *) cases[i].program, NULL };
                        char *envp[] = { variable, NULL };

                        check_case(cases[i].what);
                        (void) snprintf(variable, sizeof(variable), "%s%s",
                                        cases[i].path ? "PATH=" : "OTHER=",
                                        cases[i].path ? cases[i].path : "");
                        check_i64_eq(exit_code_of(&w, argv, envp), cases[i].expected);
                        check_i64_eq(spawn_exists(cases[i].program, envp), cases[i].exists);
                }
        }
        world_close(&w);
}

static void test_signals_start_afresh(void **state)
{
        const char *argv[] = { "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL };
        struct spawn s = { .argv = (char *const *) argv };
        sigset_t set, old;
        char out[256];
        int status;

        (void) signal(SIGHUP, SIG_IGN);
        (void) sigfillset(&set);
        check_i64_eq(sigprocmask(SIG_BLOCK, &set, &old), 0);
        check_i64_eq(run(&s, out, sizeof(out), &status), 0);
        check_z_eq(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
        check_i64_eq(sigprocmask(SIG_SETMASK, &old, &set), 0);
        check_true(sigismember(&set, SIGTERM)); /* ours are as they were */
        (void) signal(SIGHUP, SIG_DFL);
}

static void test_descriptors_in_each_others_place(void **state)
{
        /* 0, 1, 2 of the child are our 2, 0, 1: no order of plain dup2 calls does that. */
        const char *argv[] = { "sh", "-c", "[ -p /proc/self/fd/0 ] || true; echo to1; echo to2 >&2",
                               NULL };
        struct spawn s = { .argv = (char *const *) argv, .envp = default_env };
        int a[2], b[2], saved[3], status;
        char text[16];
        pid_t pid;

        check_i64_eq(pipe2(a, O_CLOEXEC), 0);
        check_i64_eq(pipe2(b, O_CLOEXEC), 0);
        for (int i = 0; i < 3; i++)
                saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        check_true(dup2(a[1], 2) == 2 && dup2(b[1], 1) == 1);
        s.fds[0] = saved[0];
        s.fds[1] = 2;
        s.fds[2] = 1;
        int r = spawn_program(&s, &pid);

        for (int i = 0; i < 3; i++)
                (void) dup2(saved[i], i);
        check_i64_eq(r, 0);
        check_i64_eq(waitpid(pid, &status, 0), pid);
        check_i64_eq(read(a[0], text, sizeof(text)), 4);
        check_true(memcmp(text, "to1\n", 4) == 0);
        check_i64_eq(read(b[0], text, sizeof(text)), 4);
        check_true(memcmp(text, "to2\n", 4) == 0);
        for (int i = 0; i < 2; i++)
                (void) (close(a[i]) + close(b[i]));
}

static void test_users(void **state)
{
        static const gid_t groups[] = { 7, 8 };
        const struct spawn_user user = { 4242, 77, groups, 2 };
        const char *argv[] = { "sh", "-c", "id -u; id -g; id -G", NULL };
        struct spawn s = { .argv = (char *const *) argv, .user = &user, .cwd = "/" };
        char out[64];
        int status;

        if (geteuid() != 0)
                skip_because("changing users needs root");
        check_i64_eq(run(&s, out, sizeof(out), &status), 0);
        check_z_eq(out, "4242\n77\n77 7 8\n");
}

/* What one is already needs no privilege: groups are left alone then. */
static void test_own_user_needs_no_privilege(void **state)
{
        const struct spawn_user self = { geteuid(), getegid(), NULL, 0 };
        const char *argv[] = { "true", NULL };
        struct spawn s = { .argv = (char *const *) argv, .user = &self };
        char out[64];
        int status;

        check_i64_eq(run(&s, out, sizeof(out), &status), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs_that_run),
                cmocka_unit_test(test_programs_that_cannot),
                cmocka_unit_test(test_programs_are_found_as_execvp_finds_them),
                cmocka_unit_test(test_signals_start_afresh),
                cmocka_unit_test(test_descriptors_in_each_others_place),
                cmocka_unit_test(test_users),
                cmocka_unit_test(test_own_user_needs_no_privilege),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
