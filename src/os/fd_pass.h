/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FD_PASS_H
#define HUTCH_OS_FD_PASS_H

/* Messages with descriptors over unix sockets (SCM_RIGHTS). */

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/str.h"

#define FD_PASS_MAX 253 /* the kernel's limit for one message */

/* The sender keeps the descriptors. Returns the number of bytes sent, or -errno; never raises SIGPIPE. */
ssize_t fd_pass_send(int socket, struct str message, const int *fds, size_t n_fds, int flags)
        must_check;

/* --- receiving --- */

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
