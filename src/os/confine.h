/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CONFINE_H
#define HUTCH_OS_CONFINE_H

/*
 * What a process can take from itself, for good, before it executes a program it does not trust.
 * Capabilities have a file of their own (os/caps.h).
 */

#include <linux/filter.h>
#include <sys/resource.h>

#include "base/compiler.h"

/* No program that is executed from now on gives more than we have: set-user-ID, file capabilities. */
int confine_no_new_privs(void) must_check;

/* A filter of system calls, for us and all that comes from us. Needs the above, or CAP_SYS_ADMIN. */
int confine_seccomp(const struct sock_filter *filter, size_t n) must_check;

/* An empty session keyring in the place of the inherited one. 0 also on a kernel without keys. */
int confine_keyring(void) must_check;

struct confine_limit {
        int resource; /* RLIMIT_… */
        rlim_t soft, hard;
};

/* Without CAP_SYS_RESOURCE a limit above the present hard one becomes the present hard one. */
int confine_limits(const struct confine_limit *limits, size_t n) must_check;

/* The descriptors fds[0..n) become 0..n-1 and stay open across execve, which closes all others. The
 * array is used as scratch. */
int confine_descriptors(int *fds, size_t n) must_check;

#endif
