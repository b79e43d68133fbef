/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"

/*
 * Theory of operation.
 *
 * The problem: the socket to the warden is a socket pair of the launcher's and outlives both programs.
 * A warden that is killed leaves no end of file, and the next one continues to read the same socket,
 * requests that were meant for its predecessor included.
 *
 * The order of steps. A warden that starts sends the event `started`. We answer with a hello that has
 * an id of its own, and until its reply arrives everything else is dropped: replies to requests of the
 * predecessor (the new warden refuses them, it has seen no hello yet) and replies to an older hello. The
 * socket keeps the order of packets, so after the reply to the latest hello only replies to requests
 * that were sent after it arrive.
 *
 * The invariant: a request that was pending when `started` arrived ends in one of two ways. If it can
 * be repeated it is sent again, under a new id, so that no reply to the first attempt can be
 * taken for its own; for REPLY_TIMEOUT at most, because the request itself may be what ends the warden. If it can't (create), it fails with `interrupted` set, and native_create.c first
 * destroys whatever the old warden has left.
 *
 * Events may have been lost with the old warden, so each hello but the first is followed by a rescan
 * (native_scan.c).
 *
 * If hutchd is killed, the warden learns of the new one by its hello, forgets the requests of the old
 * one and undoes the creates that were under way. If the socket itself breaks, the launcher is gone: every
 * request fails from then on.
 *
 * net/worker does the rest: ids, queues, timeouts, descriptors.
 */

/* The warden replies at once, when processes have exited, or, to a create, when the agent serves: with a
 * hundredth of a processor it is slow. */
#define REPLY_TIMEOUT (30 * USEC_PER_SEC)

static void request_failed(struct worker_request *r, const struct err *e)
{
        struct native_request *q = container_of(r, struct native_request, _request);
        const usec_t repeat_until = q->_repeat_until;

        if (r->resent && q->_call != WARDEN_MSG_CREATE
            && net_loop_now(q->_native->driver.loop) < repeat_until) {
                native_send(q->_native, q, q->_call, q->_replied);
                q->_repeat_until = repeat_until;
                q->interrupted = true;
                return;
        }
        q->interrupted |= r->resent;
        q->_replied(q, &(struct native_reply){ ERR_RETURN(e->code), e->message, NULL, NULL });
}

void native_send(struct native *n, struct native_request *q, enum warden_msg call,
                 native_replied_fn *replied)
{
        scoped(buf_done) struct buf b;
        struct err e;

        q->_native = n;
        q->_call = call;
        q->_replied = replied;
        q->_repeat_until = net_loop_now(n->driver.loop) + REPLY_TIMEOUT;
        q->interrupted = false;
        worker_request_init(&n->warden, &q->_request, request_failed);
        buf_init(&b, WARDEN_MSG_MAX);
        buf_mark_secret(&b);
        if (warden_request_encode(&(struct warden_request){ .call = call,
                                                            .request_id = q->_request.id,
                                                            .id = q->id,
                                                            .spec = q->spec },
                                  &b, &e)
            < 0)
                buf_reset(&b); /* net/worker refuses an empty one */
        worker_request_send(&q->_request, buf_str(&b),
                            call == WARDEN_MSG_CREATE ? q->record : -EBADF);
}

static void send_hello(struct worker *w)
{
        struct native *n = container_of(w, struct native, warden);
        scoped(buf_done) struct buf b;
        struct err e;

        n->hello_id = worker_next_id(w);
        buf_init(&b, WARDEN_MSG_MAX);
        if (warden_request_encode(&(struct warden_request){ .call = WARDEN_MSG_HELLO,
                                                            .request_id = n->hello_id,
                                                            .version = WARDEN_PROTOCOL_VERSION },
                                  &b, &e)
            == 0)
                worker_post(w, buf_str(&b));
}

static void take_hello(struct native *n, const struct warden_reply *r)
{
        if (r->request_id != n->hello_id)
                return;
        if (r->result < 0) {
                log_warn(n->log, "the warden refuses hutchd: %s", r->text);
                return;
        }
        if (n->had_hello)
                net_task_queue(n->driver.loop, &n->rescan_task);
        n->had_hello = true;
        worker_ready(&n->warden);
}

static void take_event(struct native *n, const struct warden_packet *p, struct arena *a)
{
        struct warden_event event;
        struct err e;

        if (warden_event_decode(p, a, &event, &e) < 0)
                log_warn(n->log, "invalid event of the warden: %s", e.message);
        else if (event.kind == WARDEN_EVENT_STARTED)
                worker_restarted(&n->warden);
        else if (n->warden.state == WORKER_READY)
                native__event(n, &event);
}

/* A message of the warden: a reply goes to the request with its id. A process that is out of descriptors does not get
 * all of a message; its decoder notices. */
static void take_message(struct worker *w, struct str bytes)
{
        struct native *n = container_of(w, struct native, warden);
        const struct warden_packet p = { bytes, worker_n_fds(w) };
        scoped(arena_done) struct arena a;
        int fds[WARDEN_FDS_MAX];
        struct worker_request *r;
        struct native_request *q;
        struct warden_reply m;
        struct err e;

        arena_init(&a, MiB);
        if (warden_is_event(bytes)) {
                take_event(n, &p, &a);
                return;
        }
        if (warden_reply_decode(&p, &a, &m, &e) < 0) {
                log_warn(n->log, "invalid reply of the warden: %s", e.message);
                return;
        }
        if (m.call == WARDEN_MSG_HELLO) {
                take_hello(n, &m);
                return;
        }
        r = w->state == WORKER_READY ? worker_request_get(w, m.request_id) : NULL;
        if (!r)
                return;
        for (size_t i = 0; i < p.n_fds; i++)
                fds[i] = worker_take_fd(w);
        worker_request_end(r);
        q = container_of(r, struct native_request, _request);
        q->_replied(q, &(struct native_reply){ m.result, m.text, &m, fds });
        for (size_t i = 0; i < p.n_fds; i++)
                (void) fd_close(fds[i]);
}

static void link_lost(struct worker *w)
{
        log_warn(container_of(w, struct native, warden)->log, "%s", w->error.message);
}

static void link_closed(struct worker *w)
{
        struct native *n = container_of(w, struct native, warden);

        map_done(&n->instances);
        map_done(&n->creates);
        driver_closed(&n->driver);
}

static const struct worker_ops link_ops = {
        .connected = send_hello,
        .message = take_message,
        .lost = link_lost,
        .closed = link_closed,
};

int native_link_open(struct native *n, int fd)
{
        return worker_open(&n->warden, n->driver.loop, &link_ops,
                           &(struct worker_config){ .name = "the warden",
                                                    .fd = fd,
                                                    .frame_max = WARDEN_MSG_MAX,
                                                    .may_receive_fds = true,
                                                    .request_timeout = REPLY_TIMEOUT,
                                                    .backoff_max = USEC_PER_SEC });
}
