/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_LOOP_H
#define HUTCH_NET_LOOP_H

/*
 * One event loop: libuv's, plus the two things that make callbacks safe to write.
 *
 * Tasks. A task is a piece of work queued from anywhere and run by the loop, never from inside the
 * call that queued it. Completion of operations (net/op.h) and flushing of streams (net/stream.h)
 * are tasks. They run twice a turn: after the events of a turn were handled (uv_check), so that
 * everything a turn produced for one connection leaves in one write; and before the loop goes to
 * wait (uv_prepare), for what timers and closings produced. While tasks are left, the loop does
 * not wait.
 *
 * A turn runs only the tasks queued before it began: work that re-queues itself shares the loop
 * with everybody else.
 *
 * The read buffer is one for all streams of the loop: what is read is consumed in the same
 * callback, or copied by the one who keeps it. So an idle connection owns no buffer.
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

/* How long stats take, from the end of the wait to the next one: what an event that comes meanwhile
 * has to wait. To the millisecond, because the start is libuv's own note of it. */
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
        uv_idle_t idle; /* active while tasks are left: makes the loop not wait */
        struct list tasks;
        uint64_t tasks_run; /* how many were started so far; see op_finish_now */
        const struct clock *clock;
        char *read_buf;
        struct net_loop_stats stats;
        uint64_t _turn; /* when the present one began, in libuv's milliseconds; 0: not known */
};

int net_loop_init(struct net_loop *l, const struct clock *clock) must_check;

/* All streams, listeners and timeouts must have been closed; runs the loop until their close
 * callbacks are through. */
void net_loop_done(struct net_loop *l);

/* Runs until nothing is left to wait for. */
void net_loop_run(struct net_loop *l);

/* One turn; for tests. Does not wait when !wait. */
void net_loop_run_once(struct net_loop *l, bool wait);

/* The loop's idea of now, taken once a turn; monotonic. */
static inline usec_t net_loop_now(const struct net_loop *l)
{
        return (usec_t) uv_now(&l->uv) * USEC_PER_MSEC;
}

void net_task_init(struct net_task *t, net_task_fn *run);

/* Queued already: stays where it is. */
void net_task_queue(struct net_loop *l, struct net_task *t);
void net_task_cancel(struct net_task *t);

#endif
