/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SECCOMP_H
#define HUTCH_PLAN_SECCOMP_H

/*
 * Seccomp filters, generated at build time from the tables in plan/seccomp_policy.h.
 *
 * A filter is a search tree over ranges of system call numbers, with argument checks at its leaves. The kernel
 * verifies and translates a filter, instruction by instruction, each time it is loaded, so its length is part of
 * every sandbox start; a call takes one path through it, whose depth is the logarithm of the number of
 * ranges.
 */

#include <linux/filter.h>

#include "base/compiler.h"

/* Of the processes of a sandbox, and of hutchd. */
extern const struct sock_filter seccomp_filter[];
extern const size_t seccomp_filter_n;

/* Of hutch-warden and its helper processes. Zygotes inherit it, and so do sandboxes, whose calls pass both filters. */
extern const struct sock_filter seccomp_warden_filter[];
extern const size_t seccomp_warden_filter_n;

#endif
