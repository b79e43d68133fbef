/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy.h"

#include "base/base.h"
#include "http/client_impl.h"
#include "http/proxy_headers.h"
#include "os/fd.h"

/*
 * Theory of operation
 *
 * A proxied request joins two objects with independent lifetimes: the request of the client (http/req.h)
 * and a call to the upstream (http/client.h). Either side may end first.
 *
 *         http_proxy ── http_call_start ── connection established ── http_body_start (100 Continue)
 *         client body ── req_body ── http_call_write           full: http_body_pause, until call_drain
 *         response    ── call_head ── http_stream_begin
 *                        call_body ── http_stream_write        full: the call is paused, until req_drain
 *                        call_end  ── http_stream_end, or an error response
 *         101         ── call_upgrade ── http_req_upgrade, pump
 *
 * Invariant: struct proxied lives in the arena of the request and holds a reference to it until the
 * call's `end`, which always comes; after a protocol switch the pump holds the reference until both
 * tunnels are closed. So either side may use the other without asking whether it exists: writing to a
 * request whose client is gone, or to a call that has ended, does nothing.
 *
 * If the client goes away, req_abort cancels the call. If the upstream fails before our head was sent,
 * the client gets an error response; afterwards its connection is reset, so that it cannot mistake the
 * response for complete.
 */

struct proxied {
        struct http_call call;
        struct http_req *req;
        http_proxy_failed_fn *failed;
        http_proxy_filter_fn *filter;
        size_t n_headers; /* of our response, before those of the upstream were added */
        struct buf body;  /* sent instead of the request's */
        bool switched;    /* the pump holds the reference */
        bool rejected;    /* the call was canceled because of its response */
};

struct switched {
        struct http_pump pump;
        struct http_req *req;
};

/* --- failures --- */

static void reply_failure(struct http_req *req, http_proxy_failed_fn *failed, int r)
{
        static const struct {
                int r;
                struct http_problem problem;
        } map[] = {
                { -ETIMEDOUT, { 504, "GATEWAY_TIMEOUT", "the upstream did not respond in time" } },
                { -EAGAIN, { 503, "UPSTREAM_BUSY", "the upstream accepts no connection now" } },
                { -EBADMSG, { 502, "BAD_GATEWAY", "the upstream sent an invalid response" } },
                { -E2BIG,
                  { 502, "BAD_GATEWAY", "the response head of the upstream is too large" } },
                { -ECONNRESET,
                  { 502, "BAD_GATEWAY", "the upstream closed the connection without a response" } },
                { -EPIPE,
                  { 502, "BAD_GATEWAY", "the upstream closed the connection without a response" } },
                { -ECANCELED, { 503, "SHUTTING_DOWN", "the proxy is shutting down" } },
                { -EINVAL, { 400, "BAD_REQUEST", "the request cannot be forwarded" } },
                { -ENOMEM, { 431, "HEADERS_TOO_LARGE", "the request head is too large" } },
        };
        char message[128];
        struct http_problem p = { 502, "BAD_GATEWAY", message };

        (void) snprintf(message, sizeof(message), "the upstream cannot be reached: %s",
                        strerror(-r));
        for (size_t i = 0; i < ARRAY_SIZE(map); i++)
                if (map[i].r == r)
                        p = map[i].problem;
        if (failed)
                failed(req, &p);
        else
                http_reply_error(req, p.status, p.code, "%s", p.message);
}

static struct proxied *proxied_of(struct http_call *call)
{
        return container_of(call, struct proxied, call);
}

/* --- the request of the client --- */

static void req_body(struct http_req *req, const char *p, size_t n)
{
        struct proxied *x = req->data;

        http_call_write(&x->call, str_of(p, n));
        if (!http_call_writable(&x->call) && !x->call._body_ended)
                http_body_pause(req);
}

static void req_body_end(struct http_req *req)
{
        struct proxied *x = req->data;

        http_call_end_body(&x->call);
}

static void req_drain(struct http_req *req)
{
        struct proxied *x = req->data;

        http_call_set_paused(&x->call, false);
}

static void req_abort(struct http_req *req, int reason)
{
        struct proxied *x = req->data;

        (void) reason;
        http_call_cancel(&x->call);
}

static const struct http_hooks req_hooks = {
        .body = req_body,
        .body_end = req_body_end,
        .drain = req_drain,
        .abort = req_abort,
};

/* --- the call to the upstream --- */

static void call_head(struct http_call *call)
{
        struct proxied *x = proxied_of(call);

        if (proxy__response_headers(x->req, &call->response, x->filter) < 0) {
                x->rejected = true;
                http_call_cancel(call);
                return;
        }
        http_stream_begin(x->req, call->status, call->length);
}

static void call_body(struct http_call *call, const char *p, size_t n)
{
        struct http_req *req = proxied_of(call)->req;

        http_stream_write(req, str_of(p, n));
        if (!http_stream_writable(req))
                http_call_set_paused(call, true);
}

/* The first drain means that the connection is established: the client may send its body. */
static void call_drain(struct http_call *call)
{
        struct http_req *req = proxied_of(call)->req;

        http_body_start(req, HTTP_LENGTH_UNKNOWN);
        http_body_resume(req);
}

static void pump_ended(struct http_pump *p)
{
        http_req_unref(container_of(p, struct switched, pump)->req); /* frees the pump, too */
}

static struct http_tunnel *call_upgrade(struct http_call *call)
{
        struct proxied *x = proxied_of(call);
        struct http_req *req = x->req;
        struct switched *s = arena_new(&req->arena, struct switched);

        if (!s || proxy__response_headers(req, &call->response, x->filter) < 0)
                return NULL;
        http_res_header_const(req, STR("Connection"), STR("Upgrade"));
        http_res_header_const(req, STR("Upgrade"),
                              http_headers_get(&call->response, STR("Upgrade")));
        http_pump_init(&s->pump, &call->_client->tunnel_timeout,
                       &call->_client->half_closed_timeout, pump_ended);
        if (http_req_upgrade(req, &s->pump.a.tunnel) < 0)
                return NULL;
        s->req = req;
        x->switched = true;
        return &s->pump.b.tunnel;
}

static void call_end(struct http_call *call, int r)
{
        struct proxied *x = proxied_of(call);
        struct http_req *req = x->req;

        if (x->switched)
                return;
        if (x->rejected)
                r = -EBADMSG;
        if (r == 0) {
                http_stream_end(req);
        } else if (req->res.state == HTTP_RES_STREAM) {
                http_stream_fail(req);
        } else if (req->res.state == HTTP_RES_NONE && !http_req_is_gone(req)) {
                req->res.headers.n = x->n_headers; /* drop those of a rejected response */
                reply_failure(req, x->failed, r);
        }
        http_req_set_hooks(req, NULL, NULL);
        buf_done(&x->body);
        http_req_unref(req);
}

static const struct http_call_hooks call_hooks = {
        .head = call_head,
        .body = call_body,
        .drain = call_drain,
        .upgrade = call_upgrade,
        .end = call_end,
};

/* --- starting --- */

static int join_target(struct http_req *req, const struct http_proxy_target *t, struct str *ret)
{
        size_t n = t->prefix.n + t->path.n + (req->query.p ? req->query.n + 1 : 0);
        struct buf b;
        char *p = arena_alloc(&req->arena, n + 1);

        if (!p)
                return -ENOMEM;
        buf_init_fixed(&b, p, n + 1);
        buf_add_str(&b, t->prefix);
        buf_add_str(&b, t->path);
        if (req->query.p) {
                buf_add_char(&b, '?');
                buf_add_str(&b, req->query);
        }
        *ret = buf_str(&b);
        return 0;
}

/* HTTP inside the tunnel would bypass the proxy: its requests would be neither checked nor stripped of
 * headers. A server may ignore such an offer, and we do. */
static bool may_switch(const struct http_req *req)
{
        struct str offers = http_req_header(req, STR("Upgrade")), protocol;

        if (!req->upgrade || req->minor == 0 || req->has_body)
                return false;
        while (str_split(&offers, ',', &protocol)) {
                protocol = str_trim(protocol);
                if (str_caseeq(protocol, STR("h2c")) || str_caseeq(protocol, STR("h2"))
                    || (protocol.n >= 4 && str_caseeq(str_of(protocol.p, 4), STR("HTTP")))
                    || (protocol.n >= 3 && str_caseeq(str_of(protocol.p, 3), STR("TLS"))))
                        return false;
        }
        return true;
}

/* Method, target, headers, and how the body will come. */
static int describe_call(struct http_req *req, const struct http_proxy_target *t,
                         struct http_call *call)
{
        int r;

        http_call_init(call, &call_hooks, &req->arena);
        call->method = req->method_name;
        call->fallback = t->fallback;
        if (t->body) {
                http_call_set_body(call, buf_str(t->body));
        } else if (may_switch(req)) {
                call->upgrade = http_req_header(req, STR("Upgrade"));
        } else if (req->has_body && req->content_length == HTTP_LENGTH_UNKNOWN) {
                call->body = HTTP_CALL_CHUNKED;
        } else if (req->has_body || http_req_header(req, STR("Content-Length")).p) {
                call->body = HTTP_CALL_SIZED;
                call->body_length = req->content_length;
        }
        r = join_target(req, t, &call->target);
        if (r == 0)
                r = proxy__request_headers(req, t, &call->headers);
        return r == -EBADMSG ? -EINVAL : r;
}

void http_proxy(struct http_req *req, const struct http_proxy_target *t)
{
        struct proxied *x = arena_new(&req->arena, struct proxied);
        int r = x ? describe_call(req, t, &x->call) : -ENOMEM;

        /* The client left while the target was looked up: hooks->abort will not come. */
        if (http_req_is_gone(req))
                r = -ECONNRESET;
        if (r < 0) {
                if (!t->addr)
                        (void) fd_close(t->fd);
                if (t->body)
                        buf_done(t->body);
                reply_failure(req, t->failed, r);
                return;
        }
        x->req = http_req_ref(req);
        x->failed = t->failed;
        x->filter = t->filter;
        x->n_headers = req->res.headers.n;
        if (t->body) {
                x->body = *t->body;
                *t->body = (struct buf){ 0 };
        }
        http_body_stream(req);
        http_req_set_hooks(req, &req_hooks, x);
        http_req_abort_on_eof(req);
        if (t->addr)
                http_call_start(t->client, &x->call, t->addr);
        else
                http_call_start_fd(t->client, &x->call, t->fd);
        if (!t->body && http_call_writable(&x->call))
                http_body_start(req, HTTP_LENGTH_UNKNOWN);
        http_req_release(req);
}
