/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIBHUTCH_OWN_LOOP_H
#define HUTCH_TESTS_LIBHUTCH_OWN_LOOP_H

/*
 * An event loop as another program has one: epoll and one timer, driven by the library's
 * watch and timer callbacks. It aborts when the library breaks its promises.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <hutch/hutch.h>

#define OWN_LOOP_FDS 4096

struct own_loop {
        int epoll_fd;
        int64_t due_ms; /* negative: never */
        bool inside;    /* of a function of the library's that handles events */
        bool watched[OWN_LOOP_FDS];
        struct hutch_loop *loop;
};

static inline int64_t own_loop_now(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void own_loop_watch(void *data, int fd, unsigned events)
{
        struct own_loop *l = data;
        struct epoll_event e = { .data.fd = fd };
        int op;

        if (fd < 0 || fd >= OWN_LOOP_FDS)
                abort();
        op = !l->watched[fd] ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
        e.events = (events & HUTCH_READABLE ? (uint32_t) EPOLLIN : 0)
                   | (events & HUTCH_WRITABLE ? (uint32_t) EPOLLOUT : 0);
        if (!events && !l->watched[fd])
                return;
        /* Told to stop before it is closed, so this can't fail. */
        if (epoll_ctl(l->epoll_fd, op, fd, &e) < 0)
                abort();
        l->watched[fd] = events != 0;
}

static void own_loop_timer(void *data, int64_t ms)
{
        struct own_loop *l = data;

        l->due_ms = ms < 0 ? -1 : own_loop_now() + ms;
}

static inline int own_loop_init(struct own_loop *l, struct hutch_loop **ret)
{
        struct hutch_loop_options o = hutch_loop_options_init();
        int r;

        memset(l, 0, sizeof(*l));
        l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        l->due_ms = -1;
        o.watch = own_loop_watch;
        o.timer = own_loop_timer;
        o.data = l;
        r = hutch_loop_new(&o, ret);
        if (r < 0)
                (void) close(l->epoll_fd);
        else
                l->loop = *ret;
        return r;
}

/* Waits for one round of events. */
static inline void own_loop_turn(struct own_loop *l)
{
        struct epoll_event events[64];
        int64_t now = own_loop_now();
        int wait = l->due_ms < 0 ? -1 : l->due_ms <= now ? 0 : (int) (l->due_ms - now);
        int n = epoll_wait(l->epoll_fd, events, 64, wait);

        for (int i = 0; i < n; i++) {
                unsigned what = events[i].events;
                bool both = what & (EPOLLERR | EPOLLHUP);

                if (!l->watched[events[i].data.fd])
                        continue; /* by a callback, in this very round */
                hutch_loop_event(l->loop, events[i].data.fd,
                                 (what & EPOLLIN || both ? HUTCH_READABLE : 0)
                                         | (what & EPOLLOUT || both ? HUTCH_WRITABLE : 0));
        }
        if (l->due_ms >= 0 && own_loop_now() >= l->due_ms) {
                l->due_ms = -1;
                hutch_loop_timeout(l->loop);
        }
}

/* After hutch_loop_free: nothing may be watched any more. */
static inline void own_loop_done(struct own_loop *l)
{
        for (int fd = 0; fd < OWN_LOOP_FDS; fd++)
                if (l->watched[fd])
                        abort();
        (void) close(l->epoll_fd);
}

#endif
