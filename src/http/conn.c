/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/fd.h"

/*
 * Theory of operation
 *
 * A connection serves one request at a time. The problem: handlers, hooks and the parser call into
 * each other, and any of them may end the request or close the connection while another is still on
 * the stack.
 *
 * The invariant: callbacks of the parser and calls by handlers only set flags (`responded`, `failed`,
 * `tunnel`, the _body_* of the request) and queue `task`. settle() acts on the flags, from the loop or
 * between two calls of the parser, when no foreign code is on the stack. It is the only place where a
 * request ends and the next one begins.
 *
 *         stream ── conn_data ── parse_all ── conn__head_complete (conn_parse.c) ── router, handler
 *                                   └── settle ── IDLE, LINGER, TUNNEL
 *         handler ── http_reply, http_stream_* (reply.c) ── flags, task ── advance ── settle
 *
 * Responses are pulled: a handler writes while http_stream_writable, then waits for hooks->drain, which
 * conn_drained calls when the client has received everything. So unsent output is bounded by
 * CONN_OUT_MAX, whatever the handler produces.
 *
 * Pipelining. Input that follows a request waits in `pending` until its response is sent, and so does
 * a body that the handler does not want yet. Above PENDING_LOW reading stops, and TCP slows the
 * client. Pending bytes always go to the parser before new ones.
 *
 * The end. start_linger sends FIN and discards input until the client's FIN: closing a socket with
 * unread input makes the kernel send RST, which can destroy the response before the client has read
 * it. http_conn_close aborts at once; it tells the handler, and resets the connection if the response
 * could otherwise be mistaken for complete.
 */

/* Input kept while a request is being served; above it reading stops. */
#define PENDING_LOW (16 * KiB)
#define PENDING_MAX (PENDING_LOW + NET_READ_SIZE)

void conn__set_state(struct http_conn *c, enum conn_state state)
{
        c->server->stats.idle -= c->state == CONN_IDLE;
        c->server->stats.idle += state == CONN_IDLE;
        c->state = state;
        if (c->shares[0].share)
                conn__queue_in_shares(c);
}

/* Whether input may go to the parser now. */
static bool can_parse(const struct http_conn *c)
{
        if (c->state == CONN_IDLE || c->state == CONN_HEAD)
                return true;
        if (c->state != CONN_BODY || !c->req)
                return false;
        return c->responded || (c->req->_body_requested && !c->req->_body_paused);
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

/* Head, idle and linger timeouts run from the start of their state: a slow sender gains no time. Each byte
 * restarts the write timeout. The body timeout is restarted by as many bytes as the minimum rate asks for in
 * that time, so the rate is checked without a clock of its own: one byte now and then does not keep a
 * connection. */
void conn__update_timeout(struct http_conn *c)
{
        struct http_server *s = c->server;
        struct timeout_kind *kind = timeout_for(c);
        uint64_t seen = kind == &s->write_timeout ? c->stream.bytes_out : c->stream.bytes_in;
        uint64_t needed = UINT64_MAX;

        if (!kind) {
                timeout_clear(&c->timeout);
                return;
        }
        if (kind == &s->write_timeout)
                needed = 1;
        else if (kind == &s->body_timeout)
                needed = MAX_OF((uint64_t) 1, s->body_window);
        if (c->timeout.kind != kind || seen - c->timeout_bytes >= needed) {
                timeout_set(&c->timeout, kind);
                c->timeout_bytes = seen;
        }
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

/* Closes the connection once the queued output was sent and the input was read. */
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

/* Acts on the flags: ends the request if everything about it is done. */
static void settle(struct http_conn *c)
{
        struct http_req *req = c->req;
        bool upgraded = c->tunnel && c->state == CONN_RESPONSE;
        /* Borrowed memory and files must have been sent; copied output may wait. */
        bool sent = c->responded && stream_pending(&c->stream) == c->stream.out.n
                    && c->stream.out.n <= CONN_OUT_LOW;
        bool received =
                c->state == CONN_RESPONSE || c->state == CONN_REFUSED
                || (c->state == CONN_BODY && (!c->keep_alive || c->discarded > CONN_DISCARD_MAX));

        if (c->failed && c->state != CONN_CLOSED) {
                http_conn_close(c, -ECONNABORTED);
                return;
        }
        if (!req || (!upgraded && (!sent || !received)))
                return;
        c->req = NULL;
        if (upgraded) {
                conn__set_state(c, CONN_TUNNEL);
                conn__update_timeout(c); /* unsent output keeps its timeout */
                stream_set_reading(&c->stream, !c->tunnel->paused);
        }
        http_req_account(req);
        req->_conn = NULL;
        http_req_unref(req);
        if (upgraded)
                return;
        c->responded = false;
        timeout_clear(&c->timeout);
        if (c->keep_alive && c->state == CONN_RESPONSE && !c->server->draining)
                conn__set_state(c, CONN_IDLE);
        else
                start_linger(c);
}

/* Returns how much of (p, n) was consumed; the remainder has to wait for the response, or for a handler
 * that wants the body. */
static size_t parse_all(struct http_conn *c, const char *p, size_t n)
{
        const struct http_server_config *config = &c->server->config;
        struct http_message *m = &c->message;
        size_t used = 0;
        ssize_t r;

        for (;;) {
                settle(c);
                if (used == n || !can_parse(c))
                        return used;
                if (c->state == CONN_IDLE) {
                        c->req = http_req_new(c);
                        c->req->_started = net_loop_now(c->server->loop);
                        http_message_begin(m, &c->req->arena, config->head_max, config->target_max);
                        c->discarded = 0;
                        conn__set_state(c, CONN_HEAD);
                }
                r = http_message_feed(m, p + used, n - used);
                if (r < 0) {
                        conn__refuse_message(c, (int) r, str_of(p + used, n - used));
                        used = n;
                        continue;
                }
                used += (size_t) r;
                if (m->got_head && c->state == CONN_HEAD)
                        conn__head_complete(c);
                if (m->got_message && c->state == CONN_BODY) {
                        conn__set_state(c, CONN_RESPONSE);
                        if (!c->responded && !c->failed)
                                http_req_deliver_end(c->req);
                }
        }
}

static void after_events(struct http_conn *c)
{
        bool held, read;

        if (c->state == CONN_CLOSED || c->state == CONN_TUNNEL)
                return;
        /* The flags have been handled; the task would do the same again. */
        net_task_cancel(&c->task);
        buf_release(&c->pending);
        held = c->state == CONN_BODY && !can_parse(c);
        read = c->pending.n < PENDING_LOW && !(held && c->req->_body_paused);
        if (read != c->stream.reading)
                stream_set_reading(&c->stream, read);
        conn__update_timeout(c);
}

/* `task`: does what the flags and the waiting input allow. Events call it, too. */
static void advance(struct net_task *t)
{
        struct http_conn *c = container_of(t, struct http_conn, task);
        struct str held = buf_str(&c->pending);
        bool in_tunnel = c->state == CONN_TUNNEL, waiting, gone;
        size_t used = parse_all(c, held.p, held.n);
        struct buf pending;

        if (c->state == CONN_CLOSED || in_tunnel)
                return;
        buf_consume(&c->pending, MIN_OF(used, c->pending.n));
        if (c->state == CONN_TUNNEL) {
                /* Input that followed the upgrade request belongs to the tunnel, the client's FIN
                 * too. */
                held = buf_str(&c->pending);
                pending = c->pending;
                buf_init(&c->pending, PENDING_MAX);
                if (held.n > 0)
                        c->tunnel->ops->data(c->tunnel, (char *) held.p, held.n);
                buf_done(&pending);
                if (c->stream.eof && c->state == CONN_TUNNEL)
                        c->tunnel->ops->eof(c->tunnel);
                return;
        }
        /* The client has closed its sending side, or more. It may still read a plain response; a client
         * that receives a stream is considered gone. */
        waiting = c->state == CONN_HEAD || (c->state == CONN_BODY && !c->responded);
        gone = (c->stream.eof || c->stream.hung) && c->req
               && (c->req->res.state == HTTP_RES_STREAM
                   || (c->req->res.state == HTTP_RES_NONE && c->req->_abort_on_eof));
        if (gone || (c->stream.eof && waiting && c->pending.n == 0))
                http_conn_close(c, -ECONNRESET);
        else if (c->stream.eof && c->state == CONN_IDLE)
                start_linger(c);
        else if (c->stream.eof && c->state == CONN_LINGER && stream_pending(&c->stream) == 0)
                http_conn_close(c, 0);
        after_events(c);
}

/* --- the stream's callbacks --- */

static void conn_data(struct net_stream *st, char *p, size_t n)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);
        bool waited = c->pending.n > 0;
        size_t used = 0;

        if (c->state == CONN_TUNNEL) {
                c->tunnel->ops->data(c->tunnel, p, n);
                return;
        }
        if (c->state == CONN_LINGER || c->state == CONN_REFUSED)
                return;
        if (!waited)
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
        if (buf_failed(&c->pending))
                http_conn_close(c, -ENOBUFS);
        else if (waited)
                /* The handler may have asked for this input in this loop iteration, with `task` queued
                 * for the next; after_events cancels that task, so the work is done here. */
                advance(&c->task);
        else
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
                return; /* the tunnel gets it from advance */
        if (c->state == CONN_BODY)
                c->keep_alive = false; /* the remainder of the body will never come */
        advance(&c->task);
}

/* The peer closed while reading is stopped: by a body that nothing reads yet, or by pipelining. */
static void conn_hangup(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);

        if (c->state != CONN_TUNNEL)
                advance(&c->task);
}

static void conn_drained(struct net_stream *st)
{
        struct http_conn *c = container_of(st, struct http_conn, stream);

        if (c->state != CONN_TUNNEL) {
                if (c->req && c->req->res.state == HTTP_RES_STREAM && !c->responded && c->req->hooks
                    && c->req->hooks->drain)
                        c->req->hooks->drain(c->req);
                advance(&c->task);
        }
        /* Also right after the switch: the tunnel may have filled the stream before. */
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

/* Too many connections: responds with 503, or 429 if it is the address that has too many, and closes; best
 * effort, without a struct http_conn. */
static void reject_conn(struct http_server *s, int fd, bool of_address)
{
        char id[ID_HEX_LEN + 1];
        char text[512];
        char request[4096];
        static const char all[] = "{\"code\":\"OVERLOADED\",\"message\":\"too many connections; "
                                  "try again shortly\"}";
        static const char one[] =
                "{\"code\":\"TOO_MANY_CONNECTIONS\",\"message\":\"too many connections of this "
                "address before authentication (limits.address_connections); try again shortly\"}";
        const char *body = of_address ? one : all;
        int n;

        ids_hex(&s->ids, id);
        n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nRetry-After: 1\r\nX-Request-ID: %s\r\n"
                     "Connection: close\r\n\r\n%s",
                     of_address ? "429 Too Many Requests" : "503 Service Unavailable", strlen(body),
                     id, body);
        (void) send(fd, text, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        /* Unread input would reset the connection and destroy the response. */
        (void) !recv(fd, request, sizeof(request), MSG_DONTWAIT);
        (void) fd_close(fd);
        s->stats.refused++;
}

/* The connection that has been waiting longest, unless its last response is not sent yet. */
static struct http_conn *longest_waiting(struct timeout_kind *kind)
{
        struct timeout *t = timeout_oldest(kind);
        struct http_conn *c = t ? container_of(t, struct http_conn, timeout) : NULL;

        return c && stream_pending(&c->stream) == 0 ? c : NULL;
}

/* Makes room for a new connection: closes one that waits and has never been authenticated, else an idle one,
 * else one with an unfinished head, else one whose body has not restarted its timeout for a quarter of it. A
 * live upload does (at four times the minimum rate); one that only occupies its place sends as little as it
 * can. */
static bool evict_conn(struct http_server *s)
{
        struct http_conn *c;

        if (s->stats.connections < s->config.conns_max)
                return true;
        c = conn__oldest_stranger(s);
        if (!c)
                c = longest_waiting(&s->idle_timeout);
        if (!c)
                c = longest_waiting(&s->head_timeout);
        if (!c) {
                c = longest_waiting(&s->body_timeout);
                if (c
                    && c->timeout.deadline > net_loop_now(s->loop) + s->config.body_timeout / 4 * 3)
                        c = NULL;
        }
        if (!c)
                return false;
        s->stats.evicted++;
        http_conn_close(c, -ETIMEDOUT);
        return true;
}

void http_conn_accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        struct http_server *s = container_of(l, struct http_listener, net)->server;
        struct http_conn *c;
        char host[SOCK_ADDR_TEXT_MAX];
        int room;

        c = xnew(struct http_conn);
        c->server = s;
        c->state = CONN_CLOSED;
        sock_addr_host(peer, host);
        (void) snprintf(c->peer, sizeof(c->peer), "%.60s", host);
        c->peer_uid = sock_peer_uid(fd);
        room = conn__join_address(c, peer);
        if (room < 0 || (room == 0 && !evict_conn(s))) {
                reject_conn(s, fd, /* of_address= */ room < 0);
                conn__leave_shares(c);
                free(c);
                return;
        }
        buf_init(&c->pending, PENDING_MAX);
        timeout_init(&c->timeout);
        net_task_init(&c->task, advance);
        http_message_init(&c->message, HTTP_REQUEST, &req__message_ops);
        if (stream_open(&c->stream, s->loop, fd, CONN_OUT_MAX, &conn_stream_ops) < 0) {
                conn__leave_shares(c);
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
        /* A FIN would make half a response look complete. */
        bool cut_off = req && req->res.state != HTTP_RES_NONE && c->until_eof && !c->responded;

        if (c->state == CONN_CLOSED)
                return;
        conn__set_state(c, CONN_CLOSED);
        conn__leave_shares(c);
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
