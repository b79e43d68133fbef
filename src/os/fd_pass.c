/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd_pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"

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

static void take_fds(struct msghdr *msg, struct fd_pass_msg *m)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
                size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                ASSERT(m->n_fds + n <= m->fds_max);
                memcpy(&m->fds[m->n_fds], CMSG_DATA(c), n * sizeof(int));
                m->n_fds += n;
        }
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
        take_fds(&msg, m);
        return n;
}
