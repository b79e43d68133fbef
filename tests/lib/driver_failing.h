/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_DRIVER_FAILING_H
#define HUTCH_TESTS_LIB_DRIVER_FAILING_H

/*
 * A driver that breaks on purpose, for the tests of what stands on a driver.
 *
 * It passes calls to another driver and lets some fail: before they reach it, or after they took
 * effect there, which is what an engine that dies while it answers looks like. A create that fails
 * after its effect leaves its sandbox behind, as a real one may: whoever requests has to destroy it.
 */

#include "driver/driver_impl.h"

enum driver_failing_when {
        DRIVER_FAILING_NEVER,
        DRIVER_FAILING_NTH,    /* the n-th call from now on, counted from 1 */
        DRIVER_FAILING_FROM,   /* the n-th and all that follow: n = 1 is each */
        DRIVER_FAILING_RANDOM, /* n of 1,000, as the seed has it */
};

struct driver_failing_plan {
        enum driver_failing_when when;
        unsigned n;
        uint64_t seed;
        unsigned calls; /* kinds that may fail and are counted, 1U << enum driver_call; 0: all */
        bool after;     /* after the effect; a call that failed by itself keeps its own code */
        enum err_code code; /* ERR_INTERNAL, which is 0, means ERR_UNAVAILABLE */
};

/* `inner` belongs to the new driver and is closed with it. It has the name and caps of `inner`, and
 * passes its events on. */
struct driver *driver_failing_open(struct driver *inner) must_check;

/* From now on; counting begins anew. At first nothing fails. */
void driver_failing_plan(struct driver *d, const struct driver_failing_plan *plan);

/* How many calls were made to fail since the plan was given. */
unsigned driver_failing_count(const struct driver *d);

#endif
