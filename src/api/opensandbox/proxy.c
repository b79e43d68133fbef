/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"
#include "api/access/cookie.h"
#include "api/access/host.h"
#include "api/access/peer.h"
#include "api/call.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"
#include "http/proxy.h"
#include "http/url.h"

/*
 * The reverse proxy into sandboxes.
 *
 *         ANY /sandboxes/{id}/proxy/{port}/…          on our own origin
 *         ANY {id}-{port}.{preview domain}/…          on an origin of the app's own
 *
 * Problem. A client wants to reach a port inside a sandbox. The server behind that port is hostile: it may be anything that
 * the tenant, or code the tenant runs, has started. It must not learn credentials of the API, and its pages must not act
 * in the name of the API or of other sandboxes.
 *
 * Invariants.
 *   - access_authorize has decided before a handler here runs: the caller may use this port (api/access/access.h).
 *   - No API key and no token enters a sandbox: `never` is stripped from every request, on both origins.
 *   - On our own origin an app shares the origin with the API and all other sandboxes. Its pages get the opaque origin
 *     "null" (Content-Security-Policy: sandbox), which the API refuses; they get no cookies and set none; response headers
 *     that speak for the whole origin are dropped. A preview host is an origin of its own: there cookies and
 *     Authorization belong to the app, except for our own token and keys.
 *   - No response commands a proxy in front of us: headers such as X-Accel-Redirect would make it send a file of its own
 *     host. The agent is no exception: it runs inside the sandbox.
 *
 * Steps.
 *   1. any_proxy or any_preview prepares the headers that are specific to the origin.
 *   2. proxy_call_new refuses at once what would hang: a sandbox that is paused, or not up yet.
 *   3. service_connect opens one stream to the agent, which counts as an access for renewal. A client that leaves now
 *      cancels it.
 *   4. connect_done hands request and stream to http_proxy, which owns both from then on. The agent serves its own port at
 *      its root and every other port below /proxy/{port}/.
 *
 * Crashes. A sandbox that dies closes the agent's end of the stream: the response is broken off, or a WebSocket closed. If
 * hutchd dies, the kernel closes both ends. Nothing is stored.
 *
 * docs/internals/proxy.md has the tables of headers and failures.
 */

struct proxy_call {
        struct service_connect connect;
        struct str rest;   /* the path below the port's root */
        struct str cookie; /* that enters; null: none does */
        struct str strip;  /* one more request header that must not enter, or null */
        struct str prefix;
        struct http_header add[4]; /* to the request */
};

struct str client_scheme(struct http_req *req)
{
        struct str given = http_req_header(req, STR("X-Forwarded-Proto"));

        return str_caseeq(given, STR("https")) ? STR("https") : STR("http");
}

/* --- failures --- */

/* Official clients match this text when a sandbox can't be reached. */
static void reply_unreachable(struct http_req *req, int status, const char *why)
{
        http_reply_error(req, status, CODE_UNKNOWN, "Could not connect to the backend sandbox: %s",
                         why);
}

static void proxy_failed(struct http_req *req, const struct http_problem *p)
{
        if (p->status < 500)
                http_reply_error(req, p->status, p->code, "%s", p->message);
        else
                reply_unreachable(req, p->status, p->message);
}

static void fail_connect(struct http_req *req, const struct service_req *why)
{
        if (why->err.code == ERR_NOT_FOUND)
                api_fail_not_found(req);
        else
                api_fail_service(req, why, why->err.code == ERR_CONFLICT ? CODE_NOT_RUNNING : NULL);
}

/* A request into a sandbox that does not run would hang, so it is refused at once. */
static bool is_reachable(struct http_req *req)
{
        const struct sandbox *record =
                service_find(api_of(req)->service, api_caller(req), ingress_target_of(req)->id);
        struct service_req why = { 0 };

        if (!record)
                (void) err_set(&why.err, ERR_NOT_FOUND, "gone");
        else if (service_check_ingress(record, &why.retry_after, &why.err) == 0)
                return true;
        fail_connect(req, &why);
        return false;
}

/* --- headers --- */

#define STRIP_MAX 20

/* Credentials for this sandbox or the whole API, and what a client claims about where it comes from. */
static const struct str never[] = {
        STR("OPEN-SANDBOX-API-KEY"), STR("X-API-Key"),         STR(HEADER_EXECD),
        STR(HEADER_EGRESS),          STR(HEADER_SECURE),       STR("Cookie"),
        STR(HEADER_FORWARDED),       STR("Forwarded"),         STR("X-Forwarded-For"),
        STR("X-Forwarded-Host"),     STR("X-Forwarded-Proto"), STR("X-Real-IP"),
};

/* Besides, on our own origin. */
static const struct str not_for_apps[] = { STR("Authorization"), STR("Cookie2") };
static_assert(ARRAY_SIZE(never) + ARRAY_SIZE(not_for_apps) + 1 <= STRIP_MAX, "room for all");

/* Response headers that speak for the whole origin, that is for the API and the other sandboxes. */
static const struct str not_for_origin[] = {
        STR("Set-Cookie"),
        STR("Set-Cookie2"),
        STR("Service-Worker-Allowed"),
        STR("Clear-Site-Data"),
        STR("Strict-Transport-Security"),
        STR("Public-Key-Pins"),
        STR("Alt-Svc"),
        STR("NEL"),
        STR("Report-To"),
        STR("Reporting-Endpoints"),
};

/* Whether a reverse proxy or cache in front of us acts on this header and may not pass it on: nginx, Apache and Caddy,
 * lighttpd, Perlbal, Akamai, Varnish and Fastly. */
static bool is_for_front_proxy(struct str name)
{
        static const struct str prefixes[] = {
                STR("X-Accel-"),   STR("X-Sendfile"), STR("X-LIGHTTPD-"),
                STR("X-Reproxy-"), STR("Surrogate-"), STR("CDN-Cache-Control"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (name.n >= prefixes[i].n
                    && str_caseeq(str_of(name.p, prefixes[i].n), prefixes[i]))
                        return true;
        return false;
}

/* 0: drop the header. A sandbox can't tell nginx to buffer nothing, so we do, for event streams: else their events would
 * arrive when a buffer is full. */
static int filter_any_origin(struct http_req *req, const struct http_header *h)
{
        static const struct str event_stream = STR("text/event-stream");
        static const struct str buffering = STR("X-Accel-Buffering");

        if (is_for_front_proxy(h->name))
                return 0;
        if (str_caseeq(h->name, STR("Content-Type")) && h->value.n >= event_stream.n
            && str_caseeq(str_of(h->value.p, event_stream.n), event_stream)
            && !http_headers_get(&req->res.headers, buffering).p)
                http_res_header_const(req, buffering, STR("no"));
        return 1;
}

static int filter_shared_origin(struct http_req *req, struct http_header *h)
{
        struct str location = h->value;
        scoped(buf_done) struct buf b;

        buf_init(&b, HTTP_TARGET_MAX + HTTP_HEAD_MAX);
        if (filter_any_origin(req, h) == 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(not_for_origin); i++)
                if (str_caseeq(h->name, not_for_origin[i]))
                        return 0;
        if (str_caseeq(h->name, STR("Referrer-Policy")))
                return !ingress_target_of(req)->token.p;
        if (!str_caseeq(h->name, STR("Location")))
                return 1;
        /* "/login" means a path below the app's root. "//host/" is another host, and stays. */
        if (location.n == 0 || location.p[0] != '/'
            || (location.n > 1 && (location.p[1] == '/' || location.p[1] == '\\')))
                return 1;
        buf_addf(&b, "%s/sandboxes/%.*s/proxy/", req->api->prefix, STR_ARG(req->params[0]));
        url_encode(&b, req->params[1]); /* with its token, if it had one */
        buf_add_str(&b, location);
        h->value = buf_failed(&b) ? STR_NULL : arena_dup_str(&req->arena, buf_str(&b));
        return h->value.p ? 1 : -ENOMEM;
}

/* A cookie for the whole domain would reach the other sandboxes. */
static int filter_preview(struct http_req *req, struct http_header *h)
{
        int r = filter_any_origin(req, h);

        if (r == 0 || !str_caseeq(h->name, STR("Set-Cookie")))
                return r;
        r = cookie_host_only(h->value, &req->arena, &h->value);
        return r < 0 ? r : 1;
}

/* --- connecting --- */

static void connect_done(struct http_req *req, void *operation, int result)
{
        struct proxy_call *c = operation;
        const struct ingress_target *target = ingress_target_of(req);
        struct str strip[STRIP_MAX];
        struct http_proxy_target t = {
                .client = api_of(req)->sandbox_client,
                .fd = TAKE_FD(c->connect.stream.fd),
                .prefix = c->prefix,
                .path = c->rest,
                .flags = HTTP_PROXY_KEEP_HOST,
                .strip = strip,
                .add = c->add,
                .filter = target->is_preview ? filter_preview : filter_shared_origin,
                .failed = proxy_failed,
        };

        if (result < 0) {
                /* What has happened to the sandbox meanwhile says more than the error of its driver. */
                if (c->connect.req.err.code == ERR_CANCELED)
                        fail_connect(req, &c->connect.req);
                else if (!http_req_is_gone(req) && is_reachable(req))
                        reply_unreachable(req, 502, c->connect.req.err.message);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(never); i++)
                strip[t.n_strip++] = never[i];
        for (size_t i = 0; !target->is_preview && i < ARRAY_SIZE(not_for_apps); i++)
                strip[t.n_strip++] = not_for_apps[i];
        if (c->strip.p)
                strip[t.n_strip++] = c->strip;
        /* Of the client's own claims only the scheme is believed: a proxy in front of us knows better, and it grants
         * nothing. */
        if (!str_eq(req->peer, STR("unix")))
                c->add[t.n_add++] = (struct http_header){ STR("X-Forwarded-For"), req->peer };
        c->add[t.n_add++] = (struct http_header){ STR("X-Forwarded-Proto"), client_scheme(req) };
        c->add[t.n_add++] =
                (struct http_header){ STR("X-Forwarded-Host"), http_req_header(req, STR("Host")) };
        if (c->cookie.p)
                c->add[t.n_add++] = (struct http_header){ STR("Cookie"), c->cookie };
        /* An app may send a policy of its own: browsers then obey both. */
        if (!target->is_preview)
                http_res_header_const(req, STR("Content-Security-Policy"),
                                      STR("sandbox allow-scripts allow-forms"));
        /* A page whose URL holds a token must not pass its URL on. */
        if (target->token.p)
                http_res_header_const(req, STR("Referrer-Policy"), STR("no-referrer"));
        /* Closes the stream if the client is gone. */
        http_proxy(req, &t);
}

/* What connects the request to its target port. NULL: the response says why that can't be. */
static struct proxy_call *proxy_call_new(struct http_req *req, struct str rest)
{
        const struct ingress_target *target = ingress_target_of(req);
        struct str prefix = STR("/");
        struct proxy_call *c;

        if (target->port == PORT_EGRESS) {
                http_reply_error(req, 501, CODE_NOT_SUPPORTED,
                                 "there is no egress proxy: no driver of this server supports "
                                 "network policies");
                return NULL;
        }
        if (!is_reachable(req))
                return NULL;
        if (target->port != PORT_AGENT)
                prefix = str_from(arena_printf(&req->arena, "/proxy/%u/", target->port));
        if (!prefix.p) {
                api_fail_head(req);
                return NULL;
        }
        c = api_call_new(req, struct proxy_call, connect.req.op, connect_done, 0);
        if (!c)
                return NULL;
        c->rest = rest;
        c->prefix = prefix;
        c->connect.caller = api_caller(req);
        c->connect.id = target->id;
        return c;
}

/* --- /sandboxes/{id}/proxy/{port}: an app on our own origin --- */

static void any_proxy(struct http_req *req)
{
        struct proxy_call *c = proxy_call_new(req, req->params[2]);

        if (!c)
                return;
        if (ingress_target_of(req)->token.p) /* then it is in the URL of the page */
                c->strip = STR("Referer");
        service_connect(api_of(req)->service, &c->connect);
        http_req_abort_on_eof(req); /* may report at once that the client is gone */
}

#define PROXY "/sandboxes/{sandboxId}/proxy/{port}"

static const struct http_route proxy_routes[] = {
        { METHOD_ANY, PROXY, API_INGRESS, .names = ROUTE_SANDBOX, .body = HTTP_BODY_STREAM,
          .lasting = true, .exec = any_proxy },
        { METHOD_ANY, PROXY "/{rest...}", API_INGRESS, .names = ROUTE_SANDBOX,
          .body = HTTP_BODY_STREAM, .lasting = true, .exec = any_proxy },
};

OPENSANDBOX_API(opensandbox_proxy, "proxy", proxy_routes);

/* --- {id}-{port}.{preview domain}: an app on an origin of its own --- */

/* Every host below the domain, also those that name no sandbox: the API is not served there. */
static bool claims(const struct http_req *req)
{
        struct str domain = api_of(req)->preview_domain;
        struct host h;

        return domain.p && host_parse(http_req_header(req, STR("Host")), &h) == 0
               && host_is_below(&h, domain);
}

/* The query without our parameter; the null view if nothing is left. */
static int query_without_token(struct http_req *req, struct str *ret)
{
        struct str rest = req->query, pair, key, all = STR_NULL;

        while (str_split(&rest, '&', &pair)) {
                struct str name = pair;
                char *p = (char *) all.p;

                (void) str_split(&name, '=', &key);
                if (url_decode(&req->arena, key, URL_PLUS_IS_SPACE, &name) == 0
                    && str_eq(name, STR(TOKEN_NAME)))
                        continue;
                if (p)
                        p = arena_append(&req->arena, p, all.n, STR("&"));
                if (p || !all.p)
                        p = arena_append(&req->arena, p, all.p ? all.n + 1 : 0, pair);
                if (!p)
                        return -ENOMEM;
                all = str_of(p, (all.p ? all.n + 1 : 0) + pair.n);
        }
        *ret = all;
        return 0;
}

/* To the same URL without the token, and the token as a cookie of this host. The location has the host in front: a path
 * that begins with two slashes would be read as a host. */
static void redirect_with_cookie(struct http_req *req, struct str query)
{
        struct str host = http_req_header(req, STR("Host"));
        bool secure = str_eq(client_scheme(req), STR("https"));
        char *location, *cookie;

        location = arena_printf(&req->arena, "//%.*s%.*s%s%.*s", STR_ARG(host), STR_ARG(req->path),
                                query.p ? "?" : "", STR_ARG(query));
        cookie = arena_printf(&req->arena, TOKEN_NAME "=%.*s; HttpOnly; SameSite=Lax; Path=/%s",
                              STR_ARG(ingress_target_of(req)->by_token), secure ? "; Secure" : "");
        if (!location || !cookie) {
                api_fail_head(req);
                return;
        }
        http_res_header_const(req, STR("Location"), str_from(location));
        http_res_header_const(req, STR("Set-Cookie"), str_from(cookie));
        http_res_header_const(req, STR("Cache-Control"), STR("no-store"));
        http_res_header_const(req, STR("Referrer-Policy"), STR("no-referrer"));
        http_reply_empty(req, 303);
}

/* Authorization belongs to the app, unless a client put a key of ours there, in any of its lines. */
static bool authorization_is_ours(struct http_req *req)
{
        for (size_t i = 0; i < req->headers.n; i++) {
                struct str value = req->headers.v[i].value, scheme;

                if (str_caseeq(req->headers.v[i].name, STR("Authorization"))
                    && str_split(&value, ' ', &scheme) && value.n > 0
                    && keyring_find(api_of(req)->keyring, str_trim(value)))
                        return true;
        }
        return false;
}

static void any_preview(struct http_req *req)
{
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
        struct str query, cookie;
        struct proxy_call *c;

        if (query_without_token(req, &query) < 0
            || cookie_without(&req->headers, STR(TOKEN_NAME), &req->arena, &cookie) < 0) {
                api_fail_head(req);
                return;
        }
        if (ingress_target_of(req)->by_query && reads && !req->upgrade) {
                redirect_with_cookie(req, query);
                return;
        }
        req->query = query;
        c = proxy_call_new(req, req->params[0]);
        if (!c)
                return;
        c->cookie = cookie;
        if (authorization_is_ours(req))
                c->strip = STR("Authorization");
        service_connect(api_of(req)->service, &c->connect);
        http_req_abort_on_eof(req);
}

static const struct http_route preview_routes[] = {
        { METHOD_ANY, "/{rest...}", API_INGRESS, .body = HTTP_BODY_STREAM, .lasting = true,
          .exec = any_preview },
};

const struct http_api opensandbox_preview = {
        .name = "preview",
        .prefix = "",
        .claims = claims,
        .routes = preview_routes,
        .n_routes = ARRAY_SIZE(preview_routes),
        .authorize = access_authorize,
};
