/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_TIMEOUT_H
#define HUTCH_NET_TIMEOUT_H

/*
 * Timeouts of one length, for any number of things.
 *
 * A server has a few kinds of timeout (head, idle, body, write) and thousands of connections. All
 * timeouts of a kind last equally long, so they end in the order in which they were set: a queue
 * with one timer at its head does, setting and clearing cost a few pointers, and the queue doubles
 * as a list of who has waited longest.
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

/* Clears all and closes the timer; the memory must stay until the loop ran once more. */
void timeout_kind_close(struct timeout_kind *k);

void timeout_init(struct timeout *t);

/* Set already, of this or another kind: starts anew. */
void timeout_set(struct timeout *t, struct timeout_kind *k);
void timeout_clear(struct timeout *t);

/* The one that was set longest ago, or NULL. */
struct timeout *timeout_oldest(struct timeout_kind *k);

#endif
