/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_LOOP_H
#define HUTCH_NET_LOOP_H

/*
 * One event loop: libuv's, plus tasks, which make callbacks safe to write.
 *
 * Tasks. A task is work queued from anywhere and run by the loop, never from inside the call that
 * queued it. Completion of operations (net/op.h) and flushing of streams (net/stream.h) are tasks. They
 * run twice in each iteration: after the events were handled (uv_check), so that all output of an
 * iteration for one connection leaves in one write; and before the loop waits (uv_prepare), for work
 * that timers and close callbacks queued. While tasks are queued, the loop does not wait.
 *
 * An iteration runs only the tasks queued before it began, so work that queues itself again shares the
 * loop with everything else.
 *
 * All streams of the loop share one read buffer: input is consumed in the same callback or copied by
 * whoever keeps it. So an idle connection owns no buffer.
 */

#include <uv.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/list.h"

#define NET_READ_SIZE (64 * KiB)

struct net_task;
typedef void net_task_fn(struct net_task *t);

struct net_task {
        struct list node;
        net_task_fn *run;
};

/* How long iterations take, from the end of the wait to the next one: the delay of an event that
 * arrives meanwhile. In milliseconds, because libuv's own time of the start is used. */
#define NET_LOOP_BUCKETS 9
extern const unsigned net_loop_bounds_ms[NET_LOOP_BUCKETS - 1]; /* the last bucket has none */

struct net_loop_stats {
        uint64_t buckets[NET_LOOP_BUCKETS]; /* not cumulative */
        uint64_t msec;                      /* sum */
        uint64_t slowest;                   /* milliseconds */
};

struct net_loop {
        uv_loop_t uv;
        uv_prepare_t prepare;
        uv_check_t check;
        uv_idle_t idle; /* active while tasks are queued: keeps the loop from waiting */
        struct list tasks;
        uint64_t tasks_run; /* how many were started so far; see op_finish_now */
        const struct clock *clock;
        char *read_buf;
        struct net_loop_stats stats;
        uint64_t _started; /* start of the current iteration, in libuv's milliseconds; 0: unknown */
};

int net_loop_init(struct net_loop *l, const struct clock *clock) must_check;

/* All streams, listeners and timeouts must have been closed; runs the loop until their close callbacks
 * have run. */
void net_loop_done(struct net_loop *l);

/* Runs until there is nothing left to wait for. */
void net_loop_run(struct net_loop *l);

/* One iteration; without `wait` it does not wait for events. */
void net_loop_run_once(struct net_loop *l, bool wait);

/* Monotonic time, read once per iteration. */
static inline usec_t net_loop_now(const struct net_loop *l)
{
        return (usec_t) uv_now(&l->uv) * USEC_PER_MSEC;
}

void net_task_init(struct net_task *t, net_task_fn *run);

/* A task that is queued already keeps its position. */
void net_task_queue(struct net_loop *l, struct net_task *t);
void net_task_cancel(struct net_task *t);

#endif
