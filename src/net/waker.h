/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_WAKER_H
#define HUTCH_NET_WAKER_H

/*
 * One absolute time at which the loop is woken.
 *
 * libuv's timers run on CLOCK_MONOTONIC, which stands still while the machine sleeps: what should
 * have ended during the night would end hours after the morning. This one is a timerfd on
 * CLOCK_BOOTTIME, the clock of base/clock.h, and fires right after the machine wakes up.
 *
 * It wakes, and that is all: who owns many deadlines keeps them in order, sets this one to the
 * first, and looks at the clock when it fires. It may fire early (a clock of tests is not the
 * kernel's), so that look is needed.
 */

#include "net/loop.h"

struct waker;
typedef void waker_fn(struct waker *w);

struct waker {
        struct net_loop *loop;
        const struct clock *clock;
        waker_fn *fired; /* it is off when this is called */
        waker_fn *_closed;
        uv_poll_t _poll;
        int _fd;
        bool _closing;
};

/* A negative errno if the kernel has no descriptor to give. */
int waker_open(struct waker *w, struct net_loop *l, const struct clock *clock, waker_fn *fired)
        must_check;

/* At this time of its clock, which may be over: then in the next turn of the loop. Takes the place of
 * what was set before. */
void waker_set(struct waker *w, usec_t at);

/* `closed` (may be NULL) comes from the loop; the memory must stay until then. */
void waker_close(struct waker *w, waker_fn *closed);

#endif
