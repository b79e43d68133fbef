/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CAPS_H
#define HUTCH_OS_CAPS_H

/*
 * The capabilities of the calling process, as sets of bits: 1 << CAP_CHOWN.
 *
 * What is kept here is what is left: bounding set first, because dropping from it needs a
 * capability (CAP_SETPCAP) that may not be among those kept.
 */

#include <linux/capability.h>

#include "base/compiler.h"

#define CAP_BIT(cap) (1ULL << (cap))

/* Bounding, permitted and effective become `keep`, as far as they were there before; inheritable and
 * ambient become empty. */
int caps_reduce(uint64_t keep) must_check;

/* For who becomes another user in between: the bounding set, which needs a capability; and then all
 * the rest, which needs none. */
int caps_bound(uint64_t keep) must_check;
int caps_drop(void) must_check;

#endif
