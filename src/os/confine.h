/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CONFINE_H
#define HUTCH_OS_CONFINE_H

/*
 * Irrevocable restrictions of the calling process, applied before it executes a program that is not
 * trusted.
 */

#include <linux/capability.h>
#include <linux/filter.h>
#include <sys/resource.h>

#include "base/compiler.h"

/* execve no longer grants privileges: set-user-ID, file capabilities. */
int confine_no_new_privs(void) must_check;

/* A seccomp filter, for us and all descendants. Needs the above, or CAP_SYS_ADMIN. */
int confine_seccomp(const struct sock_filter *filter, size_t n) must_check;

/* clone3 does not exist any more, as for a program behind the filter of an engine. For commands of an agent, which has
 * to be allowed it; its own filter sees to the other interfaces of the processor. */
int confine_clone3(void) must_check;

/* Replaces the inherited session keyring by an empty one. 0 also on a kernel without keys. */
int confine_keyring(void) must_check;

/* `name`: "nofile" for RLIMIT_NOFILE, and so on. -EINVAL for one that is not among those a sandbox has. Without
 * CAP_SYS_RESOURCE, a limit above the current hard limit becomes the current hard limit. */
int confine_limit(const char *name, rlim_t soft, rlim_t hard) must_check;

/* The descriptors fds[0..n) become 0..n-1 and stay open across execve, which closes all others. The
 * array is overwritten. */
int confine_descriptors(int *fds, size_t n) must_check;

/* --- capabilities --- */

/* Sets are bits: CAP_BIT(CAP_CHOWN). The bounding set comes first, because dropping from it needs a
 * capability (CAP_SETPCAP) that may not be among those kept. */
#define CAP_BIT(cap) (1ULL << (cap))

/* Reduces bounding, permitted and effective sets to `keep`; inheritable and ambient become empty. */
int caps_reduce(uint64_t keep) must_check;

/* In two steps, for a caller that changes its user in between: the bounding set, which needs a
 * capability; then all other sets, which need none. */
int caps_bound(uint64_t keep) must_check;
int caps_drop(void) must_check;

#endif
