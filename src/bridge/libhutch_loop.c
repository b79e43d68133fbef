/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/libhutch_loop.h"

#include "base/base.h"

/* --- descriptors --- */

/* Kept while it is not watched: connections are few and reused, and so are their numbers. */
struct watch {
        uv_poll_t poll;
        struct libhutch_loop *libhutch_loop;
        int fd;
};

static void on_ready(uv_poll_t *p, int status, int events)
{
        struct watch *w = p->data;
        unsigned ready = 0;

        if (status < 0 || (events & UV_READABLE))
                ready |= HUTCH_READABLE;
        if (status < 0 || (events & UV_WRITABLE))
                ready |= HUTCH_WRITABLE;
        hutch_loop_event(w->libhutch_loop->loop, w->fd, ready);
}

static void watch(void *data, int fd, unsigned events)
{
        struct libhutch_loop *c = data;
        struct watch *w;
        size_t i = (size_t) fd;
        int watched = 0;

        if (i >= c->_n) {
                size_t n = MAX_OF(2 * c->_n, i + 1);

                c->_watches = xrealloc(c->_watches, n, sizeof(struct watch *));
                memset(c->_watches + c->_n, 0, (n - c->_n) * sizeof(struct watch *));
                c->_n = n;
        }
        w = c->_watches[i];
        if (!w) {
                w = c->_watches[i] = xnew(struct watch);
                ASSERT(uv_poll_init(&c->_net->uv, &w->poll, fd) == 0);
                w->poll.data = w;
                w->libhutch_loop = c;
                w->fd = fd;
        }
        if (events & HUTCH_READABLE)
                watched |= UV_READABLE;
        if (events & HUTCH_WRITABLE)
                watched |= UV_WRITABLE;
        if (watched)
                ASSERT(uv_poll_start(&w->poll, watched, on_ready) == 0);
        else
                ASSERT(uv_poll_stop(&w->poll) == 0);
}

/* --- time --- */

static void on_timer(uv_timer_t *t)
{
        struct libhutch_loop *c = t->data;

        hutch_loop_timeout(c->loop);
}

static void on_soon(struct net_task *t)
{
        hutch_loop_timeout(container_of(t, struct libhutch_loop, _soon)->loop);
}

static void set_timer(void *data, int64_t ms)
{
        struct libhutch_loop *c = data;

        net_task_cancel(&c->_soon);
        (void) uv_timer_stop(&c->_timer);
        if (ms == 0)
                net_task_queue(c->_net, &c->_soon);
        else if (ms > 0)
                (void) uv_timer_start(&c->_timer, on_timer, (uint64_t) ms, 0);
}

/* --- life cycle --- */

int libhutch_loop_open(struct libhutch_loop *c, struct net_loop *l)
{
        struct hutch_loop_options o = hutch_loop_options_init();

        int r;

        *c = (struct libhutch_loop){ ._net = l };
        net_task_init(&c->_soon, on_soon);
        o.watch = watch;
        o.timer = set_timer;
        o.data = c;
        r = hutch_loop_new(&o, &c->loop);
        if (r < 0)
                return r;
        ASSERT(uv_timer_init(&l->uv, &c->_timer) == 0);
        c->_timer.data = c;
        return 0;
}

static void free_watch(uv_handle_t *h)
{
        free(h->data);
}

void libhutch_loop_close(struct libhutch_loop *c)
{
        if (!c->loop)
                return;
        hutch_loop_free(TAKE_PTR(c->loop));
        net_task_cancel(&c->_soon);
        for (size_t i = 0; i < c->_n; i++)
                if (c->_watches[i])
                        uv_close((uv_handle_t *) &c->_watches[i]->poll, free_watch);
        free(TAKE_PTR(c->_watches));
        uv_close((uv_handle_t *) &c->_timer, NULL);
}
