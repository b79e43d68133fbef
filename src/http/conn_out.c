/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"

#include "base/base.h"
#include "http/status.h"

/* Serializes responses: the transport of real connections. Everything is queued in the stream;
 * nothing here calls back. */

/* Reserved for an ordinary head and a small body, instead of doubling the buffer. */
#define HEAD_ROOM 512

static struct http_conn *conn_of(const struct http_req *req)
{
        return req->_conn;
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

static void out_head(struct http_req *req)
{
        struct http_conn *c = conn_of(req);
        struct http_server *s = c->server;
        struct buf *b = &c->stream.out;
        int status = req->res.status;
        char digits[] = { (char) ('0' + status / 100 % 10), (char) ('0' + status / 10 % 10),
                          (char) ('0' + status % 10), ' ' };
        bool has_date = false, has_server = false;

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
        stream_queue_flush(&c->stream);
}

static void out_data(struct http_req *req, struct str bytes)
{
        struct http_conn *c = conn_of(req);
        struct buf *b = &c->stream.out;

        if (req->_head_only || bytes.n == 0)
                return;
        if (!c->chunked) {
                stream_queue(&c->stream, bytes);
                return;
        }
        buf_addf(b, "%zx\r\n", bytes.n);
        buf_add_str(b, bytes);
        buf_add(b, "\r\n", 2);
        stream_queue_flush(&c->stream);
}

static void out_borrow(struct http_req *req, struct str bytes)
{
        if (!req->_head_only)
                stream_queue_borrowed(&conn_of(req)->stream, bytes);
}

static void out_file(struct http_req *req, uint64_t pos, uint64_t n)
{
        if (!req->_head_only)
                stream_queue_file(&conn_of(req)->stream, req->res.file, pos, n);
}

static void out_end(struct http_req *req)
{
        struct http_conn *c = conn_of(req);

        if (c->chunked)
                stream_queue(&c->stream, STR("0\r\n\r\n"));
        c->responded = true;
        net_task_queue(c->server->loop, &c->task);
}

static void out_fail(struct http_req *req)
{
        struct http_conn *c = conn_of(req);

        c->failed = true;
        net_task_queue(c->server->loop, &c->task);
}

static bool out_writable(const struct http_req *req)
{
        return stream_pending(&conn_of(req)->stream) < CONN_OUT_LOW;
}

static void out_body_flow(struct http_req *req)
{
        struct http_conn *c = conn_of(req);

        if (req->_body_requested && !c->continued && c->state == CONN_BODY) {
                c->continued = true;
                if (req->res.state == HTTP_RES_NONE)
                        stream_queue(&c->stream, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        }
        net_task_queue(c->server->loop, &c->task);
}

static void close_tunnel(struct http_tunnel *t)
{
        struct http_conn *c = t->_conn;

        c->failed = true;
        net_task_queue(c->server->loop, &c->task);
}

/* The connection drops its reference to the request; the user of the tunnel holds its own for as long
 * as it needs the request. */
static int out_upgrade(struct http_req *req, struct http_tunnel *t)
{
        struct http_conn *c = conn_of(req);

        if (!req->upgrade || req->minor == 0 || req->has_body)
                return -ENOTSUP;
        out_head(req);
        c->keep_alive = false;
        c->tunnel = t;
        t->stream = &c->stream;
        t->_conn = c;
        t->_close = close_tunnel;
        net_task_queue(c->server->loop, &c->task);
        return 0;
}

const struct http_transport_ops conn__transport = {
        .head = out_head,
        .data = out_data,
        .borrow = out_borrow,
        .file = out_file,
        .end = out_end,
        .fail = out_fail,
        .writable = out_writable,
        .body_flow = out_body_flow,
        .upgrade = out_upgrade,
};
