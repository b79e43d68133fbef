/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clone.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define NAMESPACES                                                                   \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER \
         | CLONE_NEWPID | CLONE_NEWNET)

pid_t clone_child(const struct clone_child *c, int *ret_pidfd)
{
        int pidfd = -EBADF;
        struct clone_args args = {
                .flags = CLONE_PIDFD | c->namespaces | (c->cgroup >= 0 ? CLONE_INTO_CGROUP : 0)
                         | (c->sibling ? CLONE_PARENT : 0),
                .pidfd = (uint64_t) (uintptr_t) &pidfd,
                .exit_signal = c->sibling ? 0 : SIGCHLD,
                .cgroup = c->cgroup >= 0 ? (uint64_t) c->cgroup : 0,
        };
        pid_t pid;

        if (c->namespaces & ~(uint64_t) NAMESPACES)
                return -EINVAL;
        pid = (pid_t) syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0)
                return -errno;
        if (pid > 0)
                *ret_pidfd = pidfd;
        return pid;
}

/* As in <linux/pidfd.h> of Linux 6.15. */
struct status_info {
        uint64_t mask, cgroup;
        uint32_t ids[11];
        int32_t exit_code;
};

#define STATUS_GET  _IOWR(0xff, 11, struct status_info)
#define STATUS_EXIT (1U << 3)

static_assert(sizeof(struct status_info) == 64, "as the kernel has it");

int pidfd_status(int pidfd, int *ret_status)
{
        struct status_info info = { .mask = STATUS_EXIT };

        /* It fails only if the kernel does not support it: for a running process the call succeeds
         * without STATUS_EXIT in the mask. */
        if (ioctl(pidfd, STATUS_GET, &info) < 0)
                return -EOPNOTSUPP;
        if (!(info.mask & STATUS_EXIT))
                return -EAGAIN;
        *ret_status = info.exit_code;
        return 0;
}

int pidfd_kill(int pidfd, int sig)
{
        return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

int pidfd_wait(int pidfd, int *ret_status)
{
        siginfo_t info = { 0 };

        while (waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED) < 0)
                if (errno != EINTR)
                        return -errno;
        /* As the macros of wait.h decode it. */
        *ret_status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8
                                                 : info.si_status & 0x7f;
        return 0;
}
