/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"
#include "api/access/host.h"
#include "api/access/token.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"
#include "http/url.h"

/*
 * GET …/endpoints/{port}: the address of a port of a sandbox. It is always our own proxy, so the response needs nothing of
 * the sandbox and is available while it is being created. Official clients read `endpoint`, which has no scheme, and
 * `headers`, which they send along; others take `url`, which is complete.
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

struct endpoint_call {
        struct http_req *req;
        const struct sandbox *record;
        uint16_t port;
        uint64_t expires;     /* of the token; 0: never */
        struct str authority; /* host[:port] for clients */
        struct host host;     /* the same */
        struct str token;     /* null view: this caller gets none */
};

/* --- parameters --- */

static int parse_params(struct http_req *req, struct endpoint_call *c)
{
        struct str port = req->params[1], text;
        int r = http_req_query(req, "expires", &text);

        if (parse_port(port, &c->port) < 0 || (port.n > 1 && port.p[0] == '0')) {
                http_reply_error(req, 400, CODE_INVALID_PORT, "a port is a number from 1 to 65535");
                return -EINVAL;
        }
        if (r != 0
            && (r < 0 || parse_u64_max(text, EXPIRES_MAX, &c->expires) < 0
                || c->expires <= clock_wall(api_of(req)->clock) / USEC_PER_SEC)) {
                http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                                 "expires is a time in the future, in seconds since 1970");
                return -EINVAL;
        }
        /* The response repeats the Host, and clients build URLs from it. */
        c->authority = api_of(req)->public_address;
        if (!c->authority.p)
                c->authority = http_req_header(req, STR("Host"));
        if (host_parse(c->authority, &c->host) < 0) {
                http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                                 "the Host header is not a name or address that can be passed on");
                return -EINVAL;
        }
        return 0;
}

/* --- the response --- */

static int write_urls(const struct endpoint_call *c, struct endpoint *e)
{
        struct http_req *req = c->req;
        struct str scheme = client_scheme(req), domain = api_of(req)->preview_domain;
        const char *tilde = c->token.p ? "~" : "";

        e->endpoint = str_from(arena_printf(&req->arena, "%.*s%s/sandboxes/%.*s/proxy/%u",
                                            STR_ARG(c->authority), req->api->prefix,
                                            STR_ARG(c->record->id), c->port));
        e->url = str_from(arena_printf(&req->arena, "%.*s://%.*s%s%.*s", STR_ARG(scheme),
                                       STR_ARG(e->endpoint), tilde, STR_ARG(c->token)));
        if (!e->endpoint.p || !e->url.p)
                return -ENOMEM;
        if (!domain.p)
                return 0;
        e->preview_url = str_from(
                arena_printf(&req->arena, "%.*s://%.*s-%u.%.*s%.*s/%s%.*s", STR_ARG(scheme),
                             STR_ARG(c->record->id), c->port, STR_ARG(domain),
                             STR_ARG(str_skip(c->authority, c->host.name.n + 2 * c->host.is_ipv6)),
                             c->token.p ? "?" TOKEN_NAME "=" : "", STR_ARG(c->token)));
        return e->preview_url.p ? 0 : -ENOMEM;
}

static void get_endpoint(struct http_req *req)
{
        struct endpoint_call c = { .req = req };
        char token[TOKEN_TEXT_MAX + 1];
        struct json_pair header;
        struct endpoint e = { 0 };

        if (parse_params(req, &c) < 0)
                return;
        c.record = service_find(api_of(req)->service, api_caller(req), req->params[0]);
        if (!c.record || state_is_final(c.record->status.state)) {
                api_fail_not_found(req);
                return;
        }
        /* A reader gets no token: it would grant access. */
        if (api_caller(req)->role != ROLE_READ) {
                const struct token_target target = { c.record->id, c.record->created_ms, c.port };

                c.token =
                        str_of(token, token_write(api_of(req)->secret, &target, c.expires, token));
        }
        if (write_urls(&c, &e) < 0) {
                api_fail_too_large(req);
                return;
        }
        header = (struct json_pair){ c.port == PORT_AGENT    ? STR(HEADER_EXECD)
                                     : c.port == PORT_EGRESS ? STR(HEADER_EGRESS)
                                                             : STR(HEADER_SECURE),
                                     c.token };
        e.headers = (struct json_map){ &header, c.token.p ? 1 : 0 };
        e.host = c.host.name;
        e.port = c.host.port > 0                            ? c.host.port
                 : str_eq(client_scheme(req), STR("https")) ? 443
                                                            : 80;
        http_res_header_const(req, STR("Cache-Control"), STR("no-store"));
        response_json(req, 200, endpoint_fields, &e);
}

/* --- routes --- */

static const struct http_doc_param params[] = {
        { "use_server_proxy", HTTP_DOC_BOOLEAN,
          .text = "Accepted, without effect: endpoints always lead through the server." },
        { "expires", HTTP_DOC_INTEGER,
          .text = "When the token in the response expires, in seconds since 1970." },
        { 0 },
};

static const uint16_t errors[] = { 400, 401, 403, 404, 500, 503, 0 };

API_DOC(doc, "getSandboxEndpoint", "Get the address of a port of a sandbox", "Sandboxes", 200,
        "Endpoint", endpoint_fields, .params = params, .errors = errors);

static const struct http_route routes[] = {
        { METHOD_GET, "/sandboxes/{sandboxId}/endpoints/{port}", API_READ, .names = ROUTE_SANDBOX,
          .doc = &doc, .exec = get_endpoint },
};

OPENSANDBOX_API(opensandbox_endpoints, "endpoints", routes);
