/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/http_loopback.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/url.h"

/* The body is delivered in small pieces, so that handlers meet fragments here already. */
#define PIECE 4096

/* A connection without a socket: its output stays queued until it is collected. */
struct loopback_conn {
        struct http_conn conn;
        struct http_loopback *lb;
};

/* --- the response --- */

static void take_head(struct http_loopback *lb, struct buf *out)
{
        struct http_req *req = lb->_req;
        struct str text = buf_str(out);
        const char *end = memmem(text.p, text.n, "\r\n\r\n", 4);

        ASSERT(end);
        buf_consume(out, (size_t) (end - text.p) + 4);
        lb->status = req->res.status;
        lb->headers = req->res.headers;
        (void) !http_headers_add(&lb->headers, &req->arena, STR("X-Request-ID"), req->id);
}

static void take_chunks(struct http_loopback *lb, struct str text)
{
        while (text.n > 0) {
                char *end;
                size_t n = strtoul(text.p, &end, 16);

                text = str_skip(text, (size_t) (end - text.p) + 2);
                buf_add(&lb->body, text.p, n);
                text = str_skip(text, n + 2);
        }
}

static void take_file(struct http_loopback *lb, struct net_stream *s)
{
        size_t n = (size_t) s->_file_left;
        char *p = n ? buf_reserve(&lb->body, n) : NULL;

        s->_file_left = 0;
        if (p && pread(s->_file, p, n, (off_t) s->_file_pos) == (ssize_t) n)
                buf_advance(&lb->body, n);
        else if (n)
                lb->failed = true;
}

/* Takes what was queued for the client. */
static void collect(struct http_loopback *lb)
{
        struct http_conn *c = lb->_conn;
        struct net_stream *s = &c->stream;

        if (lb->status == 0 && s->out.n > 0)
                take_head(lb, &s->out);
        if (c->chunked)
                take_chunks(lb, buf_str(&s->out));
        else
                buf_add_str(&lb->body, buf_str(&s->out));
        buf_reset(&s->out);
        buf_add_str(&lb->body, s->_borrowed);
        s->_borrowed = STR_NULL;
        take_file(lb, s);
        if (lb->ended || (!c->responded && !c->failed))
                return;
        lb->failed |= c->failed;
        lb->ended = true;
        http_req_account(lb->_req);
}

static void run_flush(struct net_task *t)
{
        struct http_conn *c = container_of(t, struct http_conn, stream._flush);
        struct http_loopback *lb = container_of(c, struct loopback_conn, conn)->lb;
        struct http_req *req = lb->_req;

        collect(lb);
        if (!lb->ended && req->res.state == HTTP_RES_STREAM && req->hooks && req->hooks->drain)
                req->hooks->drain(req);
}

/* Of a real connection, this task also goes on with the body; here http_loopback_start and the turns of
 * run do. */
static void run_task(struct net_task *t)
{
        struct http_conn *c = container_of(t, struct http_conn, task);

        collect(container_of(c, struct loopback_conn, conn)->lb);
}

/* --- the request --- */

static void feed(struct http_loopback *lb)
{
        struct http_conn *c = lb->_conn;
        struct http_req *req = lb->_req;
        size_t left;

        while ((left = lb->_request_body.n - lb->_fed) > 0 && req->_body_requested
               && !req->_body_paused && !c->responded && !c->failed) {
                size_t n = MIN_OF((size_t) PIECE, left);

                lb->_fed += n;
                req__message_ops.body(&c->message, lb->_request_body.p + lb->_fed - n, n);
        }
        if (!c->responded && !c->failed && !lb->ended && !lb->_fed_end && left == 0
            && !req->_body_paused && (req->_body_requested || !req->has_body)) {
                lb->_fed_end = true;
                http_req_deliver_end(req);
        }
        collect(lb);
}

static struct http_conn *conn_new(struct http_loopback *lb)
{
        struct loopback_conn *x = xnew(struct loopback_conn);
        struct http_conn *c = &x->conn;

        x->lb = lb;
        c->server = lb->_server;
        c->state = CONN_RESPONSE;
        c->continued = true;
        c->stream.loop = lb->_server->loop;
        buf_init(&c->stream.out, LOOPBACK_MAX);
        net_task_init(&c->stream._flush, run_flush);
        net_task_init(&c->task, run_task);
        c->req = http_req_new(c);
        return c;
}

void http_loopback_init(struct http_loopback *lb, struct http_server *s)
{
        *lb = (struct http_loopback){ ._server = s };
        buf_init(&lb->body, LOOPBACK_MAX);
        arena_init(&lb->_arena, MiB);
}

void http_loopback_done(struct http_loopback *lb)
{
        if (lb->_req) {
                lb->_req->_conn = NULL;
                http_req_unref(lb->_req);
                net_task_cancel(&lb->_conn->stream._flush);
                net_task_cancel(&lb->_conn->task);
                buf_done(&lb->_conn->stream.out);
                conn__leave_shares(lb->_conn);
                free(container_of(lb->_conn, struct loopback_conn, conn));
        }
        buf_done(&lb->body);
        arena_done(&lb->_arena);
}

void http_loopback_header(struct http_loopback *lb, struct str name, struct str value)
{
        (void) !http_headers_add(&lb->_request_headers, &lb->_arena, name, value);
}

static enum http_method method_from_name(struct str name)
{
        int m = http_method_from_string(name);

        return m < 0 ? METHOD_OTHER : (enum http_method) m;
}

void http_loopback_start(struct http_loopback *lb, const char *method, const char *target,
                         struct str body)
{
        struct url_target url;
        struct http_req *req;

        lb->_conn = conn_new(lb);
        lb->_req = req = lb->_conn->req;
        lb->_request_body = body;
        req->method_name = str_from(method);
        req->method = method_from_name(req->method_name);
        req->minor = 1;
        req->_started = net_loop_now(lb->_server->loop);
        req->headers = lb->_request_headers;
        req->target = str_from(target);
        req->peer = STR("loopback");
        req->has_body = body.n > 0;
        req->content_length = body.n;
        req->_head_only = req->method == METHOD_HEAD;
        http_req_identify(req);
        if (url_split(req->target, &url) < 0) {
                http_reply_error(req, 400, "BAD_REQUEST", "the request target can't be understood");
                collect(lb);
                return;
        }
        req->path = url.path;
        req->query = url.query;
        if (http_router_find(lb->_server->router, req))
                http_router_continue(req);
        feed(lb);
}

void http_loopback_run(struct http_loopback *lb, const char *method, const char *target,
                       struct str body)
{
        http_loopback_start(lb, method, target, body);
        while (!lb->ended) {
                feed(lb);
                if (!lb->ended)
                        net_loop_run_once(lb->_server->loop, /* wait= */ true);
        }
}

void http_loopback_abort(struct http_loopback *lb, int reason)
{
        bool before;

        collect(lb);
        before = lb->ended;
        http_req_abort(lb->_req, reason);
        lb->ended = true;
        if (!before)
                http_req_account(lb->_req);
}
