/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "os/fd.h"
#include "warden/warden_impl.h"

/* --- sending --- */

struct outbound {
        struct list node;
        struct buf message;
        int fds[WARDEN_FDS_MAX];
        size_t n_fds;
};

static void outbound_free(struct outbound *o)
{
        for (size_t i = 0; i < o->n_fds; i++)
                (void) fd_close(o->fds[i]);
        buf_done(&o->message);
        free(o);
}

/* Sends what the socket takes. While something is queued no request is read, so the queue is bounded by
 * what there is to report. */
static void flush(struct warden *w)
{
        struct epoll_event ev = { .data.ptr = &w->control.source };
        struct list *first;

        while ((first = list_first(&w->control.queue))) {
                struct outbound *o = container_of(first, struct outbound, node);
                ssize_t n = fd_pass_send(w->config->socket, buf_str(&o->message), o->fds, o->n_fds,
                                         MSG_DONTWAIT);

                if (n == -EAGAIN)
                        break;
                if (n < 0) {
                        (void) log_err((int) n, w->log, "can't send to hutchd");
                        w->stop = n == -EPIPE || n == -ECONNRESET;
                }
                list_remove(&o->node);
                outbound_free(o);
        }
        ev.events = list_empty(&w->control.queue) ? EPOLLIN : EPOLLOUT;
        if (epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->config->socket, &ev) < 0) {
                (void) log_err(-errno, w->log, "can't watch the socket");
                w->stop = true;
        }
}

static void drop_unencoded(const struct warden *w, struct outbound *o, int r, const struct err *e)
{
        (void) log_err(r, w->log, "can't encode a message: %s", e->message);
        outbound_free(o);
}

void control_reply(struct warden *w, const struct warden_reply *reply, int *fds)
{
        struct outbound *o = xnew(struct outbound);
        const size_t n_fds = warden_reply_fds(reply);
        struct err e;
        int r;

        buf_init(&o->message, WARDEN_MSG_MAX);
        for (; fds && o->n_fds < n_fds; o->n_fds++)
                o->fds[o->n_fds] = TAKE_FD(fds[o->n_fds]);
        r = warden_reply_encode(reply, &o->message, &e);
        if (r < 0) {
                drop_unencoded(w, o, r, &e);
                return;
        }
        list_append(&w->control.queue, &o->node);
        flush(w);
}

void control_event(struct warden *w, const struct warden_event *event)
{
        struct outbound *o;
        struct err e;
        int r;

        if (w->control.phase == WARDEN_PHASE_NEW && event->kind != WARDEN_EVENT_STARTED)
                return;
        o = xnew(struct outbound);
        buf_init(&o->message, WARDEN_MSG_MAX);
        r = warden_event_encode(event, &o->message, &e);
        if (r < 0) {
                drop_unencoded(w, o, r, &e);
                return;
        }
        list_append(&w->control.queue, &o->node);
        flush(w);
}

void control_discard(struct warden *w)
{
        list_for_each (n, &w->control.queue) {
                struct outbound *o = container_of(n, struct outbound, node);

                list_remove(&o->node);
                outbound_free(o);
        }
}

/* --- receiving --- */

/* Receives one request and runs it, or, while messages are queued, sends what the socket takes. An empty packet can't be
 * distinguished from the end of the stream, and is not part of the protocol. */
static void socket_ready(struct warden *w, struct source *s)
{
        struct request_fds f = { { -EBADF, -EBADF, -EBADF, -EBADF } };
        struct fd_pass_msg m = { .p = w->control.buffer,
                                 .size = WARDEN_MSG_MAX + 1,
                                 .fds = f.fds,
                                 .fds_max = REQUEST_FDS };
        scoped(arena_wipe) struct arena a;
        struct warden_reply refusal = { 0 };
        struct warden_packet p;
        struct warden_request q = { 0 };
        struct err e;
        ssize_t n;

        arena_init_small(&a, 4 * KiB, KiB);
        if (!list_empty(&w->control.queue)) {
                flush(w);
                return;
        }
        n = fd_pass_receive(s->fd, &m, MSG_DONTWAIT);
        if (n <= 0) {
                w->stop |= n != -EAGAIN;
                return;
        }
        p = (struct warden_packet){ str_of(w->control.buffer, (size_t) n), m.n_fds };
        refusal.result = m.cut ? err_set(&e, ERR_INVALID,
                                         "a message is too long or has too many descriptors")
                               : warden_request_decode(&p, w->control.phase, &a, &q, &e);
        if (refusal.result < 0) {
                log_warn(w->log, "request refused: %s", e.message);
        } else {
                if (requests[q.call].is_change)
                        zygote_pool_defer(w);
                refusal.result = requests[q.call].run(w, &q, &f, &e);
        }
        refusal.text = e.message;
        if (refusal.result < 0
            && warden_request_peek(p.message, &refusal.call, &refusal.request_id))
                control_reply(w, &refusal, NULL);
        for (size_t i = 0; i < REQUEST_FDS; i++)
                (void) fd_close(f.fds[i]);
        wipe(w->control.buffer, (size_t) n);
}

int control_open(struct warden *w)
{
        int flags = fcntl(w->config->socket, F_GETFL);

        list_init(&w->control.queue);
        w->control.buffer = xcalloc(1, WARDEN_MSG_MAX + 1);
        if (flags < 0 || fcntl(w->config->socket, F_SETFL, flags | O_NONBLOCK) < 0
            || fcntl(w->config->socket, F_SETFD, FD_CLOEXEC) < 0)
                return -errno;
        return source_add(w, &w->control.source, w->config->socket, EPOLLIN, socket_ready);
}

void control_close(struct warden *w)
{
        control_discard(w);
        source_remove(w, &w->control.source);
        free(w->control.buffer);
}
