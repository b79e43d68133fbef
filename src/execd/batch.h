/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_BATCH_H
#define HUTCH_EXECD_BATCH_H

/*
 * Work on many things for one request, without keeping the others waiting: a few milliseconds per
 * turn of the loop.
 *
 *         static const struct batch_ops ops = { .steps = { check, change }, .end = reply };
 *
 * Each step is taken for every item before the next step begins: so what can be found wrong is
 * found before anything is changed. The last step of the last item is followed by `end`, which
 * answers. A step that fails has answered, and ends the batch, as does a client that goes away.
 * Whatever way it ends, `release` is called last; no memory of the batch is used after it.
 */

#include "http/req.h"
#include "net/loop.h"

#define BATCH_STEPS_MAX 2

struct batch;

enum batch_step {
        BATCH_NEXT, /* this item is done */
        BATCH_MORE, /* not yet: the step is to be called again */
};

struct batch_ops {
        /* enum batch_step, or negative: answered. */
        int (*steps[BATCH_STEPS_MAX])(struct batch *b, size_t i);
        void (*end)(struct batch *b);
        void (*release)(struct batch *b); /* may be NULL */
};

struct batch {
        struct http_req *req;
        const struct batch_ops *ops;
        size_t n;

        struct net_task _task;
        size_t _step, _i;
};

/* Starts with the first slice at once: a small batch is over when this returns. The batch lives in
 * the request's arena, or in memory that `release` frees. */
void batch_start(struct batch *b, struct http_req *req, const struct batch_ops *ops, size_t n);

#endif
