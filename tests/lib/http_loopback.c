/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/http_loopback.h"

#include <unistd.h>

#include "base/base.h"
#include "http/server_impl.h"
#include "http/transport.h"
#include "http/url.h"

/* The body is delivered in small pieces, so that handlers meet fragments here already. */
#define PIECE 4096

static struct http_loopback *loopback_of(const struct http_req *req)
{
        return req->_conn;
}

static void lb_head(struct http_req *req)
{
        struct http_loopback *lb = loopback_of(req);

        lb->status = req->res.status;
        lb->headers = req->res.headers;
        (void) !http_headers_add(&lb->headers, &req->arena, STR("X-Request-ID"), req->id);
}

static void lb_data(struct http_req *req, struct str bytes)
{
        if (!req->_head_only)
                buf_add_str(&loopback_of(req)->body, bytes);
}

static void lb_file(struct http_req *req, uint64_t pos, uint64_t n)
{
        struct http_loopback *lb = loopback_of(req);
        char *p = req->_head_only ? NULL : buf_reserve(&lb->body, n);
        ssize_t got = p ? pread(req->res.file, p, n, (off_t) pos) : 0;

        if (p && got == (ssize_t) n)
                buf_advance(&lb->body, n);
        else if (p)
                lb->failed = true;
}

static void lb_end(struct http_req *req)
{
        struct http_loopback *lb = loopback_of(req);

        if (!lb->ended)
                http_req_account(req);
        lb->ended = true;
}

static void lb_fail(struct http_req *req)
{
        loopback_of(req)->failed = true;
        lb_end(req);
}

static bool lb_writable(const struct http_req *req)
{
        (void) req;
        return true;
}

static void feed(struct http_loopback *lb)
{
        struct http_req *req = lb->_req;

        while (req->_body_requested && !req->_body_paused && !lb->ended
               && lb->_fed < lb->_request_body.n) {
                size_t n = MIN_OF((size_t) PIECE, lb->_request_body.n - lb->_fed);

                lb->_fed += n;
                if (!http_req_deliver(req, lb->_request_body.p + lb->_fed - n, n))
                        return;
        }
        if (!lb->ended && !lb->_fed_end && lb->_fed == lb->_request_body.n && !req->_body_paused
            && (req->_body_requested || !req->has_body)) {
                lb->_fed_end = true;
                http_req_deliver_end(req);
        }
}

static void lb_body_flow(struct http_req *req)
{
        (void) req; /* the body goes on from http_loopback_start and the turns of run */
}

static int lb_upgrade(struct http_req *req, struct http_tunnel *t)
{
        (void) req;
        (void) t;
        return -ENOTSUP;
}

static const struct http_transport_ops loopback_transport = {
        .head = lb_head,
        .data = lb_data,
        .borrow = lb_data,
        .file = lb_file,
        .end = lb_end,
        .fail = lb_fail,
        .writable = lb_writable,
        .body_flow = lb_body_flow,
        .upgrade = lb_upgrade,
};

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
        struct http_req *req = http_req_new(lb->_server, &loopback_transport, lb);
        struct url_target url;

        lb->_req = req;
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
                return;
        }
        req->path = url.path;
        req->query = url.query;
        http_router_head(lb->_server->router, req);
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
        bool before = lb->ended;

        http_req_abort(lb->_req, reason);
        lb->ended = true;
        if (!before)
                http_req_account(lb->_req);
}
