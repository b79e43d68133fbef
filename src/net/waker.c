/* SPDX-License-Identifier: Apache-2.0 */
#include "net/waker.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct waker *w = container_of(h, struct waker, _poll);
        uint64_t times;

        (void) status;
        (void) events;
        /* It was set again since the event: it has not fired for the new time. */
        if (read(w->_fd, &times, sizeof(times)) < 0)
                return;
        if (!w->_closing)
                w->fired(w);
}

int waker_open(struct waker *w, struct net_loop *l, const struct clock *clock, waker_fn *fired)
{
        scoped(fd_closep) int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        int r;

        if (fd < 0)
                return -errno;
        *w = (struct waker){ .loop = l, .clock = clock, .fired = fired, ._fd = fd };
        r = uv_poll_init(&l->uv, &w->_poll, fd);
        if (r < 0)
                return r;
        r = uv_poll_start(&w->_poll, UV_READABLE, poll_cb);
        ASSERT(r == 0);
        uv_unref((uv_handle_t *) &w->_poll);
        (void) TAKE_FD(fd);
        return 0;
}

#define FAR_AWAY (INT32_MAX * USEC_PER_SEC) /* 68 years: safe in any time_t */

void waker_set(struct waker *w, usec_t at)
{
        struct itimerspec when = { 0 };
        usec_t now = clock_mono(w->clock), t = at;

        if (w->clock != &clock_system) /* a test's: the kernel's time when it will show `at` */
                t = usec_add(clock_mono(&clock_system), at > now ? at - now : 0);
        t = MIN_OF(MAX_OF(t, (usec_t) 1), FAR_AWAY); /* 0 would disarm it */
        when.it_value.tv_sec = (time_t) (t / USEC_PER_SEC);
        when.it_value.tv_nsec = (long) (t % USEC_PER_SEC) * 1000;

        /* Fails on a bad descriptor or bad numbers only. */
        ASSERT(timerfd_settime(w->_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

static void close_cb(uv_handle_t *h)
{
        struct waker *w = container_of(h, struct waker, _poll);

        w->_fd = fd_close(w->_fd);
        if (w->_closed)
                w->_closed(w);
}

void waker_close(struct waker *w, waker_fn *closed)
{
        ASSERT(!w->_closing);
        w->_closing = true;
        w->_closed = closed;
        uv_close((uv_handle_t *) &w->_poll, close_cb);
}
