/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_LOOP_H
#define HUTCH_CLIENT_LOOP_H

/*
 * The one core below all calls: curl's multi-socket interface, timers, and descriptors of our own.
 *
 *         hutch_loop_event ──► curl_multi_socket_action ──► write callbacks (streams)
 *         hutch_loop_timeout ─┘            │
 *                                          ▼
 *         loop__work: finished exchanges, queued operations, due timers ──► done callbacks
 *
 * Inside curl's callbacks nothing may be added to or removed from the multi handle, and nobody's
 * `done` runs: what wants to happen then is queued, and happens in loop__work, at the top. So a
 * starting function never calls back, and a callback may start and cancel whatever it likes.
 *
 * A loop without the caller's functions waits by itself, with epoll. A blocking call has such a loop
 * to itself for its duration; the client keeps a few of them, because connections belong to a loop.
 */

#include <curl/curl.h>

#include "base/clock.h"
#include "base/list.h"
#include "client/api.h"

struct op;

struct timer {
        struct list node; /* initialised by timer_init */
        usec_t at;
        void (*fire)(struct timer *t);
};

/* A descriptor that is not curl's. */
struct watch {
        struct list node;
        int fd;
        void (*ready)(struct watch *w);
};

struct hutch_loop {
        CURLM *multi;
        struct hutch_loop_options ops;
        struct list timers; /* the next one first */
        struct list watches;
        struct list all;   /* struct op */
        struct list queue; /* struct op, by queue_node: to be begun, or given up */
        size_t n_calls;
        usec_t curl_due; /* when curl wants to be called, or USEC_INFINITY */
        usec_t armed;    /* what the caller's timer was set to */
        bool busy;       /* in loop__work or below it */
        bool closing;
        bool taken;    /* by a tunnel, which frees it */
        bool *watched; /* by descriptor */
        size_t n_watched;
        int epoll;               /* of a loop that waits by itself, else -EBADF */
        int timer_fd;            /* once somebody asked for hutch_loop_fd */
        struct hutch_loop *next; /* in the client's store */
};

void timer_init(struct timer *t, void (*fire)(struct timer *t));
void timer_set(struct hutch_loop *l, struct timer *t, usec_t at);
void timer_clear(struct timer *t);

/* events 0: no more. The watch is then the caller's again. */
void loop__watch(struct hutch_loop *l, struct watch *w, unsigned events);

/* curl is about to close it. */
void loop__unwatch(struct hutch_loop *l, int fd);

/* The operation is to be looked at (op__run_queued), from the top. */
void loop__queue(struct hutch_loop *l, struct op *op);

/* For a loop that waits by itself: one wait, of at most timeout_ms (negative: no limit), and what comes
 * of it. Returns whether `extra_fd` (if not negative) was readable. */
bool loop__run_once(struct hutch_loop *l, int64_t timeout_ms, int extra_fd);

/* Now, on the clock of the timers. */
usec_t loop__now(void);

#endif
