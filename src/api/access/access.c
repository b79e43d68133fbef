/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"

#include <stdio.h>

#include "api/access/host.h"
#include "api/forward.h"
#include "api/response.h"
#include "base/base.h"

/*
 * The order of the checks of access_authorize:
 *
 *   1. A request that another node has forwarded carries a signed identity (api/forward.h). Only what the caller may do
 *      is decided again, by this node's own record.
 *   2. Ingress has rules of its own (ingress.c).
 *   3. Host, Origin and Sec-Fetch-Site: is this a web page of another origin? Checked before any credential.
 *   4. Authentication: a key, or the default caller. A bridge: a key or a uid.
 *   5. May the role do this?
 *   6. Does the tenant or the key have too many requests, streams or connections? Are there too many requests of all? Only
 *      identified callers get here, so strangers can't use up either limit.
 *   7. If the route names a sandbox of another node, the request is forwarded there.
 *
 * Every negative result has been replied to. -EINPROGRESS: the request is held, and forward.c continues it.
 */

/* --- where a request comes from --- */

bool access__check_host(struct http_req *req)
{
        const struct api *api = api_of(req);
        struct host h, public;

        if (!api_is_open(api) || api->insecure)
                return true;
        if (host_parse(http_req_header(req, STR("Host")), &h) == 0
            && (host_is_loopback(&h)
                || (api->public_address.p && host_parse(api->public_address, &public) == 0
                    && public.is_ipv6 == h.is_ipv6 && str_caseeq(public.name, h.name))))
                return true;
        http_reply_error(req, 403, "HOST_NOT_ALLOWED",
                         "without API keys, only this host's own names are served: localhost, "
                         "127.0.0.1, [::1], or the configured public address");
        return false;
}

bool access__origin_is_ours(struct http_req *req, struct str origin)
{
        const struct api *api = api_of(req);
        struct host h;

        if (host_parse(http_req_header(req, STR("Host")), &h) == 0 && origin_is_of(origin, &h))
                return true;
        return api->public_address.p && host_parse(api->public_address, &h) == 0
               && origin_is_of(origin, &h);
}

/* Checks every Origin. With keys, reading is harmless: a page without a key gets 401, and may not read the response. */
static bool check_origin(struct http_req *req)
{
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
        bool may_be_foreign = reads && !req->upgrade && !api_is_open(api_of(req));

        for (size_t i = 0; i < req->headers.n; i++) {
                const struct http_header *h = &req->headers.v[i];

                if (!str_caseeq(h->name, STR("Origin")))
                        continue;
                if (!str_caseeq(h->value, STR("null"))
                    && (access__origin_is_ours(req, h->value) || may_be_foreign))
                        continue;
                http_reply_error(req, 403, "ORIGIN_NOT_ALLOWED",
                                 "pages of other origins may not use this API");
                return false;
        }
        return true;
}

bool access__is_cross_site(const struct http_req *req)
{
        for (size_t i = 0; i < req->headers.n; i++) {
                const struct http_header *h = &req->headers.v[i];

                if (str_caseeq(h->name, STR("Sec-Fetch-Site"))
                    && !str_eq(h->value, STR("same-origin")) && !str_eq(h->value, STR("none")))
                        return true;
        }
        return false;
}

int access__refuse_cross_site(struct http_req *req)
{
        http_reply_error(req, 403, "CROSS_SITE_REQUEST",
                         "without API keys, pages of other sites may not send requests; open the "
                         "address itself, or create an API key");
        return -EACCES;
}

/* --- authentication --- */

struct caller access__caller_of(const struct api_key *key)
{
        if (!key)
                return (struct caller){ STR(DEFAULT_TENANT), STR(DEFAULT_PRINCIPAL), ROLE_ADMIN,
                                        .all_tenants = true };
        return (struct caller){ key->tenant, key->principal, key->role, key->role == ROLE_ADMIN,
                                .key = key->id };
}

int access__set_caller(struct http_req *req, struct caller from)
{
        struct auth_context *x = arena_new(&req->arena, struct auth_context);

        if (x) {
                x->caller = from;
                x->caller.tenant = arena_dup_str(&req->arena, from.tenant);
                x->caller.principal = arena_dup_str(&req->arena, from.principal);
                if (from.key.p)
                        x->caller.key = arena_dup_str(&req->arena, from.key);
        }
        if (!x || !x->caller.tenant.p || !x->caller.principal.p) {
                api_fail_head(req);
                return -EACCES;
        }
        req->principal = &x->caller;
        log_ctx_add_str(&req->log, "tenant", x->caller.tenant);
        return 0;
}

int access__unauthorized(struct http_req *req, bool missing)
{
        http_res_header_const(req, STR("WWW-Authenticate"), STR("Bearer"));
        if (missing)
                http_reply_error(req, 401, CODE_MISSING_KEY,
                                 "an API key is needed, in the header OPEN-SANDBOX-API-KEY");
        else
                http_reply_error(req, 401, CODE_INVALID_KEY, "the API key is not valid");
        return -EACCES;
}

/* The first that is not empty decides: a second one can't make up for a wrong one. Clients without a key send an empty
 * one. */
static struct str key_of(struct http_req *req)
{
        struct str bearer = http_req_header(req, STR("Authorization"));
        struct str given[] = {
                http_req_header(req, STR("OPEN-SANDBOX-API-KEY")),
                http_req_header(req, STR("X-API-Key")),
                STR_NULL,
        };

        if (bearer.n >= 7 && str_caseeq(str_of(bearer.p, 7), STR("Bearer ")))
                given[2] = str_trim(str_skip(bearer, 7));
        for (size_t i = 0; i < ARRAY_SIZE(given); i++)
                if (given[i].n > 0)
                        return given[i];
        return STR_NULL;
}

/* --- bridges --- */

/* Identified by the name of its key, or by its user if that is the null view. */
static const struct api_bridge *find_bridge(const struct http_req *req, struct str key)
{
        const struct api *api = api_of(req);

        for (size_t i = 0; i < api->n_bridges; i++) {
                const struct api_bridge *b = &api->bridges[i];

                if (key.p ? b->key.p && str_eq(b->key, key)
                          : !b->key.p && req->peer_uid >= 0 && b->uid == req->peer_uid)
                        return b;
        }
        return NULL;
}

/* A request with a key is judged by it alone: if the user made up for a wrong key, no one would notice that the key is
 * wrong before the bridge moves to another host. */
static int identify_bridge(struct http_req *req)
{
        struct caller c = { STR("bridge"), STR("bridge"), ROLE_USER, false };
        struct str text = key_of(req);
        const struct api_key *key = NULL;
        struct auth_context *x;

        if (text.p) {
                key = keyring_find(api_of(req)->keyring, text);
                if (!key)
                        return access__unauthorized(req, false);
                c = (struct caller){ key->tenant, key->name, ROLE_USER, false, .key = key->id };
        }
        if (!find_bridge(req, !key ? STR_NULL : key->name.p ? key->name : STR(""))) {
                if (!key && !api_is_open(api_of(req)))
                        return access__unauthorized(req, true);
                http_reply_error(req, 403, CODE_FORBIDDEN,
                                 "only bridges may act for others; list them in purista.bridges of "
                                 "hutchd.yaml");
                return -EACCES;
        }
        if (access__set_caller(req, c) < 0)
                return -EACCES;
        x = auth_context_of(req);
        x->is_bridge = true;
        if (key)
                x->bridge_key = x->caller.principal;
        return 0;
}

bool access_bridge_act_for(struct http_req *req, struct str tenant, struct str principal)
{
        struct auth_context *x = auth_context_of(req);
        struct str names[] = { tenant, principal };
        const struct api_bridge *b;
        bool may = false;

        if (x->acts_for) /* the first node has decided, and names the caller */
                return str_eq(x->caller.tenant, tenant) && str_eq(x->caller.principal, principal);
        b = x->is_bridge ? find_bridge(req, x->bridge_key) : NULL;
        for (size_t i = 0; b && i < b->tenants.n; i++)
                may |= str_eq(b->tenants.items[i], STR("*")) || str_eq(b->tenants.items[i], tenant);
        if (!may)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                names[i] = arena_dup_str(&req->arena, names[i]);
        if (names[0].p && names[1].p) {
                x->caller.tenant = names[0];
                x->caller.principal = names[1];
        }
        return true;
}

/* --- authorization --- */

int access__forbidden_role(struct http_req *req)
{
        http_reply_error(req, 403, CODE_FORBIDDEN, "the role of this API key does not allow it");
        return -EACCES;
}

/* An unknown bit of a scope is allowed to no role. */
static int check_role(struct http_req *req, uint32_t scope)
{
        static const struct {
                uint32_t scope;
                int least;
        } demands[] = {
                { API_READ, ROLE_READ },
                { API_WRITE, ROLE_USER },
                { API_ADMIN, ROLE_ADMIN },
        };
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
        int role = api_caller(req)->role;

        for (size_t i = 0; i < ARRAY_SIZE(demands); i++)
                if (scope & demands[i].scope && role >= demands[i].least)
                        scope &= ~demands[i].scope;
        return scope == 0 && (reads || role != ROLE_READ) ? 0 : access__forbidden_role(req);
}

/* --- shares --- */

bool access_charge(struct http_req *req, char ret_why[static ACCESS_WHY_MAX])
{
        static const char *const parties[] = { "this address", "this tenant", "this API key" };
        static const char *const uses[] = { "requests in flight", "open streams",
                                            "open connections" };
        const struct auth_context *x = auth_context_of(req);
        bool bridged = x->is_bridge || x->acts_for;
        const struct http_parties charged = {
                .tenant = x->caller.tenant,
                .key = bridged ? STR_NULL : x->caller.key,
                .keeps_connection = bridged,
        };
        struct http_cap cap;

        static_assert(ARRAY_SIZE(parties) == HTTP_PARTY_MAX_ && ARRAY_SIZE(uses) == HTTP_USE_MAX_,
                      "a party or use without a name");
        if (http_req_charge(req, &charged, &cap) == 0)
                return true;
        (void) snprintf(ret_why, ACCESS_WHY_MAX,
                        "%s has %u %s, as many as %s allows; wait until one has ended",
                        parties[cap.party], cap.max, uses[cap.use],
                        api_cap_settings[cap.party][cap.use]);
        return false;
}

int access__admit(struct http_req *req)
{
        const struct auth_context *x = auth_context_of(req);
        unsigned max = api_of(req)->requests_max;
        char why[ACCESS_WHY_MAX];

        if (!x->is_bridge && !x->acts_for && !access_charge(req, why)) {
                api_retry_after(req, USEC_PER_SEC);
                http_reply_error(req, 429, CODE_TOO_MANY, "%s", why);
                return -EACCES;
        }
        if (req->route->lasting)
                return 0;
        if (max > 0 && http_server_stats(req->server).in_flight >= max) {
                api_retry_after(req, USEC_PER_SEC);
                http_reply_error(req, 503, "SERVER_BUSY", "too many requests in flight");
                return -EACCES;
        }
        http_req_count(req);
        return 0;
}

/* --- the order --- */

int access_authorize(struct http_req *req, uint32_t scope)
{
        int forwarded = forward_receive(req);
        const struct auth_context *x = auth_context_of(req);
        const struct api_key *key = NULL;
        struct str text;

        if (forwarded < 0)
                return forwarded;
        if (scope == API_INGRESS)
                return access__authorize_ingress(req);
        if (forwarded > 0) {
                if (!x->is_identified || x->acts_for != (scope == API_BRIDGE)) {
                        http_reply_error(
                                req, 403, CODE_FORBIDDEN,
                                "the forwarded request does not name an authorized caller");
                        return -EACCES;
                }
                return scope != API_BRIDGE && check_role(req, scope) < 0 ? -EACCES
                                                                         : access__admit(req);
        }
        if (!access__check_host(req) || !check_origin(req))
                return -EACCES;
        if (api_is_open(api_of(req)) && access__is_cross_site(req))
                return access__refuse_cross_site(req);
        if (scope == API_BRIDGE)
                return identify_bridge(req) < 0 ? -EACCES : access__admit(req);
        if (!api_is_open(api_of(req))) {
                text = key_of(req);
                key = text.p ? keyring_find(api_of(req)->keyring, text) : NULL;
                if (!key)
                        return access__unauthorized(req, !text.p);
        }
        if (access__set_caller(req, access__caller_of(key)) < 0 || check_role(req, scope) < 0
            || access__admit(req) < 0)
                return -EACCES;
        if (!req->route->names || !sandbox_id_is_valid(req->params[0]))
                return 0;
        if (req->route->names == ROUTE_SANDBOX)
                log_ctx_add_str(&req->log, "sandbox", req->params[0]);
        return forward_if_remote(req, req->params[0], /* check= */ NULL) ? -EINPROGRESS : 0;
}
