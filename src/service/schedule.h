/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SCHEDULE_H
#define HUTCH_SERVICE_SCHEDULE_H

/*
 * Deadlines: a tree in order of time, and one timer for the first.
 *
 * Deadlines are on CLOCK_BOOTTIME and so is the kernel's timer: a host that was suspended handles what is due when it
 * resumes. Any number may be due at once. They run in order, a few per iteration of the loop, because what each sets
 * off is not over when it returns.
 */

#include "base/tree.h"
#include "net/waker.h"

#define SCHEDULE_BATCH 16
#define SCHEDULE_SLICE (2 * USEC_PER_MSEC) /* of an iteration; the remainder runs in the next */

struct deadline;
typedef void deadline_fn(struct deadline *d);

struct deadline {
        struct tree_node node;
        uint64_t key[2]; /* time and number, big-endian: the order of the tree */
        usec_t at;
        deadline_fn *reached; /* it is no longer set then, and may be freed */
};

struct schedule {
        struct net_loop *loop;
        const struct clock *clock;
        struct waker waker;
        struct tree deadlines;
        struct net_task remainder;
        uint64_t numbers;
        usec_t armed; /* USEC_INFINITY: not */
        bool closing;
        void (*closed)(struct schedule *s);
};

/* A negative errno. */
int schedule_open(struct schedule *s, struct net_loop *l, const struct clock *clock) must_check;

/* No deadline is reached any more; those that are set may still be cleared. */
void schedule_close(struct schedule *s, void (*closed)(struct schedule *s));

void deadline_init(struct deadline *d, deadline_fn *reached);

/* Moves it if it is set. USEC_INFINITY: never. */
void deadline_set(struct schedule *s, struct deadline *d, usec_t at);
void deadline_clear(struct schedule *s, struct deadline *d);

/* Runs what is due now: for tests, whose clocks set off no timer. */
void schedule_run_due(struct schedule *s);

#endif
