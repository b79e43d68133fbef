/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_BACKOFF_H
#define HUTCH_NET_BACKOFF_H

/*
 * How long to wait before the next attempt: the delay doubles with each failure, from `min` to `max`,
 * and starts over after a success.
 */

#include "base/clock.h"
#include "base/compiler.h"

struct backoff {
        usec_t min, max;
        unsigned failures; /* since the last success */
};

/* The delay after one more failure. */
static inline usec_t backoff_next(struct backoff *b)
{
        usec_t delay = b->min << MIN_OF(b->failures, 20U);

        b->failures++;
        return MIN_OF(delay, b->max);
}

static inline void backoff_reset(struct backoff *b)
{
        b->failures = 0;
}

#endif
