/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/status.h"
#include "http/url.h"

/* Responses of handlers, serialized into the stream of the connection. Everything is queued; nothing
 * here calls back. All functions do nothing once the client is gone. */

/* Reserved for an ordinary head and a small body, instead of doubling the buffer. */
#define HEAD_ROOM 512

/* --- heads --- */

int http_res_header(struct http_req *req, struct str name, struct str value)
{
        if (!http_token_is_valid(name) || !http_field_value_is_valid(value))
                return -EINVAL;
        name = arena_dup_str(&req->arena, name);
        value = arena_dup_str(&req->arena, value);
        if (!name.p || !value.p)
                return -ENOMEM;
        return http_headers_add(&req->res.headers, &req->arena, name, value);
}

void http_res_header_const(struct http_req *req, struct str name, struct str value)
{
        /* Without memory the header is missing; the response is still sent. */
        (void) !http_headers_add(&req->res.headers, &req->arena, name, value);
}

/* Whether the remainder of the request's body is short, and certain to arrive, so that discarding it
 * keeps the connection. */
static bool can_discard_body(const struct http_conn *c)
{
        const struct http_req *req = c->req;

        if (c->state != CONN_BODY || !req->has_body)
                return true;
        if (!c->continued)
                return false;
        return req->content_length == HTTP_LENGTH_UNKNOWN
               || req->content_length - req->_body_seen <= CONN_DISCARD_MAX;
}

static void add_framing(struct http_conn *c, struct http_req *req, struct buf *b)
{
        bool body = http_status_has_body(req->res.status);

        c->chunked = c->until_eof = false;
        if (req->res.length != HTTP_LENGTH_UNKNOWN) {
                if (body) {
                        buf_add_str(b, STR("Content-Length: "));
                        buf_add_u64(b, req->res.length);
                        buf_add(b, "\r\n", 2);
                }
        } else if (body && req->minor >= 1) {
                c->chunked = !req->_head_only;
                buf_add_str(b, STR("Transfer-Encoding: chunked\r\n"));
        } else if (body && !req->_head_only) {
                c->until_eof = true; /* HTTP/1.0 has no chunks */
                c->keep_alive = false;
        }
        if (!c->keep_alive)
                buf_add_str(b, STR("Connection: close\r\n"));
        else if (req->minor == 0)
                buf_add_str(b, STR("Connection: keep-alive\r\n"));
}

/* Appends the head to the output; what the response consists of is known from now on. */
static void add_head(struct http_req *req, int status, uint64_t length)
{
        struct http_conn *c = req->_conn;
        struct http_server *s = c->server;
        struct buf *b = &c->stream.out;
        char digits[] = { (char) ('0' + status / 100 % 10), (char) ('0' + status / 10 % 10),
                          (char) ('0' + status % 10), ' ' };
        bool has_date = false, has_server = false;

        ASSERT(req->res.state == HTTP_RES_NONE);
        req->res.status = status;
        req->res.length = http_status_has_body(status) ? length : 0;
        req->res.state = HTTP_RES_STREAM;
        if (s->draining || !can_discard_body(c))
                c->keep_alive = false;
        (void) !buf_reserve(b, HEAD_ROOM); /* a failure is recorded in the buffer */
        buf_add_str(b, STR("HTTP/1.1 "));
        buf_add(b, digits, sizeof(digits));
        buf_add_str(b, http_status_text(status));
        buf_add(b, "\r\n", 2);
        for (size_t i = 0; i < req->res.headers.n; i++) {
                const struct http_header *h = &req->res.headers.v[i];

                has_date |= str_caseeq(h->name, STR("Date"));
                has_server |= str_caseeq(h->name, STR("Server"));
                http_header_write(b, h->name, h->value);
        }
        if (status >= 200)
                add_framing(c, req, b);
        if (!has_date) {
                usec_t now = net_loop_now(s->loop);

                if (s->date_n == 0 || now - s->date_at >= USEC_PER_SEC) {
                        s->date_n = time_to_http(clock_wall(s->loop->clock), s->date);
                        s->date_at = now;
                }
                http_header_write(b, STR("Date"), str_of(s->date, s->date_n));
        }
        if (s->config.server_name.p && !has_server)
                http_header_write(b, STR("Server"), s->config.server_name);
        http_header_write(b, STR("X-Request-ID"), req->id);
        buf_add(b, "\r\n", 2);
}

/* --- complete responses --- */

void http_reply(struct http_req *req, int status, struct str type, struct str body)
{
        struct net_stream *out;

        if (http_req_is_gone(req))
                return;
        out = &req->_conn->stream;
        if (type.p)
                http_res_header_const(req, STR("Content-Type"), type);
        if (!http_status_has_body(status))
                body = STR("");
        add_head(req, status, body.n);
        req->res.sent = body.n;
        if (body.n > HTTP_COPY_MAX && !req->_head_only) {
                stream_queue_borrowed(out, body);
        } else {
                if (!req->_head_only)
                        buf_add_str(&out->out, body);
                stream_queue_flush(out);
        }
        http_stream_end(req);
}

void http_reply_empty(struct http_req *req, int status)
{
        http_reply(req, status, STR_NULL, STR(""));
}

static struct str default_error_format(struct http_req *req, const struct http_problem *p,
                                       struct buf *ret_body)
{
        (void) req;
        buf_add_str(ret_body, STR("{\"code\":"));
        buf_add_quoted(ret_body, str_from(p->code));
        buf_add_str(ret_body, STR(",\"message\":"));
        buf_add_quoted(ret_body, str_from(p->message));
        buf_add_char(ret_body, '}');
        return STR("application/json");
}

void http_reply_error(struct http_req *req, int status, const char *code, const char *fmt, ...)
{
        char message[ERR_MESSAGE_MAX];
        struct http_problem p = { status, code, message };
        http_shape_fn *shape = req->api && req->api->shape ? req->api->shape : default_error_format;
        scoped(buf_done) struct buf b;
        struct str type;
        va_list ap;

        buf_init(&b, HTTP_COPY_MAX);
        if (http_req_is_gone(req))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        type = shape(req, &p, &b);
        req->res.code = code;
        http_reply(req, status, type, buf_str(&b));
}

/* --- streams --- */

void http_stream_begin(struct http_req *req, int status, uint64_t length)
{
        if (http_req_is_gone(req))
                return;
        add_head(req, status, length);
        stream_queue_flush(&req->_conn->stream);
}

void http_stream_write(struct http_req *req, struct str bytes)
{
        struct http_conn *c = req->_conn;

        ASSERT(bytes.n <= HTTP_WRITE_MAX);
        if (http_req_is_gone(req) || bytes.n == 0)
                return;
        ASSERT(req->res.state == HTTP_RES_STREAM);
        if (bytes.n > req->res.length - req->res.sent) {
                http_stream_fail(req); /* more than announced */
                return;
        }
        req->res.sent += bytes.n;
        if (req->_head_only)
                return;
        if (c->chunked)
                buf_addf(&c->stream.out, "%zx\r\n", bytes.n);
        buf_add_str(&c->stream.out, bytes);
        if (c->chunked)
                buf_add(&c->stream.out, "\r\n", 2);
        stream_queue_flush(&c->stream);
}

void http_stream_end(struct http_req *req)
{
        struct http_conn *c = req->_conn;
        bool complete = req->res.length == HTTP_LENGTH_UNKNOWN || req->_head_only
                        || req->res.sent == req->res.length;

        if (http_req_is_gone(req))
                return;
        ASSERT(req->res.state == HTTP_RES_STREAM);
        if (!complete) {
                http_stream_fail(req);
                return;
        }
        req->res.state = HTTP_RES_ENDED;
        if (c->chunked)
                stream_queue(&c->stream, STR("0\r\n\r\n"));
        c->responded = true;
        net_task_queue(c->server->loop, &c->task);
}

void http_stream_fail(struct http_req *req)
{
        if (http_req_is_gone(req))
                return;
        req->res.state = HTTP_RES_ENDED;
        req->_conn->failed = true;
        net_task_queue(req->server->loop, &req->_conn->task);
        req->_given_up = true;
}

bool http_stream_writable(const struct http_req *req)
{
        return !http_req_is_gone(req) && stream_pending(&req->_conn->stream) < CONN_OUT_LOW;
}

/* --- upgrades --- */

static void close_tunnel(struct http_tunnel *t)
{
        struct http_conn *c = t->_conn;

        c->failed = true;
        net_task_queue(c->server->loop, &c->task);
}

/* The connection drops its reference to the request; the user of the tunnel holds its own for as long
 * as it needs the request. */
int http_req_upgrade(struct http_req *req, struct http_tunnel *t)
{
        struct http_conn *c = req->_conn;

        if (http_req_is_gone(req) || req->res.state != HTTP_RES_NONE || !req->upgrade
            || req->minor == 0 || req->has_body)
                return -ENOTSUP;
        add_head(req, 101, HTTP_LENGTH_UNKNOWN);
        stream_queue_flush(&c->stream);
        req->res.state = HTTP_RES_ENDED;
        req->hooks = NULL; /* the ops of the tunnel take over */
        c->keep_alive = false;
        c->tunnel = t;
        t->stream = &c->stream;
        t->_conn = c;
        t->_close = close_tunnel;
        net_task_queue(c->server->loop, &c->task);
        return 0;
}
