/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_ALARM_H
#define HUTCH_NET_ALARM_H

/*
 * Any number of alarms on one timer of the loop. Alarms that are set keep the loop alive. Times are the loop's
 * (net_loop_now); an alarm never fires early, nor inside alarm_set.
 */

#include "base/tree.h"
#include "net/loop.h"

struct alarm;
typedef void alarm_fn(struct alarm *a);

struct alarm {
        struct tree_node _node; /* by time, then by order of alarm_set */
        uint64_t _key[2];       /* big-endian */
        alarm_fn *_fire;
};

struct alarms {
        struct net_loop *loop;
        struct tree _tree;
        uint64_t _seq;
        uv_timer_t *_timer; /* outlives us until the loop has closed it */
};

void alarms_init(struct alarms *as, struct net_loop *loop);

/* No alarm may be set. */
void alarms_done(struct alarms *as);

/* Must not be set, and was zeroed once. It is no longer set when it fires. */
void alarm_set(struct alarms *as, struct alarm *a, usec_t when, alarm_fn *fire);

/* Does nothing if it is not set. */
void alarm_clear(struct alarms *as, struct alarm *a);

#endif
