/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/broker_conn.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

/*
 * Theory of operation.
 *
 * The client libraries of all three brokers block while they connect: they resolve names, negotiate TLS and wait for
 * the broker. So a thread connects and subscribes, and ends; it wakes the loop, which joins it. From then on the
 * connection belongs to the loop: a uv_poll handle watches the descriptor, and the library reads and writes when it is
 * ready. The transport is used by one thread at a time, so there are no locks and no queue between threads, and a
 * command never changes threads.
 *
 * Between attempts there is a delay that doubles and has a random part, so that a hundred bridges do not reconnect in
 * the same millisecond.
 *
 * Libraries report messages and confirmations from inside their own functions. These are only put into lists
 * (_inbound, _completed) there; a task of the loop calls the hooks. The same task takes a connection down that has
 * failed. So a hook may do anything, and a connection never ends under a library that is still running.
 *
 * Sending is a task, too: all messages of an iteration go out with one write. Acknowledgements, for which no one waits,
 * go with them or a few milliseconds later: sent at once, they would wake the broker on a processor that hutchd needs
 * for the command.
 *
 * When a connection breaks, every message in `sent` or `_unsent` completes as OUTCOME_LOST. Messages that came in and
 * were not dispatched yet are dropped if the broker delivers them again, else they are still dispatched.
 */

#define ACCEPT_MS     1 /* delay of acknowledgements */
#define OWN_MS        5 /* delay of what a library writes by itself, such as pings */
#define TCP_TIMEOUT_S 20

/* --- messages --- */

#define ADDRESS_MAX (64 * KiB)

struct incoming *incoming_new(void)
{
        struct incoming *m = xnew(struct incoming);

        list_init(&m->node);
        buf_init(&m->body, MESSAGE_MAX);
        buf_init(&m->reply_to, ADDRESS_MAX);
        buf_init(&m->correlation, ADDRESS_MAX);
        m->timeout = USEC_INFINITY;
        return m;
}

void incoming_free(struct incoming *m)
{
        if (!m)
                return;
        buf_done(&m->body);
        buf_done(&m->reply_to);
        buf_done(&m->correlation);
        free(m);
}

/* --- for transports --- */

/* While the thread connects, it may only append: the loop dispatches later. */
void broker_conn_deliver(struct broker_conn *w, struct incoming *m)
{
        m->epoch = w->epoch;
        list_append(&w->_inbound, &m->node);
        if (w->_state == BROKER_CONN_UP)
                net_task_queue(w->_loop, &w->_dispatch);
}

void broker_conn_sent(struct broker_conn *w, struct outgoing *m, enum outcome outcome)
{
        list_remove(&m->node);
        m->outcome = outcome;
        list_append(&w->_completed, &m->node);
        net_task_queue(w->_loop, &w->_dispatch);
}

/* A connection that failed is taken down by the task, not here, inside a library. */
static void note_result(struct broker_conn *w, int r)
{
        w->_failed = r < 0;
        if (w->_failed)
                net_task_queue(w->_loop, &w->_dispatch);
}

static bool is_up(const struct broker_conn *w)
{
        return w->_state == BROKER_CONN_UP && !w->_failed;
}

void broker_conn_wake(struct broker_conn *w)
{
        (void) uv_async_send(&w->_wake);
}

/* --- the descriptor --- */

/* A duplicate of the library's descriptor. The library closes its own whenever it finds that the connection is over,
 * and libuv must not watch a number that is closed or reused. */
struct watched {
        uv_poll_t poll;
        struct broker_conn *broker_conn;
        int fd;
        int events; /* of libuv's, that are waited for */
};

static void on_ready(uv_poll_t *p, int status, int events);

static int watch(struct broker_conn *w, struct err *e)
{
        /* Some libraries block until all they write is taken, or the rest of what they read is there. If the broker
         * takes nothing for this long, or its host does not respond, the kernel ends the connection and with it the
         * blocking. */
        static const struct {
                int level, name, value;
        } options[] = {
                { IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_TIMEOUT_S * 1000 },
                { IPPROTO_TCP, TCP_KEEPIDLE, TCP_TIMEOUT_S / 4 },
                { IPPROTO_TCP, TCP_KEEPINTVL, TCP_TIMEOUT_S / 4 },
                { IPPROTO_TCP, TCP_KEEPCNT, 3 },
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
        };
        int fd = fcntl(w->ops->fd(w), F_DUPFD_CLOEXEC, 3), r;
        struct watched *d;

        if (fd < 0)
                return err_errno(e, -errno, "watch the connection to the broker");
        d = xnew(struct watched);
        d->broker_conn = w;
        d->fd = fd;
        r = uv_poll_init(&w->_loop->uv, &d->poll, fd);
        if (r < 0) {
                (void) close(fd);
                free(d);
                return err_errno(e, r, "watch the connection to the broker");
        }
        d->poll.data = d;
        w->_watched = d;
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                (void) setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                                  sizeof(options[i].value));
        return 0;
}

static void free_watched(uv_handle_t *h)
{
        free(h->data);
}

static bool wants_write(struct broker_conn *w)
{
        return w->ops->wants_write && w->ops->wants_write(w);
}

static void wait_for_broker(struct broker_conn *w)
{
        int events = UV_READABLE;

        if (!is_up(w))
                return;
        if (wants_write(w))
                events |= UV_WRITABLE;
        if (events == w->_watched->events)
                return;
        w->_watched->events = events;
        ASSERT(uv_poll_start(&w->_watched->poll, events, on_ready) == 0);
}

/* --- reading and writing --- */

static void on_later(uv_timer_t *t)
{
        struct broker_conn *w = t->data;

        net_task_queue(w->_loop, &w->_send);
}

static void schedule_send(struct broker_conn *w, uint64_t ms)
{
        if (!uv_is_active((uv_handle_t *) &w->_later))
                (void) uv_timer_start(&w->_later, on_later, ms, 0);
}

/* A connection that is down is quiet, too. */
static void check_quiet(struct broker_conn *w)
{
        if (!w->_paused || w->_quiet)
                return;
        w->_quiet = !is_up(w) || !w->ops->is_quiet || w->ops->is_quiet(w);
        if (w->_quiet)
                net_task_queue(w->_loop, &w->_dispatch);
}

bool broker_conn_is_quiet(const struct broker_conn *w)
{
        return w->_quiet;
}

/* Lets the library of a watched connection read and write. Also called without events: it may have read messages
 * already, or want to write by itself. libuv stops watching after an error; usually the library sees it, too, and the
 * connection fails. */
static void on_ready(uv_poll_t *p, int status, int events)
{
        struct watched *d = p->data;
        struct broker_conn *w = d->broker_conn;
        int revents = status < 0 ? POLLIN | POLLERR : 0;

        if (!is_up(w))
                return;
        if (events & UV_READABLE)
                revents |= POLLIN;
        if (events & UV_WRITABLE)
                revents |= POLLOUT;
        note_result(w, w->ops->run(w, (short) revents, &w->_error));
        if (status < 0)
                d->events = 0;
        if (status < 0 || revents & POLLOUT)
                wait_for_broker(w);
        else if (is_up(w) && wants_write(w))
                schedule_send(w, OWN_MS);
        check_quiet(w);
}

/* A connection that has lasted this long resets the delay between attempts. */
static void on_tick(uv_timer_t *t)
{
        struct broker_conn *w = t->data;

        backoff_reset(&w->_backoff);
        on_ready(&w->_watched->poll, 0, 0);
}

/* --- the thread --- */

static void *connect_main(void *data)
{
        struct broker_conn *w = data;

        w->_result = w->ops->connect(w, &w->_error);
        if (w->_result == 0 && w->_serve) {
                w->_result = w->ops->serve(w, &w->_error);
                if (w->_result < 0)
                        w->ops->disconnect(w);
        }
        atomic_store(&w->_is_done, true);
        broker_conn_wake(w);
        return NULL;
}

/* --- up and down --- */

static void start_connecting(uv_timer_t *t);
static void pause_transport(struct broker_conn *w);

static void fail_sent(struct broker_conn *w)
{
        list_for_each (n, &w->sent)
                broker_conn_sent(w, container_of(n, struct outgoing, node), OUTCOME_LOST);
        list_for_each (n, &w->_unsent)
                broker_conn_sent(w, container_of(n, struct outgoing, node), OUTCOME_LOST);
}

static void drop_inbound(struct broker_conn *w)
{
        list_for_each (n, &w->_inbound) {
                list_remove(n);
                incoming_free(container_of(n, struct incoming, node));
        }
}

/* The delay has a random part of up to a half. */
static void conn_down(struct broker_conn *w)
{
        uint64_t delay_ms = backoff_next(&w->_backoff) / USEC_PER_MSEC;
        uint32_t random;

        ids_random(&w->_ids, &random, sizeof(random));
        w->_state = BROKER_CONN_WAITING;
        w->_failed = false;
        fail_sent(w);
        if (w->ops->accept)
                drop_inbound(w); /* the broker delivers it again */
        check_quiet(w);
        w->hooks->down(w, w->_error.message);
        uv_update_time(&w->_loop->uv); /* the library may have blocked while it disconnected */
        (void) uv_timer_start(&w->_timer, start_connecting,
                              delay_ms / 2 + random % (delay_ms / 2 + 1), 0);
}

static void start_connecting(uv_timer_t *t)
{
        struct broker_conn *w = t->data;
        sigset_t all, before;
        int r;

        w->_state = BROKER_CONN_CONNECTING;
        w->epoch++;
        w->_error = (struct err){ 0 };
        w->_serve = !w->_paused;
        atomic_store(&w->_is_done, false);
        /* Signals go to the loop. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&w->_thread, NULL, connect_main, w);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r > 0) {
                (void) err_errno(&w->_error, -r, "start a thread");
                conn_down(w);
        }
}

static void disconnect(struct broker_conn *w)
{
        struct watched *d = TAKE_PTR(w->_watched);

        if (d) {
                uv_close((uv_handle_t *) &d->poll, free_watched);
                (void) close(d->fd);
        }
        (void) uv_timer_stop(&w->_timer);
        (void) uv_timer_stop(&w->_later);
        w->ops->disconnect(w);
}

static void on_wake(uv_async_t *a)
{
        struct broker_conn *w = a->data;

        if (w->_watched)
                on_ready(&w->_watched->poll, 0, 0);
        if (w->_state != BROKER_CONN_CONNECTING || !atomic_load(&w->_is_done))
                return;
        ASSERT(pthread_join(w->_thread, NULL) == 0);
        net_task_queue(w->_loop, &w->_dispatch);
        if (w->_result == 0 && watch(w, &w->_error) < 0) {
                disconnect(w);
                w->_result = -1;
        }
        if (w->_result < 0) {
                conn_down(w);
                return;
        }
        w->_state = BROKER_CONN_UP;
        (void) uv_timer_start(&w->_timer, on_tick, w->ops->tick_ms, w->ops->tick_ms);
        wait_for_broker(w);
        w->hooks->up(w);
        if (w->_paused && w->_serve)
                pause_transport(w);
        on_ready(&w->_watched->poll, 0, 0); /* the library may have read messages already */
}

/* --- for the bridge --- */

void broker_conn_send(struct broker_conn *w, struct outgoing *m)
{
        list_append(&w->_unsent, &m->node);
        if (is_up(w))
                net_task_queue(w->_loop, &w->_send);
        else
                broker_conn_sent(w, m, OUTCOME_LOST);
}

void broker_conn_accept(struct broker_conn *w, const struct incoming *m)
{
        if (!w->ops->accept || !is_up(w) || m->epoch != w->epoch)
                return;
        w->ops->accept(w, m->tag);
        schedule_send(w, ACCEPT_MS);
}

static void pause_transport(struct broker_conn *w)
{
        note_result(w, w->ops->pause(w, &w->_error));
        net_task_queue(w->_loop, &w->_send);
}

static void on_quiet_timeout(uv_timer_t *t)
{
        struct broker_conn *w = t->data;

        w->_quiet = true;
        net_task_queue(w->_loop, &w->_dispatch);
}

void broker_conn_pause(struct broker_conn *w)
{
        w->_paused = true;
        if (is_up(w))
                pause_transport(w);
        check_quiet(w);
        (void) uv_timer_start(&w->_quiet_timer, on_quiet_timeout, BROKER_CONN_QUIET_MS, 0);
}

static void send_task(struct net_task *t)
{
        struct broker_conn *w = container_of(t, struct broker_conn, _send);
        int r = 0;

        if (!is_up(w))
                return;
        while (r == 0 && !list_empty(&w->_unsent)) {
                struct list *n = list_first(&w->_unsent);

                list_remove(n);
                list_append(&w->sent, n);
                r = w->ops->send(w, container_of(n, struct outgoing, node), &w->_error);
        }
        if (r == 0 && w->ops->flush)
                r = w->ops->flush(w, &w->_error);
        note_result(w, r);
        wait_for_broker(w);
}

/* --- dispatch --- */

static void dispatch_completed(struct broker_conn *w)
{
        while (!list_empty(&w->_completed)) {
                struct list *n = list_first(&w->_completed);

                list_remove(n);
                w->hooks->completed(w, container_of(n, struct outgoing, node));
        }
}

static void dispatch_task(struct net_task *t)
{
        struct broker_conn *w = container_of(t, struct broker_conn, _dispatch);

        if (w->_failed) {
                disconnect(w);
                conn_down(w);
        }
        dispatch_completed(w);
        while (w->_state != BROKER_CONN_CONNECTING && !list_empty(&w->_inbound)) {
                struct list *n = list_first(&w->_inbound);

                list_remove(n);
                w->hooks->message(w, container_of(n, struct incoming, node));
        }
        if (w->_quiet && !w->_quiet_notified) {
                w->_quiet_notified = true;
                w->hooks->quiet(w);
        }
}

/* --- life cycle --- */

int broker_conn_start(struct broker_conn *w, struct net_loop *loop, const struct settings *settings,
                      const char *instance, const struct broker_conn_hooks *hooks, struct err *e)
{
        int r;

        *w = (struct broker_conn){ .settings = settings,
                                   .ops = settings->transport,
                                   .hooks = hooks,
                                   .instance = instance,
                                   .timeout_ms = BROKER_CONN_TIMEOUT_MS,
                                   ._state = BROKER_CONN_WAITING,
                                   ._backoff = { .min = BROKER_CONN_BACKOFF_MIN_MS * USEC_PER_MSEC,
                                                 .max = BROKER_CONN_BACKOFF_MAX_MS
                                                        * USEC_PER_MSEC },
                                   ._loop = loop };
        list_init(&w->sent);
        list_init(&w->_inbound);
        list_init(&w->_completed);
        list_init(&w->_unsent);
        net_task_init(&w->_dispatch, dispatch_task);
        net_task_init(&w->_send, send_task);
        ids_init(&w->_ids);
        ASSERT(uv_timer_init(&loop->uv, &w->_timer) == 0);
        ASSERT(uv_timer_init(&loop->uv, &w->_later) == 0);
        ASSERT(uv_timer_init(&loop->uv, &w->_quiet_timer) == 0);
        ASSERT(uv_async_init(&loop->uv, &w->_wake, on_wake) == 0);
        w->_timer.data = w->_later.data = w->_quiet_timer.data = w->_wake.data = w;
        r = w->ops->open(w, e);
        if (r < 0)
                return r;
        return uv_timer_start(&w->_timer, start_connecting, 0, 0);
}

void broker_conn_stop(struct broker_conn *w)
{
        enum broker_conn_state before = w->_state;

        if (before == BROKER_CONN_NEW || before == BROKER_CONN_STOPPED)
                return;
        if (before == BROKER_CONN_CONNECTING)
                ASSERT(pthread_join(w->_thread, NULL) == 0);
        send_task(&w->_send); /* pending acknowledgements */
        if (before == BROKER_CONN_UP || (before == BROKER_CONN_CONNECTING && w->_result == 0))
                disconnect(w);
        w->_state = BROKER_CONN_STOPPED;
        if (w->transport)
                w->ops->close(
                        w); /* ends threads of the library, which might call broker_conn_wake */
        uv_close((uv_handle_t *) &w->_timer, NULL);
        uv_close((uv_handle_t *) &w->_later, NULL);
        uv_close((uv_handle_t *) &w->_quiet_timer, NULL);
        uv_close((uv_handle_t *) &w->_wake, NULL);
        fail_sent(w);
        dispatch_completed(w);
        net_task_cancel(&w->_dispatch);
        net_task_cancel(&w->_send);
        drop_inbound(w);
}
