/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FD_PASS_H
#define HUTCH_OS_FD_PASS_H

/* Messages over unix sockets that bring descriptors with them. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/str.h"

#define FD_PASS_MAX 253 /* the kernel's limit for one message */

/* The descriptors stay the sender's. Returns how many bytes were sent, or -errno; never a SIGPIPE. */
ssize_t fd_pass_send(int socket, struct str message, const int *fds, size_t n_fds, int flags)
        must_check;

/* --- receiving --- */

struct fd_pass_msg {
        void *p; /* room for the message */
        size_t size;
        int *fds; /* room for descriptors */
        size_t fds_max;

        /* --- what came --- */
        size_t n_fds; /* close-on-exec, and the receiver's */
        bool cut;     /* something did not fit; descriptors that did not are closed */
};

/* Returns how many bytes came, 0 at the end, or -errno, and then there are no descriptors. */
ssize_t fd_pass_receive(int socket, struct fd_pass_msg *m, int flags) must_check;

#endif
