/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/batch.h"

#include "base/base.h"
#include "execd/agent.h"

#define SLICE (2 * USEC_PER_MSEC)

static void finish(struct batch *b)
{
        struct http_req *req = b->req;

        net_task_cancel(&b->_task);
        http_req_set_hooks(req, NULL, NULL);
        if (b->ops->release)
                b->ops->release(b);
        http_req_unref(req);
}

static bool has_step(const struct batch *b)
{
        return b->_step < BATCH_STEPS_MAX && b->ops->steps[b->_step];
}

/* 1: there is more to do; 0: all is done; negative: answered. */
static int advance(struct batch *b)
{
        int r = BATCH_NEXT;

        if (b->_i < b->n)
                r = b->ops->steps[b->_step](b, b->_i);
        if (r < 0 || r == BATCH_MORE)
                return r;
        b->_i++;
        if (b->_i < b->n)
                return 1;
        b->_i = 0;
        b->_step++;
        return has_step(b);
}

static void run_slice(struct batch *b)
{
        const struct clock *clock = agent_of(b->req)->clock;
        usec_t end = usec_add(clock_mono(clock), SLICE);
        int r;

        do {
                r = advance(b);
        } while (r > 0 && clock_mono(clock) < end);
        if (r > 0) {
                net_task_queue(agent_of(b->req)->loop, &b->_task);
                return;
        }
        if (r == 0)
                b->ops->end(b);
        finish(b);
}

static void run_task(struct net_task *t)
{
        run_slice(container_of(t, struct batch, _task));
}

static void batch_abort(struct http_req *req, int reason)
{
        (void) reason;
        finish(req->data);
}

void batch_start(struct batch *b, struct http_req *req, const struct batch_ops *ops, size_t n)
{
        static const struct http_hooks hooks = { .abort = batch_abort };

        b->req = http_req_ref(req);
        b->ops = ops;
        b->n = n;
        b->_step = b->_i = 0;
        net_task_init(&b->_task, run_task);
        http_req_set_hooks(req, &hooks, b);
        run_slice(b);
}
