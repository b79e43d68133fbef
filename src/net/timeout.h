/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_TIMEOUT_H
#define HUTCH_NET_TIMEOUT_H

/*
 * Timeouts of one length, for any number of things.
 *
 * A server has a few kinds of timeout (head, idle, body, write) and thousands of connections. All
 * timeouts of a kind are equally long, so they expire in the order in which they were set: a queue with
 * one timer for its head is enough, setting and clearing cost a few pointers, and the queue is also the
 * list of connections by waiting time.
 */

#include "net/loop.h"

struct timeout;
typedef void timeout_fn(struct timeout *t);

struct timeout_kind {
        struct net_loop *loop;
        usec_t length;
        timeout_fn *expired; /* the timeout is already cleared when this is called */
        struct list queue;   /* earliest first */
        uv_timer_t timer;
};

struct timeout {
        struct list node;
        struct timeout_kind *kind; /* NULL: not set */
        usec_t deadline;
};

void timeout_kind_init(struct timeout_kind *k, struct net_loop *l, usec_t length,
                       timeout_fn *expired);

/* Clears all and closes the timer; the memory must stay valid until the loop has run once more. */
void timeout_kind_close(struct timeout_kind *k);

void timeout_init(struct timeout *t);

/* Restarts one that is already set, of this or another kind. */
void timeout_set(struct timeout *t, struct timeout_kind *k);
void timeout_clear(struct timeout *t);

/* The one that was set first, or NULL. */
struct timeout *timeout_oldest(struct timeout_kind *k);

#endif
