/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy_headers.h"

#include "base/base.h"

/*
 * Names are filtered by first letter or length before they are compared: a request has about twenty
 * headers, and there are about twenty names to compare them with.
 */

/* Headers of one connection, not of the message (RFC 9110, 7.6.1), and framing, which is written anew. */
static bool is_hop_by_hop(struct str name)
{
        static const struct str names[] = {
                STR("Connection"), STR("Content-Length"),    STR("Keep-Alive"), STR("TE"),
                STR("Trailer"),    STR("Transfer-Encoding"), STR("Upgrade"),
        };
        int first = name.n > 0 ? name.p[0] | 0x20 : 0;

        if (!first || !strchr("ckptu", first))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (str_caseeq(name, names[i]))
                        return true;
        return name.n > 6 && str_caseeq(str_of(name.p, 6), STR("Proxy-"));
}

/* 1: Connection names further headers to remove. 0: its options are not header names, or are removed
 * anyway. */
static int connection_names_headers(const struct http_headers *h)
{
        unsigned options = 0;
        int named = 0;

        for (size_t i = 0; i < h->n; i++) {
                struct str list = h->v[i].value, option;

                if (!str_caseeq(h->v[i].name, STR("Connection")))
                        continue;
                while (str_split(&list, ',', &option)) {
                        if (++options > PROXY_CONNECTION_MAX)
                                return -EBADMSG;
                        option = str_trim(option);
                        if (option.n > 0 && !str_caseeq(option, STR("keep-alive"))
                            && !str_caseeq(option, STR("close"))
                            && !str_caseeq(option, STR("upgrade")))
                                named = 1;
                }
        }
        return named;
}

/* --- requests --- */

static bool is_stripped(struct str name, const struct http_proxy_target *t)
{
        for (size_t i = 0; i < t->n_strip; i++)
                if (str_caseeq(name, t->strip[i]))
                        return true;
        return false;
}

static bool is_added(struct str name, const struct http_proxy_target *t)
{
        for (size_t i = 0; i < t->n_add; i++)
                if (str_caseeq(name, t->add[i].name))
                        return true;
        return false;
}

/* Headers that are replaced by ours, or removed. */
static bool is_replaced(struct str name, const struct http_proxy_target *t)
{
        if (is_stripped(name, t) || is_added(name, t))
                return true;
        switch (name.n) {
        case 4:
                return str_caseeq(name, STR("Host"));
        case 6:
                return str_caseeq(name, STR("Expect"));
        case 12:
                return str_caseeq(name, STR("X-Request-ID"));
        case 15:
                return (t->flags & HTTP_PROXY_FORWARDED_FOR)
                       && str_caseeq(name, STR("X-Forwarded-For"));
        case 16:
                return (t->flags & HTTP_PROXY_FORWARDED_HOST)
                       && str_caseeq(name, STR("X-Forwarded-Host"));
        case 17:
                return (t->flags & HTTP_PROXY_FORWARDED_PROTO)
                       && str_caseeq(name, STR("X-Forwarded-Proto"));
        default:
                return false;
        }
}

/* Joins all lines of X-Forwarded-For and the peer. A peer on a unix socket has no address. */
static int forwarded_for(struct http_req *req, struct str *ret)
{
        struct arena *a = &req->arena;
        bool has_peer = !str_eq(req->peer, STR("unix"));
        char *p = NULL;
        size_t n = 0;

        for (size_t i = 0; i <= req->headers.n; i++) {
                bool last = i == req->headers.n;
                struct str value = last ? req->peer : req->headers.v[i].value;

                if (last ? !has_peer : !str_caseeq(req->headers.v[i].name, STR("X-Forwarded-For")))
                        continue;
                if (n > 0) {
                        p = arena_append(a, p, n, STR(", "));
                        n += 2;
                }
                if (n == 0 || p)
                        p = arena_append(a, p, n, value);
                if (!p)
                        return -ENOMEM;
                n += value.n;
        }
        *ret = str_of(p, n);
        return 0;
}

static int add(struct http_req *req, struct http_headers *h, struct str name, struct str value)
{
        return value.p ? http_headers_add(h, &req->arena, name, value) : 0;
}

/* A header of the proxy, unless the target sets it. */
static int add_default(struct http_req *req, const struct http_proxy_target *t,
                       struct http_headers *h, struct str name, struct str value)
{
        return is_added(name, t) ? 0 : add(req, h, name, value);
}

int proxy__request_headers(struct http_req *req, const struct http_proxy_target *t,
                           struct http_headers *ret)
{
        struct str given = http_req_header(req, STR("Host")), chain = STR_NULL;
        struct str host = t->flags & HTTP_PROXY_KEEP_HOST ? given : t->host;
        int named = connection_names_headers(&req->headers);
        struct http_headers list = { 0 };
        int r;

        if (named < 0)
                return named;
        r = add_default(req, t, &list, STR("Host"), host.p ? host : STR("localhost"));
        if (r == 0 && !is_stripped(STR("X-Request-ID"), t))
                r = add_default(req, t, &list, STR("X-Request-ID"), req->id);
        if (r == 0 && (t->flags & HTTP_PROXY_FORWARDED_FOR))
                r = forwarded_for(req, &chain);
        if (r == 0)
                r = add_default(req, t, &list, STR("X-Forwarded-For"), chain);
        if (r == 0 && (t->flags & HTTP_PROXY_FORWARDED_PROTO))
                r = add_default(req, t, &list, STR("X-Forwarded-Proto"), STR("http"));
        if (r == 0 && (t->flags & HTTP_PROXY_FORWARDED_HOST))
                r = add_default(req, t, &list, STR("X-Forwarded-Host"), given);
        for (size_t i = 0; i < t->n_add && r == 0; i++)
                r = add(req, &list, t->add[i].name, t->add[i].value);

        for (size_t i = 0; i < req->headers.n && r == 0; i++) {
                const struct http_header *h = &req->headers.v[i];

                if (!is_hop_by_hop(h->name) && !is_replaced(h->name, t)
                    && !(named
                         && http_headers_has_token(&req->headers, STR("Connection"), h->name)))
                        r = add(req, &list, h->name, h->value);
        }
        if (r == 0)
                *ret = list;
        return r;
}

/* --- responses --- */

int proxy__response_headers(struct http_req *req, const struct http_headers *response,
                            http_proxy_filter_fn *filter)
{
        int named = connection_names_headers(response);
        bool dated = false;
        int r = MIN_OF(named, 0);

        for (size_t i = 0; i < response->n && r == 0; i++) {
                struct http_header h = response->v[i];
                bool date = h.name.n == 4 && str_caseeq(h.name, STR("Date"));

                /* The server writes X-Request-ID itself, and Date and Server if they are missing. */
                if (is_hop_by_hop(h.name)
                    || (named && http_headers_has_token(response, STR("Connection"), h.name))
                    || (date && dated)
                    || (h.name.n == 12 && str_caseeq(h.name, STR("X-Request-ID"))))
                        continue;
                dated |= date;
                r = filter ? filter(req, &h) : 1;
                if (r > 0)
                        r = add(req, &req->res.headers, h.name, h.value);
        }
        return r;
}
