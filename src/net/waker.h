/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_WAKER_H
#define HUTCH_NET_WAKER_H

/*
 * A timer for one absolute time that also counts suspend.
 *
 * libuv's timers run on CLOCK_MONOTONIC, which stops while the host is suspended: a sandbox that
 * should have expired during the night would expire hours after the morning. This one is a timerfd on
 * CLOCK_BOOTTIME, the clock of base/clock.h, and fires right after the host resumes.
 *
 * An owner of many deadlines keeps them sorted, sets the waker to the first one, and reads the clock
 * when it fires. It may fire early (a test's clock is not the kernel's).
 */

#include "net/loop.h"

struct waker;
typedef void waker_fn(struct waker *w);

struct waker {
        struct net_loop *loop;
        const struct clock *clock;
        waker_fn *fired; /* not set any more when this is called */
        waker_fn *_closed;
        uv_poll_t _poll;
        int _fd;
        bool _closing;
};

/* Fails with a negative errno if there is no descriptor left. */
int waker_open(struct waker *w, struct net_loop *l, const struct clock *clock, waker_fn *fired)
        must_check;

/* Fires at this time of its clock, or in the next iteration if that has passed. Replaces the time set
 * before. */
void waker_set(struct waker *w, usec_t at);

/* `closed` (may be NULL) is called from the loop; the memory must stay valid until then. */
void waker_close(struct waker *w, waker_fn *closed);

#endif
