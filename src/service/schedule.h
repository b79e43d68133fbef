/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SCHEDULE_H
#define HUTCH_SERVICE_SCHEDULE_H

/*
 * What is to be done at which time: a tree of deadlines in order, and one waker for the first.
 *
 * Deadlines are on the monotonic clock and the waker is the kernel's on that clock, so a machine
 * that slept finds what is due when it wakes. Any number may be due at once: they are taken in order, a
 * few at a time, and the loop turns in between: what they set off is not over when they return.
 */

#include "base/tree.h"
#include "net/waker.h"

#define SCHEDULE_BATCH 16
#define SCHEDULE_SLICE (2 * USEC_PER_MSEC) /* of a turn; what remains has its place in the next */

struct deadline;
typedef void deadline_fn(struct deadline *d);

struct deadline {
        struct tree_node node;
        unsigned char key[16]; /* time and number, big-endian: the order of the tree */
        usec_t at;
        deadline_fn *reached; /* it is no longer set when this is called, and may be freed */
};

struct schedule {
        struct net_loop *loop;
        const struct clock *clock;
        struct waker waker;
        struct tree deadlines;
        struct net_task rest;
        uint64_t numbers;
        usec_t armed; /* USEC_INFINITY: not */
        bool closing;
        void (*closed)(struct schedule *s);
};

/* A negative errno. */
int schedule_open(struct schedule *s, struct net_loop *l, const struct clock *clock) must_check;

/* Nothing is reached any more; what is set may still be cleared. */
void schedule_close(struct schedule *s, void (*closed)(struct schedule *s));

void deadline_init(struct deadline *d, deadline_fn *reached);

/* Set already: moves. USEC_INFINITY: never. */
void deadline_set(struct schedule *s, struct deadline *d, usec_t at);
void deadline_clear(struct schedule *s, struct deadline *d);

/* Looks at the clock now: for tests, whose clocks ring no bell. */
void schedule_run_due(struct schedule *s);

#endif
