/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/wire.h"

#include <signal.h>

#include "base/base.h"

/* --- messages --- */

#define ADDRESS_MAX (64 * KiB)

struct incoming *incoming_new(void)
{
        struct incoming *m = xnew(struct incoming);

        list_init(&m->node);
        buf_init(&m->body, MESSAGE_BODY_MAX);
        buf_init(&m->reply_to, ADDRESS_MAX);
        buf_init(&m->correlation, ADDRESS_MAX);
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

/* --- orders, to the thread --- */

enum order_kind { ORDER_SEND, ORDER_ACCEPT, ORDER_PAUSE, ORDER_STOP, ORDER_WAKE };

struct order {
        struct list node;
        enum order_kind kind;
        struct outgoing *outgoing;
        uint64_t tag, epoch;
};

static void give_order(struct wire *w, struct order order)
{
        struct order *o = xnew(struct order);

        *o = order;
        list_init(&o->node);
        ASSERT(queue_put(&w->_orders, &o->node));
}

void wire_send(struct wire *w, struct outgoing *m)
{
        give_order(w, (struct order){ .kind = ORDER_SEND, .outgoing = m });
}

void wire_accept(struct wire *w, const struct incoming *m)
{
        if (w->ops->accept)
                give_order(w, (struct order){
                                      .kind = ORDER_ACCEPT, .tag = m->tag, .epoch = m->epoch });
}

void wire_pause(struct wire *w)
{
        give_order(w, (struct order){ .kind = ORDER_PAUSE });
}

void wire_wake(struct wire *w)
{
        give_order(w, (struct order){ .kind = ORDER_WAKE });
}

/* --- notes, to the loop --- */

static struct note *note_new(enum note_kind kind)
{
        struct note *n = xnew(struct note);

        list_init(&n->node);
        n->kind = kind;
        return n;
}

void note_free(struct note *n)
{
        if (!n)
                return;
        incoming_free(n->incoming);
        free(n);
}

/* Only messages are limited in number by this queue; all else is by what it is about. */
static void tell(struct wire *w, struct note *n)
{
        ASSERT(queue_put(&w->notes, &n->node));
}

static size_t cost_of(const struct incoming *m)
{
        return sizeof(struct note) + sizeof(*m) + m->body.n;
}

void wire_deliver(struct wire *w, struct incoming *m)
{
        struct note *n = note_new(NOTE_MESSAGE);

        n->incoming = m;
        if (atomic_fetch_add(&w->undelivered, cost_of(m)) < WIRE_NOTES_MAX) {
                tell(w, n);
                return;
        }
        wire_taken(w, m);
        atomic_fetch_add(&w->dropped, 1);
        note_free(n);
}

void wire_taken(struct wire *w, const struct incoming *m)
{
        atomic_fetch_sub(&w->undelivered, cost_of(m));
}

void wire_sent(struct wire *w, struct outgoing *m, enum outcome outcome)
{
        struct note *n = note_new(NOTE_END);

        list_remove(&m->node);
        m->outcome = outcome;
        n->outgoing = m;
        tell(w, n);
}

static void tell_up(struct wire *w)
{
        struct note *n = note_new(NOTE_UP);

        n->epoch = w->epoch;
        n->body_max = w->body_max;
        tell(w, n);
}

static void tell_down(struct wire *w, const struct err *e)
{
        struct note *n = note_new(NOTE_DOWN);

        (void) snprintf(n->text, sizeof(n->text), "%s", e->message);
        tell(w, n);
}

/* --- the thread: orders --- */

static int carry_out(struct wire *w, const struct order *o, bool connected, struct err *e)
{
        switch (o->kind) {
        case ORDER_SEND:
                list_append(&w->sent, &o->outgoing->node);
                if (connected)
                        return w->ops->send(w, o->outgoing, e);
                wire_sent(w, o->outgoing, OUTCOME_LOST);
                return 0;
        case ORDER_ACCEPT:
                return connected && o->epoch == w->epoch ? w->ops->accept(w, o->tag, e) : 0;
        case ORDER_PAUSE:
                w->paused = true;
                return connected ? w->ops->pause(w, e) : 0;
        case ORDER_STOP:
                w->stopping = true;
                return 0;
        case ORDER_WAKE:
        default:
                return 0;
        }
}

/* All that there are, even if one fails: the rest then is told that there is no connection. */
static int carry_out_all(struct wire *w, bool connected, struct err *e)
{
        struct list orders;
        bool sent = false;
        int r = 0;

        list_init(&orders);
        queue_take(&w->_orders, &orders);
        list_for_each (n, &orders) {
                struct order *o = container_of(n, struct order, node);

                sent = sent || o->kind == ORDER_SEND;
                list_remove(n);
                if (r == 0)
                        r = carry_out(w, o, connected, e);
                else
                        (void) carry_out(w, o, false, NULL);
                free(o);
        }
        if (r == 0 && connected && sent && w->ops->flush)
                r = w->ops->flush(w, e);
        return r;
}

/* --- the thread: connections --- */

/* Orders first: somebody waits for a reply, and the library, if it has nothing to read, need not look. */
static int serve_once(struct wire *w, struct err *e)
{
        struct pollfd fds[2] = { { .fd = w->_orders.fd, .events = POLLIN } };
        int timeout = -1;
        size_t n = 1 + w->ops->poll(w, &fds[1], &timeout);
        int ready = poll(fds, n, timeout), r = 0;

        if (ready < 0 && errno != EINTR)
                return err_errno(e, -errno, "wait for the broker");
        if (fds[0].revents)
                r = carry_out_all(w, true, e);
        if (r < 0 || (n > 1 && ready > 0 && timeout != 0 && !fds[1].revents))
                return r;
        r = w->ops->run(w, fds[1].revents, e);
        return r < 0 ? err_wrap(e, "connection to the broker") : 0;
}

static int connect_and_serve(struct wire *w, struct err *e)
{
        int r = w->ops->connect(w, e);

        if (r < 0)
                return r;
        w->epoch++;
        if (!w->paused)
                r = w->ops->serve(w, e);
        if (r == 0) {
                w->attempts = 0;
                tell_up(w);
        }
        while (r == 0 && !w->stopping)
                r = serve_once(w, e);
        w->ops->disconnect(w);
        return r;
}

static void lose_sent(struct wire *w)
{
        list_for_each (n, &w->sent)
                wire_sent(w, container_of(n, struct outgoing, node), OUTCOME_LOST);
}

/* Between half and all of a time that doubles. */
static int backoff_ms(struct wire *w)
{
        unsigned doublings = MIN_OF(w->attempts, 10U);
        uint32_t full = MIN_OF(WIRE_BACKOFF_MIN_MS << doublings, WIRE_BACKOFF_MAX_MS), chance;

        w->attempts++;
        ids_random(&w->ids, &chance, sizeof(chance));
        return (int) (full / 2 + chance % (full / 2 + 1));
}

static void wait_before_next(struct wire *w)
{
        usec_t until = clock_mono(&clock_system) + (usec_t) backoff_ms(w) * USEC_PER_MSEC;

        for (;;) {
                struct pollfd fd = { .fd = w->_orders.fd, .events = POLLIN };
                usec_t now = clock_mono(&clock_system);

                if (w->stopping || now >= until)
                        return;
                (void) poll(&fd, 1, (int) ((until - now) / USEC_PER_MSEC) + 1);
                (void) carry_out_all(w, false, NULL);
        }
}

static void *wire_main(void *data)
{
        struct wire *w = data;

        while (!w->stopping) {
                struct err e = { 0 };
                int r = connect_and_serve(w, &e);

                lose_sent(w);
                if (r == 0)
                        break;
                tell_down(w, &e);
                wait_before_next(w);
        }
        (void) carry_out_all(w, false, NULL);
        tell(w, note_new(NOTE_STOPPED));
        return NULL;
}

/* --- life --- */

/* Signals are the loop's. */
static int start_thread(struct wire *w)
{
        sigset_t all, before;
        int r;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&w->_thread, NULL, wire_main, w);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        w->_started = r == 0;
        return -r;
}

int wire_start(struct wire *w, const struct settings *settings, const char *instance, struct err *e)
{
        int r;

        *w = (struct wire){ .settings = settings,
                            .ops = settings->transport,
                            .instance = instance,
                            .timeout_ms = WIRE_TIMEOUT_MS,
                            .notes.fd = -EBADF,
                            ._orders.fd = -EBADF };
        list_init(&w->sent);
        ids_init(&w->ids);
        r = queue_init(&w->notes, 0);
        if (r == 0)
                r = queue_init(&w->_orders, 0);
        if (r < 0)
                return err_errno(e, r, "make the queues");
        r = w->ops->open(w, e);
        if (r < 0)
                return r;
        r = start_thread(w);
        return r < 0 ? err_errno(e, r, "start a thread") : 0;
}

void wire_stop(struct wire *w)
{
        if (!w->_started)
                return;
        give_order(w, (struct order){ .kind = ORDER_STOP });
        ASSERT(pthread_join(w->_thread, NULL) == 0);
        w->_started = false;
}

/* A library's threads may have said something more before they ended. */
static void empty_queues(struct wire *w)
{
        struct list left;

        list_init(&left);
        queue_take(&w->_orders, &left);
        list_for_each (n, &left)
                free(container_of(n, struct order, node));
        list_init(&left);
        queue_take(&w->notes, &left);
        list_for_each (n, &left)
                note_free(container_of(n, struct note, node));
}

void wire_free(struct wire *w)
{
        if (w->transport)
                w->ops->close(w);
        if (w->_orders.fd >= 0 && w->notes.fd >= 0)
                empty_queues(w);
        if (w->_orders.fd >= 0)
                queue_done(&w->_orders);
        if (w->notes.fd >= 0)
                queue_done(&w->notes);
}
