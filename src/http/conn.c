/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/fd.h"

/* Input kept while a request is being answered; past it reading stops. */
#define PENDING_LOW (16 * KiB)
#define PENDING_MAX (PENDING_LOW + NET_READ_SIZE)

void conn__set_state(struct http_conn *c, enum conn_state state)
{
        c->server->stats.idle -= c->state == CONN_IDLE;
        c->server->stats.idle += state == CONN_IDLE;
        c->state = state;
}

/* Whether bytes may go to the parser now. */
static bool can_parse(const struct http_conn *c)
{
        if (c->state == CONN_IDLE || c->state == CONN_HEAD)
                return true;
        if (c->state != CONN_BODY || !c->req)
                return false;
        return c->answered || (c->req->_body_requested && !c->req->_body_paused);
}

static void update_reading(struct http_conn *c)
{
        bool held = c->state == CONN_BODY && !can_parse(c);
        bool want = c->pending.n < PENDING_LOW && !(held && c->req->_body_paused);

        if (want != c->stream.reading)
                want ? stream_resume_reading(&c->stream) : stream_pause_reading(&c->stream);
}

/* --- timeouts --- */

static struct timeout_kind *timeout_for(struct http_conn *c)
{
        struct http_server *s = c->server;

        if (c->stream._blocked)
                return &s->write_timeout;
        switch (c->state) {
        case CONN_IDLE:
                return &s->idle_timeout;
        case CONN_HEAD:
                return &s->head_timeout;
        case CONN_BODY:
                return can_parse(c) ? &s->body_timeout : NULL;
        case CONN_LINGER:
                return &s->linger_timeout;
        case CONN_RESPONSE:
        case CONN_REFUSED:
        case CONN_TUNNEL:
        case CONN_CLOSED:
        default:
                return NULL;
        }
}

/* Head, idle and linger timeouts run from when their state began: a client that trickles bytes
 * wins no time. Body and write timeouts start anew with each byte of the direction they watch. */
void conn__update_timeout(struct http_conn *c)
{
        struct http_server *s = c->server;
        struct timeout_kind *kind = timeout_for(c);
        uint64_t seen = kind == &s->write_timeout ? c->stream.bytes_out : c->stream.bytes_in;
        bool renewable = kind == &s->body_timeout || kind == &s->write_timeout;

        if (!kind)
                timeout_clear(&c->timeout);
        else if (c->timeout.kind != kind || (renewable && seen != c->timeout_bytes))
                timeout_set(&c->timeout, kind);
        c->timeout_bytes = seen;
}

void conn__timed_out(struct timeout *t)
{
        static const struct http_problem request_timeout = { 408, "REQUEST_TIMEOUT",
                                                             "the request did not arrive in time" };
        struct http_conn *c = container_of(t, struct http_conn, timeout);

        c->server->stats.timeouts++;
        if (c->state != CONN_IDLE && c->state != CONN_LINGER && !c->stream._blocked && c->req
            && c->req->res.state == HTTP_RES_NONE) {
                conn__refuse(c, &request_timeout);
                return;
        }
        http_conn_close(c, -ETIMEDOUT);
}

/* --- the end of requests and connections --- */

/* Nothing more is said or heard on this connection: closes it, but not before the queued output
 * has left, nor with unread input, which would make the kernel reset the connection and take the
 * answer from the client again. */
static void start_linger(struct http_conn *c)
{
        bool unread = (c->state != CONN_RESPONSE && c->state != CONN_IDLE) || c->pending.n > 0;

        buf_done(&c->pending);
        if (stream_pending(&c->stream) == 0 && (c->stream.eof || !unread)) {
                http_conn_close(c, 0);
                return;
        }
        conn__set_state(c, CONN_LINGER);
        stream_shutdown(&c->stream);
}

static bool response_is_sent(const struct http_conn *c)
{
        return c->answered && stream_pending(&c->stream) - c->stream.out.n == 0
               && c->stream.out.n <= CONN_OUT_LOW;
}

static void finish_request(struct http_conn *c)
{
        struct http_req *req = TAKE_PTR(c->req);

        http_req_account(req);
        req->_conn = NULL;
        http_req_unref(req);
        c->answered = false;
        timeout_clear(&c->timeout);
        if (c->keep_alive && c->state == CONN_RESPONSE && !c->server->draining)
                conn__set_state(c, CONN_IDLE);
        else
                start_linger(c);
}

/* A body nobody reads costs the connection once it is longer than it is worth. */
static bool body_is_hopeless(const struct http_conn *c)
{
        return c->state == CONN_BODY && c->answered
               && (!c->keep_alive || c->discarded > CONN_DISCARD_MAX);
}

/* HTTP is over on this connection; the request has served its purpose. */
static void begin_tunnel(struct http_conn *c)
{
        struct http_req *req = TAKE_PTR(c->req);

        conn__set_state(c, CONN_TUNNEL);
        conn__update_timeout(c); /* what is still unsent keeps its own */
        c->tunnel->paused ? stream_pause_reading(&c->stream) : stream_resume_reading(&c->stream);
        http_req_account(req);
        req->_conn = NULL;
        http_req_unref(req);
}

/* Ends the request if everything about it is done. */
static void settle(struct http_conn *c)
{
        if (c->failed && c->state != CONN_CLOSED) {
                http_conn_close(c, -ECONNABORTED);
                return;
        }
        if (c->tunnel && c->state == CONN_RESPONSE) {
                begin_tunnel(c);
                return;
        }
        if (!c->req || !response_is_sent(c))
                return;
        if (c->state == CONN_RESPONSE || c->state == CONN_REFUSED || body_is_hopeless(c))
                finish_request(c);
}

static size_t parse_all(struct http_conn *c, const char *p, size_t n)
{
        size_t used = 0;

        for (;;) {
                settle(c);
                if (used == n || !can_parse(c))
                        return used;
                used += conn__parse(c, p + used, n - used);
        }
}

static void after_events(struct http_conn *c)
{
        if (c->state == CONN_CLOSED || c->state == CONN_TUNNEL)
                return;
        /* Flags are looked at here, so a task that would do the same is not needed. */
        net_task_cancel(&c->task);
        buf_release(&c->pending);
        update_reading(c);
        conn__update_timeout(c);
}

/* What the client sent right behind its upgrade request belongs to the tunnel, its FIN too. */
static void pass_pending_to_tunnel(struct http_conn *c)
{
        struct str held = buf_str(&c->pending);
        struct buf rest = c->pending;

        buf_init(&c->pending, PENDING_MAX);
        if (held.n > 0)
                c->tunnel->ops->data(c->tunnel, (char *) held.p, held.n);
        buf_done(&rest);
        if (c->stream.eof && c->state == CONN_TUNNEL)
                c->tunnel->ops->eof(c->tunnel);
}

/* The client has closed at least its sending side. A plain answer may still be read by it; whoever
 * gets a stream and says nothing more is taken for gone. */
static bool aborts_on_eof(const struct http_conn *c)
{
        const struct http_req *req = c->req;

        return req
               && (req->res.state == HTTP_RES_STREAM
                   || (req->res.state == HTTP_RES_NONE && req->_abort_on_eof));
}

static void settle_after_eof(struct http_conn *c)
{
        bool waiting = c->state == CONN_HEAD || (c->state == CONN_BODY && !c->answered);

        if ((waiting && c->pending.n == 0) || aborts_on_eof(c))
                http_conn_close(c, -ECONNRESET);
        else if (c->state == CONN_IDLE)
                start_linger(c);
        else if (c->state == CONN_LINGER && stream_pending(&c->stream) == 0)
                http_conn_close(c, 0);
}

static void advance(struct http_conn *c)
{
        struct str held = buf_str(&c->pending);
        bool in_tunnel = c->state == CONN_TUNNEL;
        size_t used = parse_all(c, held.p, held.n);

        if (c->state == CONN_CLOSED || in_tunnel)
                return;
        buf_consume(&c->pending, MIN_OF(used, c->pending.n));
        if (c->state == CONN_TUNNEL) {
                pass_pending_to_tunnel(c);
                return;
        }
        if (c->stream.eof)
                settle_after_eof(c);
        else if (c->stream.hung && aborts_on_eof(c))
                http_conn_close(c, -ECONNRESET);
        after_events(c);
}

static void advance_task(struct net_task *t)
{
        advance(container_of(t, struct http_conn, task));
}

/* --- the stream's callbacks --- */

/* Behind what was held back. That may have become wanted in this turn, and then its task waits for the
 * next: whoever calls after_events has to do the work of it. */
static void add_pending(struct http_conn *c, const char *p, size_t n)
{
        buf_add(&c->pending, p, n);
        if (buf_failed(&c->pending))
                http_conn_close(c, -ENOBUFS);
        else
                advance(c);
}

static void conn_data(struct net_stream *st, char *p, size_t n)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);
        size_t used = 0;

        if (c->state == CONN_TUNNEL) {
                c->tunnel->ops->data(c->tunnel, p, n);
                return;
        }
        if (c->state == CONN_LINGER || c->state == CONN_REFUSED)
                return;
        if (c->pending.n > 0) {
                add_pending(c, p, n);
                return;
        }
        used = parse_all(c, p, n);
        if (c->state == CONN_CLOSED)
                return;
        if (c->state == CONN_TUNNEL) {
                net_task_cancel(&c->task);
                if (used < n)
                        c->tunnel->ops->data(c->tunnel, p + used, n - used);
                return;
        }
        if (used < n && c->state != CONN_LINGER && c->state != CONN_REFUSED)
                buf_add(&c->pending, p + used, n - used);
        if (buf_failed(&c->pending)) {
                http_conn_close(c, -ENOBUFS);
                return;
        }
        after_events(c);
}

static void conn_eof(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);

        if (c->state == CONN_TUNNEL) {
                c->tunnel->ops->eof(c->tunnel);
                return;
        }
        if (c->tunnel)
                return; /* the tunnel hears of it when it is entered */
        if (c->state == CONN_BODY)
                c->keep_alive = false; /* what is left of the body will never come */
        advance(c);
}

/* Input is held back: by a body that waits for somebody slow, or by requests sent ahead. */
static void conn_hangup(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);

        if (c->state != CONN_TUNNEL)
                advance(c);
}

static void conn_drained(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);

        if (c->state != CONN_TUNNEL) {
                if (c->req && c->req->res.state == HTTP_RES_STREAM && !c->answered && c->req->hooks
                    && c->req->hooks->drain)
                        c->req->hooks->drain(c->req);
                advance(c);
        }
        /* Also when the tunnel was entered just now: it may have filled the stream before. */
        if (c->state == CONN_TUNNEL) {
                conn__update_timeout(c);
                c->tunnel->ops->drained(c->tunnel);
        }
}

static void conn_stalled(struct net_stream *st)
{
        conn__update_timeout(container_of(st, struct http_conn, stream));
}

static void conn_error(struct net_stream *st, int r)
{
        http_conn_close(container_of(st, struct http_conn, stream), r);
}

static void conn_closed(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);
        struct http_server *s = c->server;

        list_remove(&c->node);
        free(c);
        s->stats.connections--;
        http_server__check_end(s);
}

static const struct net_stream_ops conn_stream_ops = {
        .data = conn_data,
        .eof = conn_eof,
        .drained = conn_drained,
        .stalled = conn_stalled,
        .hangup = conn_hangup,
        .error = conn_error,
        .closed = conn_closed,
};

/* --- life cycle --- */

/* There is no room: say so and go. Best effort, the connection gets no state of its own. */
static void turn_away(struct http_server *s, int fd)
{
        char id[ID_HEX_LEN + 1];
        char text[512];
        char request[4096];
        static const char body[] = "{\"code\":\"OVERLOADED\",\"message\":\"too many connections; "
                                   "try again shortly\"}";
        int n;

        ids_hex(&s->ids, id);
        n = snprintf(text, sizeof(text),
                     "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nRetry-After: 1\r\nX-Request-ID: %s\r\n"
                     "Connection: close\r\n\r\n%s",
                     sizeof(body) - 1, id, body);
        (void) send(fd, text, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        /* A request that is here already must be read, or closing takes the answer back. */
        (void) !recv(fd, request, sizeof(request), MSG_DONTWAIT);
        (void) fd_close(fd);
        s->stats.refused++;
}

/* The connection that has been waited for longest, unless its last answer is still to leave. */
static struct http_conn *longest_waiting(struct timeout_kind *kind)
{
        struct timeout *t = timeout_oldest(kind);
        struct http_conn *c = t ? container_of(t, struct http_conn, timeout) : NULL;

        return c && stream_pending(&c->stream) == 0 ? c : NULL;
}

/* The connection whose body has been silent longest, if that is a quarter of what it may be: an
 * upload that flows is silent for less, one that only holds its place sends as seldom as it can. */
static struct http_conn *longest_stalled(struct http_server *s)
{
        struct http_conn *c = longest_waiting(&s->body_timeout);
        usec_t latest = net_loop_now(s->loop) + s->config.body_timeout / 4 * 3;

        return c && c->timeout.deadline <= latest ? c : NULL;
}

/* Who waits for nothing goes first, then who has not finished asking. */
static bool evict_conn(struct http_server *s)
{
        struct http_conn *c;

        if (s->stats.connections < s->config.conns_max)
                return true;
        c = longest_waiting(&s->idle_timeout);
        if (!c)
                c = longest_waiting(&s->head_timeout);
        if (!c)
                c = longest_stalled(s);
        if (!c)
                return false;
        s->stats.evicted++;
        http_conn_close(c, -ETIMEDOUT);
        return true;
}

void http_conn_open(struct http_server *s, int fd, const struct sock_addr *peer)
{
        struct http_conn *c;
        char host[SOCK_ADDR_TEXT_MAX];

        if (!evict_conn(s)) {
                turn_away(s, fd);
                return;
        }
        c = xnew(struct http_conn);
        c->server = s;
        c->state = CONN_CLOSED;
        sock_addr_host(peer, host);
        (void) snprintf(c->peer, sizeof(c->peer), "%.60s", host);
        c->peer_uid = sock_peer_uid(fd);
        buf_init(&c->pending, PENDING_MAX);
        timeout_init(&c->timeout);
        net_task_init(&c->task, advance_task);
        http_message_init(&c->message, HTTP_REQUEST, &conn__message_ops);
        if (stream_open(&c->stream, s->loop, fd, CONN_OUT_MAX, &conn_stream_ops) < 0) {
                free(c);
                return;
        }
        list_append(&s->conns, &c->node);
        s->stats.accepted++;
        s->stats.connections++;
        conn__set_state(c, CONN_IDLE);
        stream_resume_reading(&c->stream);
        conn__update_timeout(c);
}

void http_conn_close(struct http_conn *c, int reason)
{
        struct http_tunnel *t = TAKE_PTR(c->tunnel);
        struct http_req *req = TAKE_PTR(c->req);
        /* An orderly end would make half an answer look like a whole one. */
        bool cut_off = req && req->res.state != HTTP_RES_NONE && c->until_eof && !c->answered;

        if (c->state == CONN_CLOSED)
                return;
        conn__set_state(c, CONN_CLOSED);
        c->server->stats.bytes_in += c->stream.bytes_in;
        c->server->stats.bytes_out += c->stream.bytes_out;
        timeout_clear(&c->timeout);
        net_task_cancel(&c->task);
        buf_done(&c->pending);
        cut_off ? stream_reset(&c->stream) : stream_close(&c->stream);
        if (req) {
                http_req_abort(req, reason ? reason : -ECONNRESET);
                http_req_account(req);
                http_req_unref(req);
        }
        if (t) {
                t->stream = NULL;
                t->_conn = NULL;
                t->ops->closed(t, reason);
        }
}

void http_conn_retire(struct http_conn *c)
{
        c->keep_alive = false;
        if (c->state == CONN_IDLE)
                start_linger(c);
        else if (c->tunnel && c->tunnel->ops->retire)
                c->tunnel->ops->retire(c->tunnel);
}
