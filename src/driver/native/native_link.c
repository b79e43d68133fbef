/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"
#include "os/fd_pass.h"

/* The warden answers at once, or when processes have ended: one that does not has a problem, and so
 * has who waits for it. */
#define REPLY_TIMEOUT (30 * USEC_PER_SEC)

/* Messages that a turn of the loop takes. */
#define MESSAGES_A_TURN 32

/* --- questions --- */

bool native_request_pending(const struct native_request *q)
{
        return q->_native != NULL;
}

bool native_request_sent(const struct native_request *q)
{
        return q->_native && q->_by_request_id._in;
}

void native_request_drop(struct native_request *q)
{
        if (!q->_native)
                return;
        list_remove(&q->_node);
        map_remove(&q->_native->link.by_request_id, &q->_by_request_id);
        timeout_clear(&q->_timeout);
        q->_native = NULL;
}

static void answer(struct native_request *q, const struct native_reply *a)
{
        native_request_drop(q);
        q->replied(q, a);
}

static void refuse(struct native_request *q, const char *text)
{
        answer(q, &(struct native_reply){ .result = ERR_RETURN(ERR_UNAVAILABLE), .text = text });
}

static void request_timeout(struct timeout *t)
{
        refuse(container_of(t, struct native_request, _timeout), "the warden does not answer");
}

void native_request(struct native *n, struct native_request *q)
{
        ASSERT(!q->_native);
        q->_native = n;
        q->interrupted = false;
        q->_by_request_id = (struct map_node){ 0 };
        list_init(&q->_node);
        list_append(&n->link.waiting, &q->_node);
        timeout_init(&q->_timeout);
        timeout_set(&q->_timeout, &n->link.timeouts);
        net_task_queue(n->driver.loop, &n->link.flush);
}

/* --- sending --- */

static int send_message(int socket, struct str message, int fd)
{
        ssize_t n = fd_pass_send(socket, message, &fd, fd >= 0, MSG_DONTWAIT);

        return n < 0 ? (int) n : 0;
}

static int send_request(struct native_link *l, const struct warden_request *q, int fd)
{
        scoped(buf_done) struct buf b;
        struct err e;
        int r;

        buf_init(&b, WARDEN_MSG_MAX);
        buf_mark_secret(&b);
        r = warden_request_encode(q, &b, &e);
        return r < 0 ? -EMSGSIZE : send_message(l->fd, buf_str(&b), fd);
}

static int send_hello(struct native_link *l)
{
        int r = send_request(l,
                             &(struct warden_request){ .call = WARDEN_MSG_HELLO,
                                                       .request_id = l->request_id + 1,
                                                       .version = WARDEN_PROTOCOL_VERSION },
                             -EBADF);

        if (r == 0) {
                l->hello = ++l->request_id;
                l->hello_due = false;
        }
        return r;
}

static int send_ask(struct native_link *l, struct native_request *q)
{
        int r = send_request(l,
                             &(struct warden_request){ .call = q->call,
                                                       .request_id = l->request_id + 1,
                                                       .id = q->id,
                                                       .spec = q->spec },
                             q->record);

        if (r < 0)
                return r;
        q->_request_id = ++l->request_id;
        list_remove(&q->_node);
        list_append(&l->sent, &q->_node);
        map_add(&l->by_request_id, &q->_by_request_id,
                str_of((const char *) &q->_request_id, sizeof(q->_request_id)));
        return 0;
}

static void on_event(uv_poll_t *p, int status, int events);

static void watch(struct native_link *l, int events)
{
        if (l->events != events && !uv_is_closing((uv_handle_t *) &l->poll))
                (void) uv_poll_start(&l->poll, events, on_event);
        l->events = events;
}

/* Nothing is replied any more, and nothing can be asked. */
static void give_up(struct native *n, int r, const char *what)
{
        struct native_link *l = &n->link;

        if (l->broken)
                return;
        l->broken = true;
        l->ready = false;
        (void) err_set(&l->why, ERR_UNAVAILABLE, "the way to the warden is gone: %s: %s", what,
                       err_text(r));
        log_warn(n->log, "%s", l->why.message);
        (void) uv_poll_stop(&l->poll);
        l->events = 0;
        list_for_each (node, &l->sent) {
                list_remove(node);
                list_append(&l->waiting, node);
        }
        net_task_queue(n->driver.loop, &l->flush);
}

static void fail_all(struct native_link *l)
{
        struct list *first;

        while ((first = list_first(&l->waiting)))
                refuse(container_of(first, struct native_request, _node), l->why.message);
}

static int send_some(struct native_link *l)
{
        struct list *first;
        int r = l->hello_due ? send_hello(l) : 0;

        while (r == 0 && l->ready && (first = list_first(&l->waiting)))
                r = send_ask(l, container_of(first, struct native_request, _node));
        return r;
}

static void flush(struct net_task *t)
{
        struct native *n = container_of(t, struct native, link.flush);
        struct native_link *l = &n->link;
        int r = l->broken ? 0 : send_some(l);

        if (r == -EAGAIN || r == -EINTR) {
                watch(l, UV_READABLE | UV_WRITABLE);
                return;
        }
        if (r < 0)
                give_up(n, r, "send");
        if (l->broken)
                fail_all(l);
        else
                watch(l, UV_READABLE);
}

/* --- a new warden --- */

/* What may be asked again is, before what has waited; the rest is told that nobody knows. */
static void start_over(struct native *n)
{
        struct native_link *l = &n->link;
        struct list old;

        list_init(&old);
        l->ready = false;
        l->hello_due = true;
        while (!list_empty(&l->sent)) {
                struct native_request *q =
                        container_of(list_last(&l->sent), struct native_request, _node);

                list_remove(&q->_node);
                map_remove(&l->by_request_id, &q->_by_request_id);
                q->interrupted = true;
                list_prepend(q->again ? &l->waiting : &old, &q->_node);
        }
        net_task_queue(n->driver.loop, &l->flush);
        while (!list_empty(&old))
                refuse(container_of(list_first(&old), struct native_request, _node),
                       "the warden has ended meanwhile, and another one began; try again");
}

static void hello_replied(struct native *n, const struct warden_reply *w)
{
        struct native_link *l = &n->link;

        if (w->result < 0) {
                log_warn(n->log, "the warden refuses us: %s", w->text);
                return;
        }
        l->ready = true;
        if (l->again)
                net_task_queue(n->driver.loop, &l->rescan);
        l->again = true;
        net_task_queue(n->driver.loop, &l->flush);
}

static void rescan(struct net_task *t)
{
        native__rescan(container_of(t, struct native, link.rescan));
}

/* --- receiving --- */

static void take_event(struct native *n, const struct warden_packet *m, struct arena *a)
{
        struct warden_event news;
        struct err e;

        if (warden_event_decode(m, a, &news, &e) < 0)
                log_warn(n->log, "the warden says what nobody understands: %s", e.message);
        else if (news.kind == WARDEN_EVENT_STARTED)
                start_over(n);
        else if (n->link.ready)
                native__event(n, &news);
}

static void take_reply(struct native *n, const struct warden_packet *m, struct arena *a, int *fds)
{
        struct warden_reply w;
        struct map_node *node;
        struct err e;

        if (warden_reply_decode(m, a, &w, &e) < 0) {
                log_warn(n->log, "the warden answers what nobody understands: %s", e.message);
                return;
        }
        if (w.call == WARDEN_MSG_HELLO) {
                if (w.request_id == n->link.hello && !n->link.hello_due)
                        hello_replied(n, &w);
                return;
        }
        node = n->link.ready ? map_get(&n->link.by_request_id,
                                       str_of((const char *) &w.request_id, sizeof(w.request_id)))
                             : NULL;
        if (node)
                answer(container_of(node, struct native_request, _by_request_id),
                       &(struct native_reply){ w.result, w.text, &w, fds });
}

static void take_message(struct native *n, struct str message, int *fds, size_t n_fds)
{
        const struct warden_packet m = { message, n_fds };
        scoped(arena_done) struct arena a;

        arena_init(&a, MiB);
        if (warden_is_event(message))
                take_event(n, &m, &a);
        else
                take_reply(n, &m, &a, fds);
}

/* 0, -EAGAIN when there is nothing left, or what is wrong. Who is short of descriptors does not get
 * all that belong to a message: that it does not fit is found when it is read. */
static int receive(struct native *n)
{
        struct native_link *l = &n->link;
        int fds[WARDEN_FDS_MAX];
        struct fd_pass_msg m = {
                .p = l->room, .size = WARDEN_MSG_MAX + 1, .fds = fds, .fds_max = WARDEN_FDS_MAX
        };
        ssize_t got = fd_pass_receive(l->fd, &m, MSG_DONTWAIT);

        if (got <= 0)
                return got == 0 ? -EPIPE : (int) got;
        take_message(n, str_of(l->room, (size_t) got), fds, m.n_fds);
        for (size_t i = 0; i < m.n_fds; i++)
                (void) fd_close(fds[i]);
        return 0;
}

static void on_event(uv_poll_t *p, int status, int events)
{
        struct native *n = container_of(p, struct native, link.poll);
        int r = 0;

        (void) status;
        for (unsigned i = 0; i < MESSAGES_A_TURN && r == 0 && !n->link.broken; i++)
                r = receive(n);
        if (r < 0 && r != -EAGAIN)
                give_up(n, r, "receive");
        if (events & UV_WRITABLE)
                net_task_queue(n->driver.loop, &n->link.flush);
}

/* --- life cycle --- */

int native_link_open(struct native *n, int fd)
{
        struct native_link *l = &n->link;
        int r;

        *l = (struct native_link){ .fd = fd, .hello_due = true };
        r = fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno
                                               : uv_poll_init(&n->driver.loop->uv, &l->poll, fd);
        if (r < 0)
                return r;
        n->open++;
        list_init(&l->waiting);
        list_init(&l->sent);
        map_init(&l->by_request_id);
        net_task_init(&l->flush, flush);
        net_task_init(&l->rescan, rescan);
        timeout_kind_init(&l->timeouts, n->driver.loop, REPLY_TIMEOUT, request_timeout);
        l->room = xcalloc(1, WARDEN_MSG_MAX + 1);
        net_task_queue(n->driver.loop, &l->flush);
        return 0;
}

/* The timer closes in the same turn, maybe later: the memory goes in the next one. */
static void poll_closed(uv_handle_t *h)
{
        struct native *n = container_of((uv_poll_t *) h, struct native, link.poll);

        n->link.fd = fd_close(n->link.fd);
        map_done(&n->link.by_request_id);
        free(n->link.room);
        native__handle_closed(n);
}

void native_link_close(struct native *n)
{
        ASSERT(list_empty(&n->link.sent) && list_empty(&n->link.waiting));
        net_task_cancel(&n->link.flush);
        net_task_cancel(&n->link.rescan);
        timeout_kind_close(&n->link.timeouts);
        uv_close((uv_handle_t *) &n->link.poll, poll_closed);
}
