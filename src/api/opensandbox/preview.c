/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/cookie.h"
#include "api/access/ingress.h"
#include "api/access/host.h"
#include "api/opensandbox/ingress_proxy.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"
#include "http/url.h"

/* {id}-{port}.{preview domain}: an app with an origin of its own. */

/* Everything below the domain, also names that are no sandbox: the API is not to be seen there. */
static bool claims(const struct http_req *req)
{
        struct str domain = api_of(req)->preview_domain;
        struct host h;

        return domain.p && host_parse(http_req_header(req, STR("Host")), &h) == 0
               && host_is_below(&h, domain);
}

/* --- the token in the query --- */

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

/* The address without the token, and the token as a cookie of this host. With the host in front: a path
 * that begins with two slashes would be read as a host of its own. */
static void redirect_with_cookie(struct http_req *req, struct str query)
{
        const struct door *door = ingress_target_of(req);
        struct str host = http_req_header(req, STR("Host"));
        bool secure = str_eq(ingress_scheme(req), STR("https"));
        char *location, *cookie;

        location = arena_printf(&req->arena, "//%.*s%.*s%s%.*s", STR_ARG(host), STR_ARG(req->path),
                                query.p ? "?" : "", STR_ARG(query));
        cookie = arena_printf(&req->arena, TOKEN_NAME "=%.*s; HttpOnly; SameSite=Lax; Path=/%s",
                              STR_ARG(door->by_token), secure ? "; Secure" : "");
        if (!location || !cookie) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
                return;
        }
        http_res_header_const(req, STR("Location"), str_from(location));
        http_res_header_const(req, STR("Set-Cookie"), str_from(cookie));
        http_res_header_const(req, STR("Cache-Control"), STR("no-store"));
        http_res_header_const(req, STR("Referrer-Policy"), STR("no-referrer"));
        http_reply_empty(req, 303);
}

/* --- passing on --- */

/* A cookie for the whole domain would be one for the other sandboxes, too. */
static int judge_answer(struct http_req *req, struct http_header *h)
{
        int r;

        if (!str_caseeq(h->name, STR("Set-Cookie")))
                return 1;
        r = cookie_host_only(h->value, &req->arena, &h->value);
        return r < 0 ? r : 1;
}

static bool is_key_of_ours(struct http_req *req, struct str value)
{
        struct str scheme;

        return str_split(&value, ' ', &scheme) && value.n > 0
               && keyring_find(api_of(req)->keyring, str_trim(value));
}

/* Authorization is the app's, except for a key of ours that somebody put there, in whichever line. */
static bool authorization_is_ours(struct http_req *req)
{
        const struct http_headers *h = &req->headers;

        for (size_t i = 0; i < h->n; i++)
                if (str_caseeq(h->v[i].name, STR("Authorization"))
                    && is_key_of_ours(req, h->v[i].value))
                        return true;
        return false;
}

static void pass(struct http_req *req)
{
        static const struct ingress_proxy_kind kind = {
                .answer = judge_answer,
        };
        struct ingress_proxy_extra extra = { 0 };

        if (authorization_is_ours(req))
                extra.strip = STR("Authorization");
        if (cookie_without(&req->headers, STR(TOKEN_NAME), &req->arena, &extra.cookie) < 0) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request head is too large");
                return;
        }
        ingress_proxy(req, &kind, &extra, req->params[0]);
}

static void any_preview(struct http_req *req)
{
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
        struct str query;

        if (query_without_token(req, &query) < 0) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request head is too large");
                return;
        }
        if (ingress_target_of(req)->by_query && reads && !req->upgrade) {
                redirect_with_cookie(req, query);
                return;
        }
        req->query = query;
        pass(req);
}

static const struct http_route routes[] = {
        { METHOD_ANY, "/{rest...}", API_INGRESS, .body = HTTP_BODY_STREAM, .lasting = true,
          .exec = any_preview },
};

const struct http_api opensandbox_preview = {
        .name = "preview",
        .prefix = "",
        .claims = claims,
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .authorize = access_authorize,
};
