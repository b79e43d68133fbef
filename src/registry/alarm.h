/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_ALARM_H
#define HUTCH_REGISTRY_ALARM_H

/*
 * Any number of alarms, each at a time of its own, on one timer of the loop. Those that are set keep
 * the loop alive. Times are the loop's (net_loop_now); an alarm never rings early, nor inside
 * alarm_set.
 */

#include "base/tree.h"
#include "store/store.h"

struct alarm;
typedef void alarm_fn(struct alarm *a);

struct alarm {
        struct tree_node _node; /* by time, then by turn */
        uint64_t _key[2];       /* big-endian */
        alarm_fn *_ring;
};

struct alarms {
        struct net_loop *loop;
        struct tree _tree;
        uint64_t _turn;
        uv_timer_t *_timer; /* outlives us until the loop has closed it */
};

void alarms_init(struct alarms *as, struct net_loop *loop);

/* None may be set. */
void alarms_done(struct alarms *as);

/* Must not be set, and was zeroed once. It is not set any more when it rings. */
void alarm_set(struct alarms *as, struct alarm *a, usec_t when, alarm_fn *ring);

/* Fine for one that is not set. */
void alarm_clear(struct alarms *as, struct alarm *a);

#endif
