/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/ingress.h"
#include "api/access/host.h"
#include "api/access/token.h"
#include "api/opensandbox/ingress_proxy.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"
#include "http/url.h"

/*
 * Where a port of a sandbox can be reached. It is always our own proxy, so the answer needs nothing of
 * the sandbox and is there while it is being made. What official clients read is `endpoint`, which has
 * no scheme, and `headers`, which they send along; others take `url`, which says everything by itself.
 */

#define EXPIRES_MAX UINT64_C(253402300799) /* the end of the year 9999 */

struct endpoint {
        struct str endpoint;
        struct json_map headers;
        struct str url;
        struct str preview_url;
        struct str host;
        int64_t port;
};

static const struct json_field endpoint_fields[] = {
        JSON_STR(struct endpoint, endpoint, "endpoint", JSON_REQUIRED),
        JSON_MAP(struct endpoint, headers, "headers", 0),
        JSON_STR(struct endpoint, url, "url", 0),
        JSON_STR(struct endpoint, preview_url, "previewUrl", 0),
        JSON_STR(struct endpoint, host, "host", 0),
        JSON_I64(struct endpoint, port, "port", 0),
        JSON_END,
};

/* Everything the texts are made of. */
struct parts {
        struct http_req *req;
        const struct sandbox *record;
        uint16_t port;
        struct str authority; /* host[:port] that clients are told */
        struct host host;     /* the same */
        struct str token;     /* null view: this caller gets none */
};

/* --- what was asked --- */

/* Whatever was in Host is repeated in the answer, where clients build addresses of it. */
static int find_authority(struct http_req *req, struct parts *p)
{
        struct str configured = api_of(req)->public_address;

        p->authority = configured.p ? configured : http_req_header(req, STR("Host"));
        if (host_parse(p->authority, &p->host) == 0)
                return 0;
        http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                         "the Host header is not a name or address that can be passed on");
        return -EINVAL;
}

static int find_port(struct http_req *req, struct parts *p)
{
        struct str text = req->params[1];

        if (parse_port(text, &p->port) == 0 && (text.n == 1 || text.p[0] != '0'))
                return 0;
        http_reply_error(req, 400, CODE_INVALID_PORT, "a port is a number from 1 to 65535");
        return -EINVAL;
}

/* 0 if there is none. */
static int find_expires(struct http_req *req, uint64_t *ret)
{
        struct str text;
        int r = http_req_query(req, "expires", &text);

        *ret = 0;
        if (r == 0)
                return 0;
        if (r == 1 && parse_u64_max(text, EXPIRES_MAX, ret) == 0
            && *ret > clock_wall(api_of(req)->clock) / USEC_PER_SEC)
                return 0;
        http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                         "expires is a time in the future, in seconds since 1970");
        return -EINVAL;
}

/* Who may only look gets no token: it would let him in. */
static int make_token(struct parts *p, uint64_t expires)
{
        const struct token_target door = { p->record->id, p->record->created_ms, p->port };
        char text[TOKEN_TEXT_MAX + 1];
        size_t n;

        if (api_caller(p->req)->role == ROLE_READ)
                return 0;
        n = token_write(api_of(p->req)->secret, &door, expires, text);
        p->token = arena_dup_str(&p->req->arena, str_of(text, n));
        return p->token.p ? 0 : -ENOMEM;
}

/* --- what is answered --- */

static int write_urls(const struct parts *p, struct endpoint *e)
{
        struct http_req *req = p->req;
        struct str scheme = ingress_scheme(req), domain = api_of(req)->preview_domain;
        const char *tilde = p->token.p ? "~" : "";

        e->endpoint = str_from(arena_printf(&req->arena, "%.*s%s/sandboxes/%.*s/proxy/%u",
                                            STR_ARG(p->authority), req->api->prefix,
                                            STR_ARG(p->record->id), p->port));
        e->url = str_from(arena_printf(&req->arena, "%.*s://%.*s%s%.*s", STR_ARG(scheme),
                                       STR_ARG(e->endpoint), tilde, STR_ARG(p->token)));
        if (!e->endpoint.p || !e->url.p)
                return -ENOMEM;
        if (!domain.p)
                return 0;
        e->preview_url = str_from(
                arena_printf(&req->arena, "%.*s://%.*s-%u.%.*s%.*s/%s%.*s", STR_ARG(scheme),
                             STR_ARG(p->record->id), p->port, STR_ARG(domain),
                             STR_ARG(str_skip(p->authority, p->host.name.n + 2 * p->host.is_ipv6)),
                             p->token.p ? "?" TOKEN_NAME "=" : "", STR_ARG(p->token)));
        return e->preview_url.p ? 0 : -ENOMEM;
}

static int64_t port_of(const struct parts *p)
{
        if (p->host.port > 0)
                return p->host.port;
        return str_eq(ingress_scheme(p->req), STR("https")) ? 443 : 80;
}

static void answer(const struct parts *p)
{
        struct json_pair header = { ingress_token_header(p->port), p->token };
        struct endpoint e = { .headers = { &header, p->token.p ? 1 : 0 },
                              .host = p->host.name,
                              .port = port_of(p) };
        scoped(buf_done) struct buf b;
        struct str text = STR_NULL;

        buf_init(&b, BUF_MAX_JSON);
        if (write_urls(p, &e) == 0) {
                json_encode(&b, endpoint_fields, &e);
                text = buf_failed(&b) ? STR_NULL : arena_dup_str(&p->req->arena, buf_str(&b));
        }
        http_res_header_const(p->req, STR("Cache-Control"), STR("no-store"));
        if (text.p)
                http_reply(p->req, 200, STR("application/json"), text);
        else
                http_reply_error(p->req, 500, CODE_INTERNAL, "out of memory");
}

static void get_endpoint(struct http_req *req)
{
        struct parts p = { .req = req };
        uint64_t expires;

        if (find_port(req, &p) < 0 || find_expires(req, &expires) < 0
            || find_authority(req, &p) < 0)
                return;
        p.record = service_find(api_of(req)->service, api_caller(req), req->params[0]);
        if (!p.record || state_is_final(p.record->status.state)) {
                ingress_not_found(req);
                return;
        }
        if (make_token(&p, expires) < 0)
                http_reply_error(req, 500, CODE_INTERNAL, "out of memory");
        else
                answer(&p);
}

/* --- routes --- */

static const struct http_doc_param params[] = {
        { "use_server_proxy", HTTP_DOC_BOOLEAN,
          .text = "Accepted, and of no effect: endpoints always lead through the server." },
        { "expires", HTTP_DOC_INTEGER,
          .text = "Seconds since 1970: the token in the answer ends then." },
        { 0 },
};

static const uint16_t errors[] = { 400, 401, 403, 404, 500, 503, 0 };

static const struct http_doc doc = {
        "getSandboxEndpoint", "Where a port of a sandbox can be reached",
        "Sandboxes",          200,
        "Endpoint",           endpoint_fields,
        .params = params,     .errors = errors,
};

static const struct http_route routes[] = {
        { METHOD_GET, "/sandboxes/{sandboxId}/endpoints/{port}", API_READ, ROUTE_SANDBOX,
          .doc = &doc, .exec = get_endpoint },
};

OPENSANDBOX_API(opensandbox_endpoints, "endpoints", routes);
