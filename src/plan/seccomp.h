/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SECCOMP_H
#define HUTCH_PLAN_SECCOMP_H

/*
 * The filter of a sandbox's system calls, made from the table in plan/seccomp_policy.h when we are
 * built.
 *
 * It is a search tree over ranges of numbers, with the tests of arguments at its leaves. A filter is
 * checked and translated by the kernel each time it is loaded, instruction by instruction, which
 * makes its length a part of every sandbox's start; and a call walks one path through it, whose
 * depth is the logarithm of the number of ranges.
 */

#include <linux/filter.h>

#include "base/compiler.h"

extern const struct sock_filter seccomp_filter[];
extern const size_t seccomp_filter_n;

#endif
