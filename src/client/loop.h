/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_LOOP_H
#define HUTCH_CLIENT_LOOP_H

/*
 * The core of all calls: curl's multi-socket interface, timers, and descriptors of the library.
 *
 *         hutch_loop_event ──► curl_multi_socket_action ──► write callbacks (streams)
 *         hutch_loop_timeout ─┘            │
 *                                          ▼
 *         work: finished     exchanges, queued operations, due timers ──► done callbacks
 *
 * loop.c explains the rules.
 */

#include <curl/curl.h>

#include "base/clock.h"
#include "base/list.h"
#include "client/api.h"

struct op;

struct timer {
        struct list node; /* initialised by timer_init */
        usec_t at;
        struct op *op;
        void (*fire)(struct op *op);
};

/* A descriptor of the library, not of curl. */
struct fd_watch {
        struct list node;
        int fd;
        struct op *op;
        void (*ready)(struct op *op);
};

struct hutch_loop {
        CURLM *multi;
        struct hutch_loop_options ops;
        struct list timers; /* sorted by time */
        struct list watches;
        struct list all;   /* struct op */
        struct list queue; /* struct op, by queue_node: to begin or to cancel */
        size_t n_calls;
        usec_t curl_due; /* when curl wants to be called, or USEC_INFINITY */
        usec_t armed;    /* current setting of the caller's timer */
        bool busy;       /* in work() or below it */
        bool closing;
        bool taken;    /* a tunnel owns and frees it */
        bool *watched; /* by descriptor */
        size_t n_watched;
        int epoll;               /* of a loop without options, else -EBADF */
        int timer_fd;            /* after hutch_loop_fd, else -EBADF */
        struct hutch_loop *next; /* in the client's idle loops */
};

void timer_init(struct timer *t, struct op *op, void (*fire)(struct op *op));
void timer_set(struct hutch_loop *l, struct timer *t, usec_t at);
void timer_clear(struct timer *t);

/* events 0: stop watching. */
void loop__watch(struct hutch_loop *l, struct fd_watch *w, unsigned events);

/* The same for a descriptor of curl. */
void loop__watch_fd(struct hutch_loop *l, int fd, unsigned events);

/* Calls op__run_queued for the operation, from work(). */
void loop__queue(struct hutch_loop *l, struct op *op);

/* For a loop without options: waits once, at most timeout_ms (negative: no limit), and handles the events.
 * Returns whether `extra_fd` (if not negative) is readable. */
bool loop__run_once(struct hutch_loop *l, int64_t timeout_ms, int extra_fd);

/* The time on the clock of the timers. */
usec_t loop__now(void);

#endif
