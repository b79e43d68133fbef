/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_LIBHUTCH_LOOP_H
#define HUTCH_BRIDGE_LIBHUTCH_LOOP_H

/* Runs the calls of libhutch on our loop. */

#include <hutch/hutch.h>

#include "net/loop.h"

struct libhutch_loop {
        struct hutch_loop *loop; /* for struct hutch_call */
        struct net_loop *_net;
        struct net_task _soon; /* the timer is due at once */
        uv_timer_t _timer;
        struct watch **_watches; /* by descriptor */
        size_t _n;
};

/* Returns a code of libhutch. */
int libhutch_loop_open(struct libhutch_loop *c, struct net_loop *l);

/* Ends the calls that still run. The loop then has handles to close. */
void libhutch_loop_close(struct libhutch_loop *c);

#endif
