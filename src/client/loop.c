/* SPDX-License-Identifier: Apache-2.0 */
#include "client/loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "client/op.h"

/*
 * Theory of operation
 *
 * Two libraries meet here that both call back: curl, and the caller's program. The problem is reentrancy.
 * Inside curl's callbacks nothing may be added to or removed from the multi handle, and the caller's
 * `done` may do both, or free everything.
 *
 * The invariant: callbacks of curl only consume bytes and record events. Starting, canceling and ending an
 * operation is queued (loop__queue, curl's messages) and happens in work(), with neither curl nor a
 * starting function on the stack. So a starting function never calls back, and a callback may start and
 * cancel any call. `busy` is set meanwhile; events that the caller reports from inside a callback are
 * ignored, because the descriptor stays ready.
 *
 * One iteration:
 *
 *         event or timeout ── curl_multi_socket_action ── bytes to exchanges
 *         work, up to ROUNDS_MAX times:
 *                 take_messages   exchanges that have ended ── on_response ── next request, or done
 *                 run_queue       new operations begin, canceled ones end
 *                 run_timers      deadlines, pauses, curl's timer
 *         rearm                   sets the caller's timer if it has changed
 *
 * A loop with options uses the caller's event loop through two callbacks, watch and timer. A loop without
 * options waits with epoll. A blocking call borrows such a loop from its client, runs it until the call is
 * done, and returns it; connections belong to a loop, so the client keeps a few.
 */

/* Rounds of work() per iteration. The timer continues the rest, so that the caller does not starve. */
#define ROUNDS_MAX 4

usec_t loop__now(void)
{
        return clock_mono(&clock_system);
}

/* --- waiting: descriptors and timers --- */

/* Records whether fd is watched and returns the old value; true without memory, which skips nothing. */
static bool set_watched(struct hutch_loop *l, int fd, bool on)
{
        size_t need = (size_t) fd + 1;
        bool was;

        if (need > l->n_watched) {
                size_t n = MAX_OF(2 * l->n_watched, MAX_OF(need, 64));
                bool *more = realloc(l->watched, n * sizeof(*more));

                if (!more)
                        return true;
                memset(more + l->n_watched, 0, (n - l->n_watched) * sizeof(*more));
                l->watched = more;
                l->n_watched = n;
        }
        was = l->watched[fd];
        l->watched[fd] = on;
        return was;
}

void loop__watch_fd(struct hutch_loop *l, int fd, unsigned events)
{
        struct epoll_event e = { .data.fd = fd };

        if (!set_watched(l, fd, events != 0) && events == 0)
                return;
        if (l->ops.watch) {
                l->ops.watch(l->ops.data, fd, events);
                return;
        }
        if (events & HUTCH_READABLE)
                e.events |= EPOLLIN;
        if (events & HUTCH_WRITABLE)
                e.events |= EPOLLOUT;
        if (events == 0)
                (void) epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, &e);
        else if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &e) < 0 && errno == ENOENT)
                (void) epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e);
}

static usec_t next_due(const struct hutch_loop *l)
{
        usec_t due = l->curl_due;

        if (!list_empty(&l->queue))
                return 0;
        if (!list_empty(&l->timers))
                due = MIN_OF(due, container_of(list_first(&l->timers), struct timer, node)->at);
        return due;
}

/* Milliseconds, rounded up so that the timer is not early; negative: no timer. */
static int64_t until(usec_t due)
{
        usec_t now = loop__now();

        if (due == USEC_INFINITY)
                return -1;
        return due <= now ? 0 : (int64_t) ((due - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

static void set_timer_fd(struct hutch_loop *l, usec_t due)
{
        int64_t ms = until(due);
        struct itimerspec when = { 0 };

        if (ms >= 0) {
                when.it_value.tv_sec = ms / 1000;
                when.it_value.tv_nsec = (long) (ms % 1000) * 1000000 + (ms == 0);
        }
        (void) timerfd_settime(l->timer_fd, 0, &when, NULL);
}

static void rearm(struct hutch_loop *l)
{
        usec_t due = next_due(l);

        if (l->busy || due == l->armed)
                return;
        l->armed = due;
        if (l->ops.timer)
                l->ops.timer(l->ops.data, until(due));
        else if (l->timer_fd >= 0)
                set_timer_fd(l, due);
}

/* --- timers, watches and the queue --- */

void timer_init(struct timer *t, struct op *op, void (*fire)(struct op *op))
{
        list_init(&t->node);
        t->op = op;
        t->fire = fire;
}

void timer_clear(struct timer *t)
{
        list_remove(&t->node);
}

/* Searches from the end: a new timer is usually due last. */
void timer_set(struct hutch_loop *l, struct timer *t, usec_t at)
{
        struct list *n = &l->timers;

        timer_clear(t);
        t->at = at;
        while (n->prev != &l->timers && container_of(n->prev, struct timer, node)->at > at)
                n = n->prev;
        list_insert_before(n, &t->node);
        rearm(l);
}

void loop__watch(struct hutch_loop *l, struct fd_watch *w, unsigned events)
{
        list_remove(&w->node);
        if (events)
                list_append(&l->watches, &w->node);
        loop__watch_fd(l, w->fd, events);
}

void loop__queue(struct hutch_loop *l, struct op *op)
{
        list_remove(&op->queue_node);
        list_append(&l->queue, &op->queue_node);
        rearm(l);
}

/* --- callbacks of curl --- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
        unsigned events = 0, i = 0;
        char *private = NULL;
        struct exchange *x;

        (void) socket_data;
        (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        x = (struct exchange *) (void *) private;
        while (x && i < x->n_fds && x->fds[i] != fd)
                i++;
        if (x && what == CURL_POLL_REMOVE && i < x->n_fds)
                x->fds[i] = x->fds[--x->n_fds];
        else if (x && what != CURL_POLL_REMOVE && i == x->n_fds && i < ARRAY_SIZE(x->fds))
                x->fds[x->n_fds++] = fd;
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                events |= HUTCH_READABLE;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                events |= HUTCH_WRITABLE;
        loop__watch_fd(data, fd, events);
        return 0;
}

static int on_timer(CURLM *multi, long ms, void *data)
{
        struct hutch_loop *l = data;

        (void) multi;
        l->curl_due = ms < 0 ? USEC_INFINITY : loop__now() + (usec_t) ms * USEC_PER_MSEC;
        rearm(l);
        return 0;
}

/* --- one iteration --- */

static bool take_messages(struct hutch_loop *l)
{
        struct CURLMsg *m;
        bool any = false;
        int left;

        while ((m = curl_multi_info_read(l->multi, &left))) {
                CURLcode result = m->data.result;
                char *x = NULL;

                (void) curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
                if (m->msg == CURLMSG_DONE && x)
                        op__ended((struct exchange *) (void *) x, result);
                any = true;
        }
        return any;
}

/* Only operations that are queued now; those they queue wait for the next round. */
static bool run_queue(struct hutch_loop *l)
{
        struct list now;
        bool any = false;

        list_init(&now);
        while (!list_empty(&l->queue)) {
                struct list *n = list_first(&l->queue);

                list_remove(n);
                list_append(&now, n);
        }
        while (!list_empty(&now)) {
                struct list *n = list_first(&now);

                list_remove(n);
                op__run_queued(container_of(n, struct op, queue_node));
                any = true;
        }
        return any;
}

static bool run_timers(struct hutch_loop *l)
{
        usec_t now = loop__now();
        bool any = false;

        while (!list_empty(&l->timers)) {
                struct timer *t = container_of(list_first(&l->timers), struct timer, node);

                if (t->at > now)
                        break;
                timer_clear(t);
                t->fire(t->op);
                any = true;
        }
        if (l->curl_due <= now) {
                int running;

                l->curl_due = USEC_INFINITY;
                (void) curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
                any = true;
        }
        return any;
}

static void work(struct hutch_loop *l)
{
        for (int i = 0; i < ROUNDS_MAX; i++) {
                bool any = take_messages(l);

                any |= run_queue(l);
                any |= run_timers(l);
                if (!any)
                        return;
        }
        l->curl_due = 0; /* curl's remaining messages have no other trigger */
}

static void handle_event(struct hutch_loop *l, int fd, unsigned events)
{
        int mask = 0, running;

        list_for_each (n, &l->watches) {
                struct fd_watch *w = container_of(n, struct fd_watch, node);

                if (w->fd == fd) {
                        w->ready(w->op);
                        return;
                }
        }
        if (events & HUTCH_READABLE)
                mask |= CURL_CSELECT_IN;
        if (events & HUTCH_WRITABLE)
                mask |= CURL_CSELECT_OUT;
        (void) curl_multi_socket_action(l->multi, fd, mask, &running);
}

void hutch_loop_event(struct hutch_loop *loop, int fd, unsigned events)
{
        if (loop->busy)
                return;
        loop->busy = true;
        handle_event(loop, fd, events);
        work(loop);
        loop->busy = false;
        rearm(loop);
}

void hutch_loop_timeout(struct hutch_loop *loop)
{
        if (loop->busy)
                return;
        loop->busy = true;
        loop->armed = USEC_INFINITY; /* it has fired */
        work(loop);
        loop->busy = false;
        rearm(loop);
}

/* --- loops without options --- */

bool loop__run_once(struct hutch_loop *l, int64_t timeout_ms, int extra_fd)
{
        struct epoll_event events[64];
        int64_t due_ms = until(next_due(l)); /* negative: never, as for timeout_ms */
        int64_t wait = timeout_ms < 0 || due_ms < 0 ? MAX_OF(timeout_ms, due_ms)
                                                    : MIN_OF(timeout_ms, due_ms);
        bool extra = false;
        int n = epoll_wait(l->epoll, events, ARRAY_SIZE(events), (int) MIN_OF(wait, 1 << 30));

        l->busy = true;
        for (int i = 0; i < n; i++) {
                uint32_t what = events[i].events;
                unsigned ready = 0;

                if (events[i].data.fd == extra_fd) {
                        extra = true;
                        continue;
                }
                if (events[i].data.fd == l->timer_fd) /* rearmed below, which clears it */
                        continue;
                if (what & (EPOLLIN | EPOLLERR | EPOLLHUP))
                        ready |= HUTCH_READABLE;
                if (what & (EPOLLOUT | EPOLLERR | EPOLLHUP))
                        ready |= HUTCH_WRITABLE;
                handle_event(l, events[i].data.fd, ready);
        }
        work(l);
        l->busy = false;
        if (l->timer_fd >= 0)
                l->armed = 1; /* never a real time: forces rearm */
        rearm(l);
        return extra;
}

int hutch_loop_run(struct hutch_loop *loop, int64_t timeout_ms)
{
        usec_t end = USEC_INFINITY;

        if (loop->epoll < 0 || loop->busy)
                return HUTCH_INVALID;
        if (timeout_ms >= 0)
                end = usec_add(loop__now(), (usec_t) timeout_ms * USEC_PER_MSEC);
        while (loop->n_calls > 0) {
                (void) loop__run_once(loop, end == USEC_INFINITY ? -1 : until(end), -1);
                if (loop__now() >= end)
                        break;
        }
        return (int) MIN_OF(loop->n_calls, (size_t) INT32_MAX);
}

int hutch_loop_fd(struct hutch_loop *loop)
{
        struct epoll_event e = { .events = EPOLLIN };

        if (loop->epoll < 0)
                return HUTCH_INVALID;
        if (loop->timer_fd < 0) {
                loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
                e.data.fd = loop->timer_fd;
                if (loop->timer_fd < 0)
                        return HUTCH_LOCAL;
                (void) epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->timer_fd, &e);
                set_timer_fd(loop, next_due(loop));
        }
        return loop->epoll;
}

size_t hutch_loop_calls(const struct hutch_loop *loop)
{
        return loop->n_calls;
}

/* --- life cycle --- */

int hutch_loop_new(const struct hutch_loop_options *options, struct hutch_loop **ret)
{
        struct hutch_loop *l;

        if (!ret || (options && (!options->watch || !options->timer)))
                return HUTCH_INVALID;
        l = calloc(1, sizeof(*l));
        if (!l)
                return HUTCH_NO_MEMORY;
        list_init(&l->timers);
        list_init(&l->watches);
        list_init(&l->all);
        list_init(&l->queue);
        l->curl_due = l->armed = USEC_INFINITY;
        l->epoll = l->timer_fd = -EBADF;
        if (options && options_copy(&l->ops, sizeof(l->ops), options) < 0) {
                free(l);
                return HUTCH_UNSUPPORTED;
        }
        (void) curl_global_init(CURL_GLOBAL_DEFAULT);
        l->multi = curl_multi_init();
        if (!options)
                l->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (!l->multi || (!options && l->epoll < 0)) {
                hutch_loop_free(l);
                return HUTCH_NO_MEMORY;
        }
        (void) curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        (void) curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
        (void) curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        (void) curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
        *ret = l;
        return 0;
}

void hutch_loop_free(struct hutch_loop *loop)
{
        if (!loop)
                return;
        loop->closing = loop->busy = true;
        while (!list_empty(&loop->all))
                op__cancel_now(container_of(list_first(&loop->all), struct op, node));
        if (loop->ops.timer && loop->armed != USEC_INFINITY)
                loop->ops.timer(loop->ops.data, -1);
        if (loop->multi)
                (void) curl_multi_cleanup(loop->multi);
        if (loop->timer_fd >= 0)
                (void) close(loop->timer_fd);
        if (loop->epoll >= 0)
                (void) close(loop->epoll);
        free(loop->watched);
        free(loop);
        curl_global_cleanup();
}
