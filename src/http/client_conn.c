/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"
#include "http/status.h"
#include "http/url.h"
#include "os/socket.h"

/*
 * Theory of operation
 *
 * A connection carries one call at a time:
 *
 *         connect ── HEAD ── BODY ──┬── IDLE (pool) ── HEAD …
 *                     │             └── CLOSED
 *                     └── 101 ── TUNNEL ── CLOSED
 *
 * Reading stays enabled from the first call to the last, in the pool too: an ordinary exchange does
 * not change the epoll set, and a server that closes an idle connection is noticed at once.
 *
 * The user's hooks run from conn_data and may cancel the call, which closes the connection. Every step
 * after a hook therefore checks the state before it touches the call. Only the functions here that
 * are called from the loop end a call (call__finish); functions that the user calls queue a task.
 *
 * A server may respond before it has read the request, and close. Writing then fails while its
 * response is unread in the socket. The connection is marked `broken`: output is dropped, and input
 * is parsed to its end before the call fails.
 */

/* Reserved for an ordinary head, instead of doubling the buffer. */
#define HEAD_ROOM 1024

static void set_state(struct http_client_conn *c, enum client_state state)
{
        c->client->stats.idle -= c->state == CLIENT_IDLE;
        c->client->stats.idle += state == CLIENT_IDLE;
        c->state = state;
}

/* --- timeouts and reading --- */

static struct timeout_kind *timeout_for(struct http_client_conn *c)
{
        struct http_client *cl = c->client;

        if (c->stream._connecting)
                return &cl->connect_timeout;
        if (c->stream._blocked)
                return &cl->write_timeout;
        switch (c->state) {
        case CLIENT_IDLE:
                return &cl->idle_timeout;
        case CLIENT_HEAD:
                return c->call->_body_ended ? &cl->head_timeout : NULL;
        case CLIENT_BODY:
                return c->call->_paused ? NULL : &cl->body_timeout;
        case CLIENT_TUNNEL:
        case CLIENT_CLOSED:
        default:
                return NULL;
        }
}

/* Each byte restarts the write and body timeouts in its own direction. The others run from the start
 * of their state: a slow sender gains no time. */
void client_conn__update(struct http_client_conn *c)
{
        struct http_client *cl = c->client;
        struct timeout_kind *kind;
        bool renewable, read;
        uint64_t seen;

        if (c->state == CLIENT_CLOSED)
                return;
        kind = timeout_for(c);
        seen = kind == &cl->write_timeout ? c->stream.bytes_out : c->stream.bytes_in;
        renewable = kind == &cl->body_timeout || kind == &cl->write_timeout;
        if (!kind || kind->length == USEC_INFINITY)
                timeout_clear(&c->timeout);
        else if (c->timeout.kind != kind || (renewable && seen != c->timeout_bytes))
                timeout_set(&c->timeout, kind);
        c->timeout_bytes = seen;

        read = c->state != CLIENT_BODY || !c->call->_paused;
        if (c->state != CLIENT_TUNNEL && read != c->stream.reading)
                stream_set_reading(&c->stream, read);
}

void client_conn__timed_out(struct timeout *t)
{
        struct http_client_conn *c = container_of(t, struct http_client_conn, timeout);

        if (c->state != CLIENT_IDLE)
                c->client->stats.timeouts++;
        client_conn__fail(c, -ETIMEDOUT);
}

/* --- the end of calls and connections --- */

void client_conn__close(struct http_client_conn *c, int reason)
{
        struct http_tunnel *t = TAKE_PTR(c->tunnel);

        if (c->state == CLIENT_CLOSED)
                return;
        if (c->state == CLIENT_IDLE && c->endpoint) {
                list_remove(&c->idle_node);
                c->endpoint->n_idle--;
        }
        set_state(c, CLIENT_CLOSED);
        c->call = NULL;
        timeout_clear(&c->timeout);
        net_task_cancel(&c->task);
        stream_close(&c->stream);
        if (t) {
                t->stream = NULL;
                t->_conn = NULL;
                t->ops->closed(t, reason);
        }
}

static bool is_idempotent(struct str method)
{
        static const struct str names[] = {
                STR("GET"), STR("HEAD"), STR("PUT"), STR("DELETE"), STR("OPTIONS"), STR("TRACE"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (str_eq(method, names[i]))
                        return true;
        return false;
}

/* Whether the call of c, which the server has closed, may be sent once more. */
static bool may_retry(const struct http_client_conn *c)
{
        const struct http_call *call = c->call;

        if (!c->reused || call->_retried || (call->_body_begun && !call->_bytes.p))
                return false;
        return c->stream.bytes_out == c->bytes_out_start
               || (c->stream.bytes_in == c->bytes_in_start && is_idempotent(call->method));
}

void client_conn__fail(struct http_client_conn *c, int r)
{
        struct http_call *call = c->call;
        bool retry = call && (r == -ECONNRESET || r == -EPIPE) && may_retry(c);
        bool fall_back = call && c->stream._connecting && r == -ECONNREFUSED && call->fallback;

        client_conn__close(c, r);
        if (!call)
                return;
        call->_conn = NULL;
        if (retry) {
                call->_retried = true;
                call->_client->stats.retries++;
                /* Not from the pool: the other connections there are as old as the one that failed. c
                 * holds the endpoint until the loop has closed it. */
                r = call__connect(call, &call->_endpoint->addr, /* fresh= */ true);
        } else if (fall_back) {
                r = call__connect(call, TAKE_PTR(call->fallback), /* fresh= */ false);
        }
        if (r < 0)
                call__finish(call, r);
}

/* The response is complete. `extra` bytes followed it that belong to no response. */
static void finish_call(struct http_client_conn *c, size_t extra)
{
        struct http_call *call = TAKE_PTR(c->call);
        bool reusable = c->endpoint && c->keep_alive && call->_body_ended && !c->broken
                        && extra == 0 && !c->stream.eof && stream_pending(&c->stream) == 0
                        && !c->client->freeing;

        call->_conn = NULL;
        if (reusable && endpoint__give_idle(c->endpoint, c)) {
                set_state(c, CLIENT_IDLE);
                client_conn__update(c);
        } else {
                client_conn__close(c, 0);
        }
        call__finish(call, 0);
}

/* --- tunnels --- */

static void tunnel_task(struct net_task *t)
{
        client_conn__close(container_of(t, struct http_client_conn, task), -ECONNABORTED);
}

static void close_tunnel(struct http_tunnel *t)
{
        struct http_client_conn *c = t->_conn;

        net_task_queue(c->client->loop, &c->task);
}

static void begin_tunnel(struct http_client_conn *c, char *p, size_t n)
{
        struct http_call *call = c->call;
        struct http_tunnel *t = call->hooks->upgrade ? call->hooks->upgrade(call) : NULL;

        if (!t) {
                client_conn__fail(c, -ENOTSUP);
                return;
        }
        ASSERT(c->call == call); /* a hook that rejects returns NULL, it does not cancel */
        c->tunnel = t;
        t->stream = &c->stream;
        t->_conn = c;
        t->_close = close_tunnel;
        if (t->paused)
                stream_pause_reading(&c->stream);
        c->call = NULL;
        call->_conn = NULL;
        set_state(c, CLIENT_TUNNEL);
        client_conn__update(c);
        call__finish(call, 0);
        if (c->state == CLIENT_TUNNEL && n > 0)
                t->ops->data(t, p, n);
}

/* --- parsing responses, which are hostile input --- */

static void message_body(struct http_message *m, const char *p, size_t n)
{
        struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        if (c->call && c->call->hooks->body) /* the hook may have canceled the call */
                c->call->hooks->body(c->call, p, n);
}

static bool message_is_bodiless(const struct http_message *m)
{
        const struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        return c->head_only || !http_status_has_body(m->llhttp.status_code);
}

static const struct http_message_ops message_ops = {
        .body = message_body,
        .is_bodiless = message_is_bodiless,
};

/* What llhttp leaves to its user. A length that can be read in two ways is how responses are
 * smuggled. llhttp reads a response with an unknown Transfer-Encoding until the end of the connection;
 * as the header is not forwarded, the coding would be lost. */
static bool head_is_valid(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;
        const llhttp_t *parsed = &c->message.llhttp;
        size_t te = http_headers_count(h, STR("Transfer-Encoding"));
        size_t cl = http_headers_count(h, STR("Content-Length"));

        if (parsed->http_major != 1 || parsed->http_minor > 1)
                return false;
        if (parsed->status_code < 100 || parsed->status_code > 599)
                return false;
        for (size_t i = 0; i < h->n; i++)
                if (!http_token_is_valid(h->v[i].name))
                        return false;
        if (te == 0)
                return cl <= 1;
        return te == 1 && cl == 0 && parsed->http_minor == 1
               && str_caseeq(http_headers_get(h, STR("Transfer-Encoding")), STR("chunked"));
}

/* A 204 or 1xx has no body. If it announces one, the server may send it, too. */
static bool announces_body(const struct http_client_conn *c)
{
        return c->message.llhttp.content_length > 0
               || http_headers_count(&c->message.headers, STR("Transfer-Encoding")) > 0;
}

static int head_complete(struct http_client_conn *c)
{
        struct http_call *call = c->call;
        int status = c->message.llhttp.status_code;

        if (!head_is_valid(c))
                return -EBADMSG;
        if (status < 200 && status != 101) {
                if (++c->interim > CLIENT_INTERIM_MAX || announces_body(c))
                        return -EBADMSG;
                http_message_begin(&c->message, call->arena, c->client->config.head_max,
                                   /* target_max= */ 0);
                return 0;
        }
        /* A tunnel cannot begin behind a body in memory that is not sent yet. */
        if (status == 101
            && (!call->upgrade.p || !c->message.upgrade || announces_body(c) || !call->_body_ended
                || stream_pending(&c->stream) > c->stream.out.n))
                return -EBADMSG;
        c->keep_alive = c->message.keep_alive && !(status == 204 && announces_body(c));
        call->status = status;
        call->response = c->message.headers;
        call->length = http_headers_get(&call->response, STR("Content-Length")).p
                               ? c->message.llhttp.content_length
                               : HTTP_LENGTH_UNKNOWN;
        c->state = CLIENT_BODY;
        if (status != 101)
                call->hooks->head(call);
        return 0;
}

/* --- callbacks of the stream --- */

static struct http_client_conn *conn_of(struct net_stream *st)
{
        return container_of(st, struct http_client_conn, stream);
}

static void conn_data(struct net_stream *st, char *p, size_t n)
{
        struct http_client_conn *c = conn_of(st);
        size_t used = 0;

        if (c->state == CLIENT_TUNNEL)
                return c->tunnel->ops->data(c->tunnel, p, n);
        if (c->state == CLIENT_IDLE) /* a response without a request */
                return client_conn__close(c, -EBADMSG);
        /* The same: nothing of this request was sent yet. */
        if (c->state == CLIENT_HEAD && c->stream.bytes_out == c->bytes_out_start)
                return client_conn__fail(c, -ECONNRESET);

        while (used < n) {
                ssize_t r = http_message_feed(&c->message, p + used, n - used);
                int head = 0;

                if (r >= 0 && c->message.got_head && c->state == CLIENT_HEAD)
                        head = head_complete(c);
                if (c->state == CLIENT_CLOSED)
                        return; /* canceled by a hook */
                if (r < 0 || head < 0)
                        return client_conn__fail(c, r < 0 ? (int) r : head);
                used += (size_t) r;
                if (!c->message.got_message)
                        continue;
                if (c->call->status == 101)
                        return begin_tunnel(c, p + used, n - used);
                return finish_call(c, n - used);
        }
        client_conn__update(c);
}

static void conn_eof(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);

        if (c->state == CLIENT_TUNNEL)
                c->tunnel->ops->eof(c->tunnel);
        else if (c->state == CLIENT_IDLE)
                client_conn__close(c, 0);
        else if (c->state == CLIENT_BODY && c->message.until_eof && !c->broken)
                finish_call(c, 0);
        else
                client_conn__fail(c, -ECONNRESET);
}

static void notify_drained(struct http_client_conn *c)
{
        if (!c->call || c->call->_body_ended)
                return;
        if (c->call->hooks->drain)
                c->call->hooks->drain(c->call);
}

static void conn_drained(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);

        client_conn__update(c);
        if (c->state == CLIENT_TUNNEL)
                c->tunnel->ops->drained(c->tunnel);
        else
                notify_drained(c);
}

static void conn_stalled(struct net_stream *st)
{
        client_conn__update(conn_of(st));
}

/* The server may also keep its sending side open after it stopped reading. The remainder of the body
 * is dropped then, but its writer must not wait for a drain that never comes. */
static void conn_error(struct net_stream *st, int r)
{
        struct http_client_conn *c = conn_of(st);
        bool in_call = c->state == CLIENT_HEAD || c->state == CLIENT_BODY;

        if (in_call && !c->broken && !st->_connecting && (r == -EPIPE || r == -ECONNRESET)) {
                c->broken = true;
                stream_drop_output(st);
                client_conn__update(c);
                notify_drained(c);
                return;
        }
        client_conn__fail(c, r);
}

static void conn_closed(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);
        struct http_client *cl = c->client;

        list_remove(&c->node);
        if (c->endpoint)
                endpoint__unref(c->endpoint);
        free(c);
        cl->stats.connections--;
        client__check_end(cl);
}

static const struct net_stream_ops stream_ops = {
        .data = conn_data,
        .eof = conn_eof,
        .drained = conn_drained,
        .stalled = conn_stalled,
        .error = conn_error,
        .closed = conn_closed,
};

/* --- opening --- */

int client_conn__open(struct http_client *cl, struct http_endpoint *e, int fd, bool connecting,
                      struct http_client_conn **ret)
{
        struct http_client_conn *c = xnew(struct http_client_conn);
        int r;

        r = connecting
                    ? stream_open_connecting(&c->stream, cl->loop, fd, CLIENT_OUT_MAX, &stream_ops)
                    : stream_open(&c->stream, cl->loop, fd, CLIENT_OUT_MAX, &stream_ops);
        if (r < 0) {
                free(c);
                return r;
        }
        c->client = cl;
        c->state = CLIENT_CLOSED;
        list_init(&c->idle_node);
        timeout_init(&c->timeout);
        net_task_init(&c->task, tunnel_task);
        http_message_init(&c->message, HTTP_RESPONSE, &message_ops);
        list_append(&cl->conns, &c->node);
        cl->stats.connections++;
        if (e) {
                c->endpoint = e;
                e->n_conns++;
                cl->stats.connects++;
        }
        *ret = c;
        return 0;
}

static void write_head(const struct http_call *call, struct buf *out, bool keep_alive)
{
        (void) !buf_reserve(out, HEAD_ROOM); /* a failure is recorded in the buffer */
        buf_add_str(out, call->method);
        buf_add_char(out, ' ');
        buf_add_str(out, call->target);
        buf_add_str(out, STR(" HTTP/1.1\r\n"));
        for (size_t i = 0; i < call->headers.n; i++)
                http_header_write(out, call->headers.v[i].name, call->headers.v[i].value);
        if (call->body == HTTP_CALL_SIZED) {
                buf_add_str(out, STR("Content-Length: "));
                buf_add_u64(out, call->body_length);
                buf_add(out, "\r\n", 2);
        } else if (call->body == HTTP_CALL_CHUNKED) {
                buf_add_str(out, STR("Transfer-Encoding: chunked\r\n"));
        }
        if (call->upgrade.p) {
                buf_add_str(out, STR("Connection: Upgrade\r\n"));
                http_header_write(out, STR("Upgrade"), call->upgrade);
        } else if (!keep_alive) {
                buf_add_str(out, STR("Connection: close\r\n"));
        }
        buf_add(out, "\r\n", 2);
}

void client_conn__begin(struct http_client_conn *c, struct http_call *call, bool reused)
{
        c->call = call;
        call->_conn = c;
        call->_body_left = call->_bytes.p ? 0 : call->body_length;
        call->_body_ended = call->body == HTTP_CALL_NO_BODY
                            || (call->body == HTTP_CALL_SIZED && call->_body_left == 0);
        c->reused = reused;
        c->client->stats.reuses += reused;
        c->interim = 0;
        c->head_only = str_eq(call->method, STR("HEAD"));
        c->bytes_in_start = c->stream.bytes_in;
        c->bytes_out_start = c->stream.bytes_out;
        http_message_begin(&c->message, call->arena, c->client->config.head_max,
                           /* target_max= */ 0);
        write_head(call, &c->stream.out, c->endpoint != NULL);
        set_state(c, CLIENT_HEAD);
        stream_queue_borrowed(&c->stream, call->_bytes); /* a body in memory follows the head */
        client_conn__update(c);
}
