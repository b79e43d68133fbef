/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CAPS_H
#define HUTCH_OS_CAPS_H

/*
 * Dropping capabilities of the calling process; sets are bits: CAP_BIT(CAP_CHOWN).
 *
 * The bounding set comes first, because dropping from it needs a capability (CAP_SETPCAP) that may not be
 * among those kept.
 */

#include <linux/capability.h>

#include "base/compiler.h"

#define CAP_BIT(cap) (1ULL << (cap))

/* Reduces bounding, permitted and effective sets to `keep`; inheritable and ambient become empty. */
int caps_reduce(uint64_t keep) must_check;

/* In two steps, for a caller that changes its user in between: the bounding set, which needs a
 * capability; then all other sets, which need none. */
int caps_bound(uint64_t keep) must_check;
int caps_drop(void) must_check;

#endif
