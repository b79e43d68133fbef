/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_REFILL_H
#define HUTCH_WARDEN_REFILL_H

/*
 * When to refill a pool.
 *
 * A client that took one is likely to take another, so pools are refilled when no client waits. A load
 * that never pauses would then never let them be refilled: the fewer are left, the shorter the delay.
 */

#include "base/clock.h"

/* The delay after one was taken from a pool of `depth`, if `left` are left. */
static inline usec_t refill_delay(unsigned left, unsigned depth)
{
        if (left > depth / 2)
                return 100 * USEC_PER_MSEC;
        return left > depth / 8 ? 10 * USEC_PER_MSEC : 0;
}

/* Milliseconds from now until `then`, rounded up; for epoll_wait and poll. */
static inline int refill_timeout(usec_t then)
{
        const usec_t now = clock_mono(&clock_system);

        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

#endif
