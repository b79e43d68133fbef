/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn.h"

#include "base/base.h"
#include "http/url.h"

/* Turns parsed heads into requests, and rejects malformed messages. */

/* --- rejecting --- */

static const struct http_problem bad_version = { 505, "VERSION_NOT_SUPPORTED",
                                                 "only HTTP/1.0 and HTTP/1.1 are supported" };

void conn__refuse(struct http_conn *c, const struct http_problem *p)
{
        struct http_req *req = c->req;

        c->server->stats.bad_requests++;
        c->keep_alive = false;
        conn__set_state(c, CONN_REFUSED);
        if (req->res.state == HTTP_RES_ENDED)
                return;   /* the response was complete before the body turned out malformed */
        if (!req->id.p) { /* its head is incomplete, or malformed at its end */
                req->target = req->path = c->message.target.p ? c->message.target : STR("");
                http_req_identify(req);
        }
        if (!req->api)
                http_router_find_api(c->server->router, req);
        http_req_refuse(req, p->status == 408 ? -ETIMEDOUT : -EBADMSG, p);
}

void conn__refuse_message(struct http_conn *c, int r, struct str seen)
{
        static const struct http_problem target_too_long = { 414, "URI_TOO_LONG",
                                                             "the request target is too long" };
        static const struct http_problem head_too_large = { 431, "HEADERS_TOO_LARGE",
                                                            "the request head is too large" };
        const char *reason = c->message.reason;
        const struct http_problem malformed = {
                400, "BAD_REQUEST", reason && *reason ? reason : "the request cannot be parsed"
        };
        struct str line = seen, method, target;

        /* The guard rejects a head before the parser has seen it. The target in its first line is
         * good enough to choose the format of the error, and for nothing else. */
        (void) str_split(&seen, '\n', &line);
        line.n = MIN_OF(line.n, c->server->config.target_max);
        if (!c->message.target.p && str_split(&line, ' ', &method)
            && str_split(&line, ' ', &target))
                c->message.target = arena_dup_str(&c->req->arena, target);

        if (r == -ENAMETOOLONG)
                conn__refuse(c, &target_too_long);
        else if (r == -E2BIG)
                conn__refuse(c, &head_too_large);
        else if (c->message.error == HPE_INVALID_VERSION || c->message.llhttp.http_major > 1)
                conn__refuse(c, &bad_version);
        else
                conn__refuse(c, &malformed);
}

/* --- requests --- */

static enum http_method method_from_llhttp(uint8_t m)
{
        switch (m) {
        case HTTP_DELETE:
                return METHOD_DELETE;
        case HTTP_GET:
                return METHOD_GET;
        case HTTP_HEAD:
                return METHOD_HEAD;
        case HTTP_OPTIONS:
                return METHOD_OPTIONS;
        case HTTP_PATCH:
                return METHOD_PATCH;
        case HTTP_POST:
                return METHOD_POST;
        case HTTP_PUT:
                return METHOD_PUT;
        default:
                return METHOD_OTHER;
        }
}

/* What llhttp leaves to its user. NULL: the head is valid. */
static const struct http_problem *check_head(const struct http_conn *c)
{
        static const struct http_problem te = { 400, "BAD_REQUEST",
                                                "HTTP/1.0 has no Transfer-Encoding" };
        static const struct http_problem coding = {
                501, "NOT_IMPLEMENTED", "the only supported transfer coding is chunked"
        };
        static const struct http_problem host = { 400, "BAD_REQUEST",
                                                  "exactly one valid Host header is required" };
        static const struct http_problem expect = {
                417, "EXPECTATION_FAILED", "the only supported expectation is 100-continue"
        };
        const struct http_req *req = c->req;
        size_t hosts = http_headers_count(&req->headers, STR("Host"));
        struct str value;

        if (c->message.llhttp.http_major != 1 || req->minor > 1)
                return &bad_version;
        if (req->minor == 0 && http_headers_get(&req->headers, STR("Transfer-Encoding")).p)
                return &te;
        value = http_headers_get(&req->headers, STR("Transfer-Encoding"));
        if (value.p && !str_caseeq(value, STR("chunked")))
                return &coding;
        if (hosts > 1 || (hosts == 0 && req->minor > 0))
                return &host;
        value = http_headers_get(&req->headers, STR("Host"));
        if (value.n > 0 && !http_host_is_valid(value))
                return &host;
        value = http_headers_get(&req->headers, STR("Expect"));
        if (value.p && !str_caseeq(value, STR("100-continue")))
                return &expect;
        return NULL;
}

static struct str without_port(struct str host, struct str port)
{
        return str_ends_with(host, port) ? str_of(host.p, host.n - port.n) : host;
}

/* An authority in the target would win over Host (RFC 9112, 3.2.2). A proxy in front of us may have decided by the other
 * one, so they must agree; only the port of the scheme may be missing. */
static bool target_agrees_with_host(const struct http_req *req, const struct url_target *t)
{
        bool is_tls = req->target.n > 4 && (req->target.p[4] | 0x20) == 's';
        struct str port = is_tls ? STR(":443") : STR(":80");
        struct str host = http_headers_get(&req->headers, STR("Host"));

        return t->form != URL_ABSOLUTE
               || str_caseeq(without_port(t->authority, port), without_port(host, port));
}

void conn__head_complete(struct http_conn *c)
{
        static const struct http_problem bad_target = { 400, "BAD_REQUEST",
                                                        "the request target is malformed" };
        static const struct http_problem other_host = { 400, "BAD_REQUEST",
                                                        "the host of the request target differs "
                                                        "from the Host header" };
        const llhttp_t *parsed = &c->message.llhttp;
        bool chunked = parsed->flags & F_CHUNKED;
        struct http_req *req = c->req;
        const struct http_problem *p;
        struct url_target target;
        int r;

        req->method = method_from_llhttp(parsed->method);
        req->method_name = str_from(llhttp_method_name(parsed->method));
        req->minor = parsed->http_minor;
        req->upgrade = c->message.upgrade;
        req->headers = c->message.headers;
        req->target = c->message.target;
        req->peer = arena_dup_str(&req->arena, str_from(c->peer));
        req->peer_uid = c->peer_uid;
        req->has_body = chunked || parsed->content_length > 0;
        req->content_length = chunked ? HTTP_LENGTH_UNKNOWN : parsed->content_length;
        req->_head_only = req->method == METHOD_HEAD;
        http_req_identify(req);
        r = url_split(req->target, &target);
        req->path = r < 0 ? req->target : target.path;
        req->query = r < 0 ? STR_NULL : target.query;
        p = check_head(c);
        if (!p && r < 0)
                p = &bad_target;
        else if (!p && !target_agrees_with_host(req, &target))
                p = &other_host;
        if (p) {
                conn__refuse(c, p);
                return;
        }
        conn__set_state(c, CONN_BODY);
        c->keep_alive = c->message.keep_alive && !c->server->draining;
        c->continued = !req->has_body || req->minor == 0 || !http_req_header(req, STR("Expect")).p;
        c->server->stats.requests++;
        if (http_router_find(c->server->router, req))
                http_router_continue(req);
}
