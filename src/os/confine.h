/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CONFINE_H
#define HUTCH_OS_CONFINE_H

/*
 * Irrevocable restrictions of the calling process, applied before it executes a program that is not
 * trusted. Capabilities are in os/caps.h.
 */

#include <linux/filter.h>
#include <sys/resource.h>

#include "base/compiler.h"

/* execve no longer grants privileges: set-user-ID, file capabilities. */
int confine_no_new_privs(void) must_check;

/* A seccomp filter, for us and all descendants. Needs the above, or CAP_SYS_ADMIN. */
int confine_seccomp(const struct sock_filter *filter, size_t n) must_check;

/* Replaces the inherited session keyring by an empty one. 0 also on a kernel without keys. */
int confine_keyring(void) must_check;

struct confine_limit {
        int resource; /* RLIMIT_… */
        rlim_t soft, hard;
};

/* Without CAP_SYS_RESOURCE, a limit above the current hard limit becomes the current hard limit. */
int confine_limits(const struct confine_limit *limits, size_t n) must_check;

/* The descriptors fds[0..n) become 0..n-1 and stay open across execve, which closes all others. The
 * array is overwritten. */
int confine_descriptors(int *fds, size_t n) must_check;

#endif
