/* SPDX-License-Identifier: Apache-2.0 */
#include "os/confine.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "os/fd.h"
#include "tests/lib/apart.h"

static int filtered(void *data)
{
        /* getppid is gone. */
        const struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };

        (void) data;
        apart_check(confine_no_new_privs() == 0);
        apart_check(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
        apart_check(confine_seccomp(filter, ARRAY_SIZE(filter)) == 0);
        apart_check(syscall(SYS_getppid) < 0 && errno == EDOM);
        apart_check(getpid() > 0);
        apart_check(confine_seccomp(filter, 0) == -EINVAL);
        apart_check(confine_seccomp(filter, BPF_MAXINSNS + 1) == -EINVAL);
        apart_check(confine_seccomp(filter, 1) == -EINVAL); /* does not end in a verdict */
        return 0;
}

static void test_filter(void **state)
{
        (void) state;
        apart_run(filtered, NULL, 0);
}

static int own_keyring(void *data)
{
        long before = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);

        (void) data;
        if (before < 0 && errno == ENOSYS)
                return 77;
        apart_check(confine_keyring() == 0);
        apart_check(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)
                    != before);
        return 0;
}

static void test_keyring(void **state)
{
        int status = apart_status(own_keyring, NULL, 0);

        (void) state;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip_because("this kernel has no keys");
        if (status != 0)
                fail_msg("%s", apart_note_);
}

static int limited(void *data)
{
        struct rlimit lim;

        (void) data;
        apart_check(confine_limit("core", 0, 0) == 0);
        apart_check(getrlimit(RLIMIT_CORE, &lim) == 0);
        apart_check(lim.rlim_cur == 0 && lim.rlim_max == 0);
        apart_check(confine_limit("nofile", 100, 200) == 0);
        apart_check(getrlimit(RLIMIT_NOFILE, &lim) == 0);
        apart_check(lim.rlim_cur == 100 && lim.rlim_max == 200);

        /* A limit that we may not raise stays. */
        apart_check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
        apart_check(confine_limit("nofile", RLIM_INFINITY, RLIM_INFINITY) == 0);
        apart_check(getrlimit(RLIMIT_NOFILE, &lim) == 0);
        apart_check(lim.rlim_cur == 200 && lim.rlim_max == 200);
        apart_check(confine_limit("no such limit", 1, 1) == -EINVAL);
        return 0;
}

static void test_limits(void **state)
{
        (void) state;
        apart_run(limited, NULL, 0);
}

/* 0, 1, 2 are turned around, and a fourth comes from far; nothing else survives execve. */
static int descriptors(void *data)
{
        static char command[] = "test \"$(cat)\" = in || exit 3; test -e /proc/$$/fd/3 || exit 4; "
                                "for n in 4 5 6 7 8 9; do test -e /proc/$$/fd/$n && exit 5; done; "
                                "exit 0";
        char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, command, NULL };
        int pipes[2], fds[4];

        (void) data;
        apart_check(pipe(pipes) == 0);
        apart_check(write(pipes[1], "in", 2) == 2);
        apart_check(close(pipes[1]) == 0);
        fds[0] = pipes[0];
        fds[1] = STDERR_FILENO;
        fds[2] = STDOUT_FILENO;
        fds[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        apart_check(dup2(fds[3], 9) == 9);
        apart_check(confine_descriptors(fds, 4) == 0);
        (void) execv("/bin/sh", argv);
        return 2;
}

static void test_descriptors(void **state)
{
        (void) state;
        apart_run(descriptors, NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_filter),
                cmocka_unit_test(test_keyring),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_descriptors),
        };

        return cmocka_run_group_tests_name("confine", tests, NULL, NULL);
}
