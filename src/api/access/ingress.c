/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/ingress.h"

#include "api/access/access_impl.h"
#include "api/access/cookie.h"
#include "api/access/host.h"
#include "api/access/token.h"
#include "api/forward.h"
#include "api/problem.h"
#include "base/base.h"
#include "http/url.h"

static const struct str token_headers[] = {
        STR(HEADER_EXECD),
        STR(HEADER_EGRESS),
        STR(HEADER_SECURE),
};

static const struct str key_headers[] = {
        STR("OPEN-SANDBOX-API-KEY"),
        STR("X-API-Key"),
        STR(HEADER_EXECD),
        STR(HEADER_EGRESS),
};

struct str ingress_token_header(uint16_t port)
{
        return port == PORT_AGENT    ? STR(HEADER_EXECD)
               : port == PORT_EGRESS ? STR(HEADER_EGRESS)
                                     : STR(HEADER_SECURE);
}

void ingress_not_found(struct http_req *req)
{
        http_reply_error(req, 404, CODE_NOT_FOUND, "there is no such sandbox");
}

/* --- which door --- */

static void find_door(struct http_req *req, struct door *ret)
{
        struct host h;

        *ret = (struct door){ .is_preview = req->api->claims != NULL };
        if (!ret->is_preview) {
                ret->id = req->params[0];
                (void) !token_split_segment(req->params[1], &ret->port, &ret->token);
        } else if (host_parse(http_req_header(req, STR("Host")), &h) == 0) {
                (void) !host_parse_preview(&h, api_of(req)->preview_domain, &ret->id, &ret->port);
        }
        if (!sandbox_id_is_valid(ret->id))
                ret->id = STR(""); /* the id of no sandbox */
}

/* --- what is shown --- */

/* What a request shows, and whether any of it is a token of the door. */
struct shown {
        struct http_req *req;
        struct door *door;
        const struct sandbox *record; /* whosesoever; NULL: there is none of that id */
        uint64_t now;
        bool anything;
        bool ambient; /* the token is one that browsers add by themselves */
};

/* As much work for an id that does not exist. */
static bool try_token(struct shown *s, struct str text)
{
        const struct token_target door = {
                .id = s->door->id,
                .made_ms = s->record ? s->record->created_ms : 0,
                .port = s->door->port,
        };

        if (text.n == 0)
                return false;
        s->anything = true;
        if (!token_is_valid(api_of(s->req)->secret, text, &door, s->now))
                return false;
        s->door->by_token = text;
        return true;
}

static bool try_headers(struct shown *s)
{
        for (size_t i = 0; i < ARRAY_SIZE(token_headers); i++)
                if (try_token(s, http_req_header(s->req, token_headers[i])))
                        return true;
        return false;
}

static bool try_query(struct shown *s)
{
        struct str text;

        if (http_req_query(s->req, TOKEN_NAME, &text) != 1 || !try_token(s, text))
                return false;
        s->door->by_query = true;
        return true;
}

/* Another sandbox below the same domain may have planted one of that name, so each is looked at. */
static bool try_cookies(struct shown *s)
{
        struct cookie_iter it = { .headers = &s->req->headers };
        struct cookie c;

        while (cookie_next(&it, &c))
                if (str_eq(c.name, STR(TOKEN_NAME)) && try_token(s, c.value)) {
                        s->ambient = true;
                        return true;
                }
        return false;
}

static bool has_token(struct shown *s)
{
        if (try_token(s, s->door->token) || try_headers(s))
                return true;
        return s->door->is_preview && (try_query(s) || try_cookies(s));
}

static const struct api_key *find_key(struct shown *s)
{
        const struct api_key *key = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(key_headers) && !key; i++) {
                struct str text = http_req_header(s->req, key_headers[i]);

                s->anything |= text.n > 0;
                if (text.n > 0)
                        key = keyring_find(api_of(s->req)->keyring, text);
        }
        return key;
}

/* --- origins --- */

/* The other ports of a sandbox are the same app, for all that its pages and servers share. */
static bool is_same_preview(const struct shown *s, struct str origin)
{
        struct host h;
        struct str id;
        uint16_t port;

        return s->door->is_preview && origin_parse(origin, &h) == 0
               && host_parse_preview(&h, api_of(s->req)->preview_domain, &id, &port) == 0
               && str_eq(id, s->door->id);
}

static bool check_origins(struct shown *s)
{
        const struct http_headers *h = &s->req->headers;

        for (size_t i = 0; i < h->n; i++)
                if (str_caseeq(h->v[i].name, STR("Origin"))
                    && !access__origin_is_ours(s->req, h->v[i].value)
                    && !is_same_preview(s, h->v[i].value)) {
                        http_reply_error(s->req, 403, "ORIGIN_NOT_ALLOWED",
                                         "pages of other origins may not come in without a token");
                        return false;
                }
        return true;
}

/* --- who comes in --- */

static int refuse(struct http_req *req, bool missing)
{
        access__unauthorized(req, missing);
        return -EACCES;
}

static int not_found(struct http_req *req)
{
        ingress_not_found(req);
        return -EACCES;
}

static int come_in(struct shown *s, bool has_caller)
{
        struct http_req *req = s->req;

        if (!has_caller) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
                return -EACCES;
        }
        container_of(req->principal, struct auth_context, caller)->door = *s->door;
        return 0;
}

static int enter_by_token(struct shown *s)
{
        return s->record ? come_in(s, access__set_token_caller(s->req, s->record->tenant))
                         : not_found(s->req);
}

static bool may_see(const struct shown *s)
{
        const struct caller *caller = api_caller(s->req);

        return s->record && (caller->all_tenants || str_eq(s->record->tenant, caller->tenant));
}

static int enter_as_caller(struct shown *s)
{
        if (api_caller(s->req)->role == ROLE_READ) {
                http_reply_error(s->req, 403, CODE_FORBIDDEN,
                                 "the role of this API key does not allow it");
                return -EACCES;
        }
        return may_see(s) ? come_in(s, true) : not_found(s->req);
}

static int enter_by_key(struct shown *s)
{
        struct http_req *req = s->req;
        const struct api_key *key = find_key(s);

        if (!key)
                return refuse(req, !s->anything);
        if (!access__set_caller(req, key))
                return come_in(s, false);
        return enter_as_caller(s);
}

/* He was known to another node, by a key; or he was not, and his token is none. */
static int enter_forwarded(struct shown *s)
{
        const struct auth_context *v = container_of(s->req->principal, struct auth_context, caller);

        return v->is_identified ? enter_as_caller(s) : refuse(s->req, false);
}

static int enter_freely(struct shown *s)
{
        struct http_req *req = s->req;

        if (!access__set_caller(req, NULL))
                return come_in(s, false);
        if (!s->record)
                return not_found(req);
        if (s->record->secure_access) {
                http_reply_error(req, 401, "MISSING_OR_INVALID_SECURE_ACCESS",
                                 "this sandbox takes requests with its token only");
                return -EACCES;
        }
        return come_in(s, true);
}

static int check_port(const struct shown *s)
{
        if (s->door->port > 0)
                return 0;
        if (s->door->is_preview)
                return not_found(s->req);
        http_reply_error(s->req, 400, CODE_INVALID_PORT, "a port is a number from 1 to 65535");
        return -EACCES;
}

/* Whoever is asked for by id: the record of the door, if there is one. */
static int enter_door_of(struct shown *s)
{
        struct http_req *req = s->req;
        const struct auth_context *v =
                req->principal ? container_of(req->principal, struct auth_context, caller) : NULL;
        bool forwarded = v && v->forwarded; /* then its origin was looked at there */
        bool by_token = s->door->port > 0 && has_token(s);
        int r;

        if (!forwarded && (!by_token || s->ambient) && !check_origins(s))
                return -EACCES;
        if (by_token)
                r = enter_by_token(s);
        else if (api_is_open(api_of(req)))
                r = enter_freely(s);
        else
                r = forwarded ? enter_forwarded(s) : enter_by_key(s);
        if (r == 0 && sandbox_id_is_valid(s->door->id))
                log_ctx_add_str(&req->log, "sandbox", s->door->id);
        return r == 0 ? check_port(s) : r;
}

static void show(struct http_req *req, struct door *door, struct shown *ret)
{
        *ret = (struct shown){ .req = req,
                               .door = door,
                               .now = clock_wall(api_of(req)->clock) / USEC_PER_SEC };
        find_door(req, door);
}

static int enter_elsewhere(struct http_req *req, const struct sandbox *record)
{
        struct door door;
        struct shown s;

        show(req, &door, &s);
        s.record = record;
        return enter_door_of(&s);
}

/* Who shows nothing is not looked up anywhere. */
static bool shows_anything(struct shown *s)
{
        return has_token(s) || find_key(s) || s->anything;
}

int access_authorize_ingress(struct http_req *req)
{
        static const struct caller anybody = { .role = ROLE_ADMIN, .all_tenants = true };
        struct api *api = api_of(req);
        struct door door;
        struct shown s;

        show(req, &door, &s);
        /* Below the preview domain the name is ours by configuration. */
        if (!door.is_preview && !req->principal && !access__check_host(req))
                return -EACCES;
        s.record = service_find(api->service, &anybody, door.id);
        if (!s.record && forward_is_allowed(req) && (api_is_open(api) || shows_anything(&s))
            && forward_if_remote(req, door.id, enter_elsewhere))
                return -EINPROGRESS;
        return enter_door_of(&s);
}
