/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FD_H
#define HUTCH_OS_FD_H

/* Descriptors. The null descriptor is -EBADF; every descriptor is opened close-on-exec. */

#include <sys/types.h>

#include "base/compiler.h"
#include "base/str.h"

/* Closes if fd >= 0, preserves errno, and returns -EBADF: fd = fd_close(fd). */
int fd_close(int fd);

/* For scoped(fd_closep). */
void fd_closep(int *fd);

/* The n descriptors become 3, 4, …, in their order, and all others except 0, 1 and 2 are closed, for a
 * child that must not keep those of its parent. The variables get the new numbers. */
int fd_keep_only(int *const *fds, size_t n) must_check;

/* Raises the soft limit of open descriptors to the hard one; returns the limit in force, or a
 * negative errno. */
int64_t fd_limit_raise(void);

/* --- passing over unix sockets (SCM_RIGHTS) --- */

#define FD_PASS_MAX 253 /* the kernel's limit for one message */

/* The sender keeps the descriptors. Returns the number of bytes sent, or -errno; never raises SIGPIPE. */
ssize_t fd_pass_send(int socket, struct str message, const int *fds, size_t n_fds, int flags)
        must_check;

struct fd_pass_msg {
        void *p; /* room for the message */
        size_t size;
        int *fds; /* room for descriptors */
        size_t fds_max;

        /* --- results --- */
        size_t n_fds; /* close-on-exec; owned by the receiver */
        bool cut;     /* something did not fit; such descriptors are closed */
};

/* Returns the number of bytes received, 0 at the end, or -errno without any descriptors. */
ssize_t fd_pass_receive(int socket, struct fd_pass_msg *m, int flags) must_check;

#endif
