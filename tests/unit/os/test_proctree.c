/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proctree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

/* Each test runs in a process of its own, which is a subreaper and whose exit code is its verdict:
 * 0 is well. */
static void in_subreaper(int (*body)(void))
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                        _exit(99);
                _exit(body());
        }
        check_i64_eq(waitpid(pid, &status, 0), pid);
        check_true(WIFEXITED(status));
        check_i64_eq(WEXITSTATUS(status), 0);
}

/* A process that says through the pipe that it is there, and stays. */
static void stay(int fd)
{
        (void) !write(fd, "x", 1);
        for (;;)
                (void) pause();
}

static bool wait_for(int fd, int n)
{
        char c;

        while (n-- > 0)
                if (read(fd, &c, 1) != 1)
                        return false;
        return true;
}

/* A chain of three, and one that has left its parents and its session. */
static int make_tree(int fds[2])
{
        siginfo_t info;
        pid_t between;

        if (pipe(fds) < 0)
                return -1;
        if (fork() == 0) {
                if (fork() == 0) {
                        if (fork() == 0)
                                stay(fds[1]);
                        stay(fds[1]);
                }
                stay(fds[1]);
        }
        between = fork();
        if (between == 0) {
                if (fork() == 0) {
                        (void) setsid();
                        stay(fds[1]);
                }
                _exit(0);
        }
        /* It has ended, and is left to be reaped. */
        if (waitid(P_PID, (id_t) between, &info, WEXITED | WNOWAIT) < 0)
                return -1;
        return wait_for(fds[0], 4) ? 0 : -1;
}

static void count(void *data, pid_t pid, int status)
{
        (void) pid;
        (void) status;
        ++*(int *) data;
}

static int count_and_kill(void)
{
        int fds[2], reaped = 0;

        if (make_tree(fds) < 0)
                return 1;
        if (proctree_signal(getpid(), 0) != 4)
                return 2;
        proctree_kill_children(count, &reaped);
        if (reaped != 5) /* and the one that had ended by itself */
                return 3;
        if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
                return 4;
        return proctree_signal(getpid(), 0) == 0 ? 0 : 5;
}

static void test_the_complete_tree_is_found_and_killed(void **state)
{
        in_subreaper(count_and_kill);
}

/* Every process makes another one as fast as it can. */
static int kill_a_chain_reaction(void)
{
        int fds[2], reaped = 0;

        if (pipe(fds) < 0)
                return 1;
        if (fork() == 0) {
                for (int i = 0; i < 20000; i++) {
                        if (i == 50)
                                (void) !write(fds[1], "x", 1);
                        if (fork() != 0)
                                _exit(0); /* the child goes on, an orphan */
                }
                _exit(0);
        }
        if (!wait_for(fds[0], 1))
                return 2;
        proctree_kill_children(count, &reaped);
        return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD && reaped > 50 ? 0 : 3;
}

static void test_a_tree_that_runs_away_is_caught(void **state)
{
        in_subreaper(kill_a_chain_reaction);
}

static int nothing_to_kill(void)
{
        int reaped = 0;

        proctree_kill_children(count, &reaped);
        return reaped;
}

static void test_no_children(void **state)
{
        in_subreaper(nothing_to_kill);
}

/* A child of another user ends when we close the pipe, and not before. */
static int leave_others_alone(void)
{
        int fds[2], reaped = 0;
        pid_t other;
        char c;

        if (pipe(fds) < 0)
                return 1;
        other = fork();
        if (other == 0) {
                (void) close(fds[1]);
                (void) !read(fds[0], &c, 1);
                _exit(0);
        }
        if (setresuid(4242, 4242, 4242) < 0)
                return 2;
        (void) alarm(20);
        if (fork() == 0)
                for (;;)
                        (void) pause();
        proctree_kill_children(count, &reaped);
        return reaped == 1 && waitpid(other, NULL, WNOHANG) == 0 ? 0 : 3;
}

static void test_who_must_not_be_killed_is_not_waited_for(void **state)
{
        if (geteuid() != 0)
                skip_because("processes of another user need root");
        in_subreaper(leave_others_alone);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_complete_tree_is_found_and_killed),
                cmocka_unit_test(test_a_tree_that_runs_away_is_caught),
                cmocka_unit_test(test_no_children),
                cmocka_unit_test(test_who_must_not_be_killed_is_not_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
