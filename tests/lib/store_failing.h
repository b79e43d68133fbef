/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_STORE_FAILING_H
#define HUTCH_TESTS_LIB_STORE_FAILING_H

/*
 * A store that fails on purpose, for tests of the layers above.
 *
 * It passes requests to another store and makes some fail: before they reach it, or after they took effect there, as when
 * a connection breaks while the reply is on its way. The result does not tell the two apart.
 */

#include "store/store.h"

enum store_failing_when {
        STORE_FAILING_NEVER,
        STORE_FAILING_NTH,    /* the n-th request from now on, counted from 1 */
        STORE_FAILING_FROM,   /* the n-th and all that follow: n = 1 is each */
        STORE_FAILING_RANDOM, /* n of 1,000, as the seed has it */
};

struct store_failing_plan {
        enum store_failing_when when;
        unsigned n;
        uint64_t seed;
        bool after;       /* after the effect; a request that failed by itself keeps its own code */
        bool writes_only; /* gets and scans pass and are not counted */
        enum err_code code; /* ERR_INTERNAL, which is 0, means ERR_UNAVAILABLE */
};

/* `inner` belongs to the new store and is closed with it. */
struct store *store_failing_open(struct store *inner) must_check;

/* From now on; counting begins anew. At first nothing fails. */
void store_failing_plan(struct store *s, const struct store_failing_plan *plan);

/* How many requests were made to fail since the plan was given. */
unsigned store_failing_count(const struct store *s);

#endif
