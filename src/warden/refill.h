/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_REFILL_H
#define HUTCH_WARDEN_REFILL_H

/*
 * When a pool is to be filled again.
 *
 * Who has just taken one is likely to take another: what is made ahead is made when nobody waits. But
 * under a load that has no end it would never be quiet, so the fewer are left, the shorter the rest.
 */

#include "base/clock.h"

/* How long to rest after one was taken of a pool that is to have `depth`, if `left` are left. */
static inline usec_t refill_delay(unsigned left, unsigned depth)
{
        if (left > depth / 2)
                return 100 * USEC_PER_MSEC;
        return left > depth / 8 ? 10 * USEC_PER_MSEC : 0;
}

#endif
