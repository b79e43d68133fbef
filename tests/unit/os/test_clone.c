/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clone.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

static const struct {
        const char *name;
        uint64_t namespaces;
        int sends;  /* a signal that ends it, or 0: it exits with 7 */
        bool first; /* it is the first process of its namespace */
} cases[] = {
        { "exits", 0, 0, false },
        { "is killed", 0, SIGKILL, false },
        { "new namespaces", CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC, 0, true },
};

static void test_ends(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(fd_closep) int pidfd = -EBADF;
                int status;
                pid_t pid;

                check_case(cases[i].name);
                if (cases[i].namespaces && geteuid() != 0)
                        skip_because("namespaces need root");
                pid = clone_child(&(struct clone_child){ cases[i].namespaces, -EBADF }, &pidfd);
                check_true(pid >= 0);
                if (pid == 0 && cases[i].sends)
                        for (;;)
                                (void) pause();
                if (pid == 0)
                        _exit((getpid() == 1) == cases[i].first ? 7 : 8);
                if (cases[i].sends)
                        check_i64_eq(pidfd_kill(pidfd, cases[i].sends), 0);
                check_i64_eq(pidfd_wait(pidfd, &status), 0);
                if (cases[i].sends)
                        check_true(WIFSIGNALED(status) && WTERMSIG(status) == cases[i].sends);
                else
                        check_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
                check_i64_eq(pidfd_kill(pidfd, 0), -ESRCH);
                check_i64_eq(pidfd_wait(pidfd, &status), -ECHILD);
        }
}

static void test_other_flags_are_refused(void **state)
{
        int pidfd = -EBADF;

        (void) state;
        check_i64_eq(clone_child(&(struct clone_child){ CLONE_VM, -EBADF }, &pidfd), -EINVAL);
        check_i64_eq(pidfd, -EBADF);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ends),
                cmocka_unit_test(test_other_flags_are_refused),
        };

        return cmocka_run_group_tests_name("clone", tests, NULL, NULL);
}
