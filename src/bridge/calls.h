/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_CALLS_H
#define HUTCH_BRIDGE_CALLS_H

/* libhutch's calls on our loop. */

#include <hutch/hutch.h>

#include "net/loop.h"

struct calls {
        struct hutch_loop *loop; /* for struct hutch_call */
        struct net_loop *_net;
        struct net_task _soon; /* the timer is due, without waiting for it */
        uv_timer_t _timer;
        struct watch **_watches; /* by descriptor */
        size_t _n;
};

/* A code of libhutch's. */
int calls_open(struct calls *c, struct net_loop *l);

/* Ends the calls that still run. The loop then has handles to close. */
void calls_close(struct calls *c);

#endif
