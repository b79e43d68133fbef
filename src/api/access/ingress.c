/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"
#include "api/access/cookie.h"
#include "api/access/host.h"
#include "api/access/token.h"
#include "api/forward.h"
#include "api/response.h"
#include "base/base.h"

/*
 * Authorization of requests to a port of a sandbox.
 *
 * Problem. Such a request may come from an SDK with an API key, from a person with a link, from a page in a browser, or
 * from a page that a hostile sandbox serves. Official clients send several credentials at once, some of them stale. The
 * response must not reveal which sandboxes exist.
 *
 * Invariants.
 *   - A caller without a valid credential gets 401 for every id alike; a caller who may not see the sandbox gets 404, as if
 *     it did not exist. A token is checked with the same work for an unknown id, so timing reveals nothing either.
 *   - One valid credential suffices; wrong ones beside it do not matter.
 *   - A page of another origin gets in only by a token that no browser adds by itself: in the path, the query or a header,
 *     not in a cookie.
 *
 * Order of steps.
 *   1. parse_target: id and port, from path or Host. An invalid id becomes "", which no sandbox has.
 *   2. The Host check of an installation without keys; not below the preview domain, where the name is ours by
 *      configuration.
 *   3. The record, of whichever tenant. If this node has none and there are others, forward_if_remote reads the store,
 *      unless the request carries no credential at all: a stranger must not cause reads of the store. Then step 4 runs
 *      with the record that was found, and the request is forwarded.
 *   4. check_access: tokens, then origins, then the keys, or what another node says about the caller.
 *   5. The port, last: an invalid port is reported to authorized callers only.
 */

/* What a request carries, and what is known about its target. */
struct credentials {
        struct http_req *req;
        struct ingress_target target;
        const struct sandbox *record; /* of any tenant; NULL: there is none of that id */
        uint64_t now;                 /* seconds since 1970 */
        bool any;                     /* there is at least one, valid or not */
        bool by_cookie;               /* the valid token is one that browsers add by themselves */
};

static void parse_target(struct http_req *req, struct credentials *ret)
{
        struct ingress_target *t = &ret->target;
        struct host h;

        *ret = (struct credentials){ .req = req,
                                     .target = { .is_preview = req->api->claims != NULL },
                                     .now = clock_wall(api_of(req)->clock) / USEC_PER_SEC };
        if (!t->is_preview) {
                t->id = req->params[0];
                (void) !token_split_segment(req->params[1], &t->port, &t->token);
        } else if (host_parse(http_req_header(req, STR("Host")), &h) == 0) {
                (void) !host_parse_preview(&h, api_of(req)->preview_domain, &t->id, &t->port);
        }
        if (!sandbox_id_is_valid(t->id))
                t->id = STR("");
}

/* --- credentials --- */

static bool try_token(struct credentials *c, struct str text)
{
        const struct token_target target = {
                .id = c->target.id,
                .made_ms = c->record ? c->record->created_ms : 0,
                .port = c->target.port,
        };

        if (text.n == 0)
                return false;
        c->any = true;
        if (!token_is_valid(api_of(c->req)->secret, text, &target, c->now))
                return false;
        c->target.by_token = text;
        return true;
}

static bool has_token(struct credentials *c)
{
        static const struct str headers[] = { STR(HEADER_EXECD), STR(HEADER_EGRESS),
                                              STR(HEADER_SECURE) };
        struct cookie_iter it = { .headers = &c->req->headers };
        struct cookie cookie;
        struct str text;

        if (try_token(c, c->target.token))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
                if (try_token(c, http_req_header(c->req, headers[i])))
                        return true;
        if (!c->target.is_preview)
                return false;
        if (http_req_query(c->req, TOKEN_NAME, &text) == 1 && try_token(c, text)) {
                c->target.by_query = true;
                return true;
        }
        /* Another sandbox below the same domain may have planted a cookie of our name, so each is tried. */
        while (cookie_next(&it, &cookie))
                if (str_eq(cookie.name, STR(TOKEN_NAME)) && try_token(c, cookie.value)) {
                        c->by_cookie = true;
                        return true;
                }
        return false;
}

static const struct api_key *find_key(struct credentials *c)
{
        static const struct str headers[] = { STR("OPEN-SANDBOX-API-KEY"), STR("X-API-Key"),
                                              STR(HEADER_EXECD), STR(HEADER_EGRESS) };
        const struct api_key *key = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(headers) && !key; i++) {
                struct str text = http_req_header(c->req, headers[i]);

                c->any |= text.n > 0;
                if (text.n > 0)
                        key = keyring_find(api_of(c->req)->keyring, text);
        }
        return key;
}

/* --- origins --- */

static bool check_origins(struct credentials *c)
{
        const struct http_headers *h = &c->req->headers;
        struct host host;
        struct str id;
        uint16_t port;

        for (size_t i = 0; i < h->n; i++) {
                if (!str_caseeq(h->v[i].name, STR("Origin"))
                    || access__origin_is_ours(c->req, h->v[i].value))
                        continue;
                /* The other ports of a sandbox belong to the same app. */
                if (c->target.is_preview && origin_parse(h->v[i].value, &host) == 0
                    && host_parse_preview(&host, api_of(c->req)->preview_domain, &id, &port) == 0
                    && str_eq(id, c->target.id))
                        continue;
                http_reply_error(c->req, 403, "ORIGIN_NOT_ALLOWED",
                                 "pages of other origins need a token of the sandbox");
                return false;
        }
        return true;
}

/* Without keys. A link to an app may be anywhere: whoever follows it sees the app, and the page with the link does not.
 * Another port of the same app is another origin of the same site, which check_origins knows by its Origin. */
static bool check_site(const struct credentials *c)
{
        const struct http_req *req = c->req;
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;

        if (!api_is_open(api_of(req)) || !access__is_cross_site(req))
                return true;
        if (reads && !req->upgrade
            && str_eq(http_req_header(req, STR("Sec-Fetch-Dest")), STR("document")))
                return true;
        if (c->target.is_preview && http_req_header(req, STR("Origin")).p
            && str_eq(http_req_header(req, STR("Sec-Fetch-Site")), STR("same-site")))
                return true;
        return access__refuse_cross_site(c->req) == 0;
}

/* --- the decision --- */

static int not_found(struct http_req *req)
{
        api_fail_not_found(req);
        return -EACCES;
}

/* A caller whose key is known, here or to the node that forwarded the request. */
static int check_caller(struct credentials *c)
{
        const struct caller *caller = api_caller(c->req);

        if (caller->role == ROLE_READ)
                return access__forbidden_role(c->req);
        if (!c->record || (!caller->all_tenants && !str_eq(c->record->tenant, caller->tenant)))
                return not_found(c->req);
        return 0;
}

static int check_credentials(struct credentials *c, bool has_valid_token)
{
        const struct auth_context *x = auth_context_of(c->req);
        const struct api_key *key;

        if (has_valid_token && !c->record)
                return not_found(c->req);
        if (has_valid_token) /* bound to a tenant and nothing else */
                return access__set_caller(c->req, (struct caller){ c->record->tenant, STR("token"),
                                                                   ROLE_USER, false });
        if (api_is_open(api_of(c->req))) {
                if (access__set_caller(c->req, access__caller_of(NULL)) < 0)
                        return -EACCES;
                if (!c->record)
                        return not_found(c->req);
                if (!c->record->secure_access)
                        return 0;
                http_reply_error(c->req, 401, "MISSING_OR_INVALID_SECURE_ACCESS",
                                 "this sandbox accepts only requests with its token");
                return -EACCES;
        }
        if (x && x->forwarded) /* the caller had a key there, or else its token is invalid */
                return x->is_identified ? check_caller(c) : access__unauthorized(c->req, false);
        key = find_key(c);
        if (!key)
                return access__unauthorized(c->req, !c->any);
        return access__set_caller(c->req, access__caller_of(key)) < 0 ? -EACCES : check_caller(c);
}

static int check_access(struct credentials *c)
{
        const struct auth_context *x = auth_context_of(c->req);
        bool forwarded = x && x->forwarded; /* then the first node has checked the origin */
        bool has_valid_token = c->target.port > 0 && has_token(c);

        if (!forwarded && (!has_valid_token || c->by_cookie)
            && (!check_origins(c) || !check_site(c)))
                return -EACCES;
        if (check_credentials(c, has_valid_token) < 0)
                return -EACCES;
        auth_context_of(c->req)->target = c->target;
        if (sandbox_id_is_valid(c->target.id))
                log_ctx_add_str(&c->req->log, "sandbox", c->target.id);
        if (c->target.port > 0)
                return access__admit(c->req);
        if (c->target.is_preview)
                return not_found(c->req);
        http_reply_error(c->req, 400, CODE_INVALID_PORT, "a port is a number from 1 to 65535");
        return -EACCES;
}

/* forward_check_fn: the record is another node's. */
static int check_remote(struct http_req *req, const struct sandbox *record)
{
        struct credentials c;

        parse_target(req, &c);
        c.record = record;
        return check_access(&c);
}

int access__authorize_ingress(struct http_req *req)
{
        static const struct caller any_caller = { .role = ROLE_ADMIN, .all_tenants = true };
        struct api *api = api_of(req);
        struct credentials c;

        parse_target(req, &c);
        if (!c.target.is_preview && !req->principal && !access__check_host(req))
                return -EACCES;
        c.record = service_find(api->service, &any_caller, c.target.id);
        if (!c.record && forward_is_allowed(req)
            && (api_is_open(api) || has_token(&c) || find_key(&c) || c.any)
            && forward_if_remote(req, c.target.id, check_remote))
                return -EINPROGRESS;
        return check_access(&c);
}
