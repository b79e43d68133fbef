/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SECCOMP_H
#define HUTCH_PLAN_SECCOMP_H

/*
 * The seccomp filter of sandboxes, generated at build time from the table in plan/seccomp_policy.h.
 *
 * It is a search tree over ranges of system call numbers, with argument checks at its leaves. The kernel
 * verifies and translates a filter, instruction by instruction, each time it is loaded, so its length is part of
 * every sandbox start; a call takes one path through it, whose depth is the logarithm of the number of
 * ranges.
 */

#include <linux/filter.h>

#include "base/compiler.h"

extern const struct sock_filter seccomp_filter[];
extern const size_t seccomp_filter_n;

#endif
