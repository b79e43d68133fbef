/* SPDX-License-Identifier: Apache-2.0 */
#include "os/userns.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "os/confine.h"
#include "os/fd.h"
#include "tests/lib/apart.h"
#include "tests/lib/caps_get.h"
#include "tests/lib/fake_root.h"

#define FIRST 7000000U
#define COUNT 65536U

static const struct userns_range range = { FIRST, COUNT };

static int inside(void *data)
{
        int userns = *(int *) data, made;
        struct caps c;

        apart_check(userns_enter(userns) == 0);
        apart_check(getuid() == 0 && geteuid() == 0 && getgid() == 0);
        apart_check(getgroups(0, NULL) == 0);
        apart_check(caps_get(&c) == 0);
        apart_check(c.permitted & CAP_BIT(CAP_SYS_ADMIN));
        made = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        apart_check(made >= 0);
        apart_check(fchown(made, COUNT - 1, 5) == 0);
        apart_check(fchown(made, COUNT, 5) < 0 && errno == EINVAL);

        /* Powers in there are none out here. */
        apart_check(sethostname("x", 1) < 0 && errno == EPERM);
        apart_check(setns(open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC), CLONE_NEWNS) < 0);
        return 0;
}

static void test_a_range_of_its_own(void **state)
{
        scoped(fd_closep) int userns = -EBADF;
        struct fake_root t;
        struct stat st;
        uid_t owner;

        (void) state;
        if (!apart_possible())
                skip_because("maps of user namespaces need root");
        fake_root_open(&t);
        check_i64_eq(chmod(t.root, 0777), 0);
        check_i64_eq(userns_make(&range, &userns), 0);
        check_i64_eq(ioctl(userns, NS_GET_OWNER_UID, &owner), 0);
        check_u64_eq(owner, FIRST);
        check_i64_eq(chdir(t.root), 0);
        apart_run(inside, &userns, CLONE_NEWUTS);
        check_i64_eq(stat("file", &st), 0);
        check_u64_eq(st.st_uid, FIRST + COUNT - 1);
        check_u64_eq(st.st_gid, FIRST + 5);
        check_i64_eq(chdir("/"), 0);
        fake_root_close(&t);
}

static void test_ranges_that_are_none(void **state)
{
        const struct userns_range bad[] = {
                { 0, 1 }, { 1, 0 }, { UINT32_MAX, 1 }, { 100000, UINT32_MAX - 99999 }
        };
        int fd = -EBADF;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                check_i64_eq(userns_make(&bad[i], &fd), -EINVAL);
        check_i64_eq(fd, -EBADF);
}

static int without_privilege(void *data)
{
        int fd = -EBADF;

        (void) data;
        apart_check(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
        apart_check(userns_make(&range, &fd) == -EPERM);
        apart_check(fd == -EBADF);
        return 0;
}

static void test_no_privilege_no_range(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("needs root to lose it");
        apart_run(without_privilege, NULL, 0);
}

/* --- a parent that is killed meanwhile --- */

/* It dies when it wants to end its helper: the last moment at which the helper needs it. */
static int dies_halfway(void *data)
{
        const struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        int fd = -EBADF;

        (void) data;
        apart_check(confine_seccomp(code, ARRAY_SIZE(code)) == 0);
        return userns_make(&range, &fd); /* which kills us */
}

static void test_nothing_outlives_the_parent(void **state)
{
        const struct timespec limit = { 10, 0 };
        sigset_t set;
        int status;

        (void) state;
        if (!apart_possible())
                skip_because("maps of user namespaces need root");
        check_i64_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        check_i64_eq(sigemptyset(&set), 0);
        check_i64_eq(sigaddset(&set, SIGCHLD), 0);
        check_i64_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
        status = apart_status(dies_halfway, NULL, 0);
        check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
        /* The helper is our child now. */
        while (waitpid(-1, &status, WNOHANG) == 0)
                if (sigtimedwait(&set, NULL, &limit) < 0 && errno == EAGAIN)
                        fail_msg("the helper lives on");
        check_i64_eq(waitpid(-1, &status, WNOHANG), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_range_of_its_own),
                cmocka_unit_test(test_ranges_that_are_none),
                cmocka_unit_test(test_no_privilege_no_range),
                cmocka_unit_test(test_nothing_outlives_the_parent),
        };

        return cmocka_run_group_tests_name("userns", tests, NULL, NULL);
}
