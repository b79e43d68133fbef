/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

int fd_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                /* Linux frees the descriptor even when close reports EINTR: never retry. */
                (void) close(fd);
                errno = saved;
        }
        return -EBADF;
}

void fd_closep(int *fd)
{
        *fd = fd_close(*fd);
}

/* First all out of the way, because one may have the number of another. */
int fd_keep_only(int *const *fds, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int fd = fcntl(*fds[i], F_DUPFD_CLOEXEC, (int) n + 3);

                if (fd < 0)
                        return -errno;
                *fds[i] = fd;
        }
        for (size_t i = 0; i < n; i++) {
                if (dup3(*fds[i], (int) i + 3, O_CLOEXEC) < 0)
                        return -errno;
                *fds[i] = (int) i + 3;
        }
        return syscall(SYS_close_range, (unsigned) n + 3, ~0U, 0) < 0 ? -errno : 0;
}

int64_t fd_limit_raise(void)
{
        struct rlimit lim;

        if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
                return -errno;
        if (lim.rlim_cur < lim.rlim_max) {
                lim.rlim_cur = lim.rlim_max;
                if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
                        return -errno;
        }
        return lim.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t) lim.rlim_cur;
}

/* --- passing --- */

union control {
        struct cmsghdr head; /* for its alignment */
        char room[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

ssize_t fd_pass_send(int socket, struct str message, const int *fds, size_t n_fds, int flags)
{
        struct iovec iov = { (char *) (uintptr_t) message.p, message.n };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
        union control control;
        ssize_t n;

        ASSERT(n_fds <= FD_PASS_MAX);
        if (n_fds > 0) {
                msg.msg_control = &control;
                msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                memset(&control, 0, msg.msg_controllen);
                control.head.cmsg_level = SOL_SOCKET;
                control.head.cmsg_type = SCM_RIGHTS;
                control.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.head), fds, n_fds * sizeof(int));
        }
        do
                n = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

/* msg_controllen excludes the trailing padding, in which the kernel would store one descriptor more. */
ssize_t fd_pass_receive(int socket, struct fd_pass_msg *m, int flags)
{
        struct iovec iov = { m->p, m->size };
        union control control;
        struct msghdr msg;
        ssize_t n;

        ASSERT(m->fds_max <= FD_PASS_MAX);
        m->n_fds = 0;
        do {
                msg = (struct msghdr){ .msg_iov = &iov,
                                       .msg_iovlen = 1,
                                       .msg_control = &control,
                                       .msg_controllen = CMSG_LEN(m->fds_max * sizeof(int)) };
                n = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        m->cut = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
                size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                ASSERT(m->n_fds + n_fds <= m->fds_max);
                memcpy(&m->fds[m->n_fds], CMSG_DATA(c), n_fds * sizeof(int));
                m->n_fds += n_fds;
        }
        return n;
}
