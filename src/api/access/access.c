/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"

#include "api/access/access_impl.h"
#include "api/access/bridge.h"
#include "api/access/host.h"
#include "api/forward.h"
#include "api/problem.h"
#include "base/base.h"

/* --- where a request comes from --- */

static bool host_of(struct http_req *req, struct host *ret)
{
        return host_parse(http_req_header(req, STR("Host")), ret) == 0;
}

static bool is_public_name(const struct api *api, const struct host *h)
{
        struct host p;

        return api->public_address.p && host_parse(api->public_address, &p) == 0
               && p.is_ipv6 == h->is_ipv6 && str_caseeq(p.name, h->name);
}

bool access__check_host(struct http_req *req)
{
        const struct api *api = api_of(req);
        struct host h;

        if (!api_is_open(api) || api->insecure)
                return true;
        if (host_of(req, &h) && (host_is_loopback(&h) || is_public_name(api, &h)))
                return true;
        http_reply_error(req, 403, "HOST_NOT_ALLOWED",
                         "without API keys, only this machine's own names are served: localhost, "
                         "127.0.0.1, [::1], or the configured public address");
        return false;
}

bool access__origin_is_ours(struct http_req *req, struct str origin)
{
        const struct api *api = api_of(req);
        struct host h;

        if (host_of(req, &h) && origin_is_of(origin, &h))
                return true;
        return api->public_address.p && host_parse(api->public_address, &h) == 0
               && origin_is_of(origin, &h);
}

/* With keys, reading is harmless: the page had to know a key, and gets no permission to see the answer
 * of a request that it made without one. */
static bool origin_is_allowed(struct http_req *req, struct str origin)
{
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;

        if (str_caseeq(origin, STR("null")))
                return false;
        return access__origin_is_ours(req, origin)
               || (reads && !req->upgrade && !api_is_open(api_of(req)));
}

bool access__check_origin(struct http_req *req)
{
        for (size_t i = 0; i < req->headers.n; i++) {
                const struct http_header *h = &req->headers.v[i];

                if (str_caseeq(h->name, STR("Origin")) && !origin_is_allowed(req, h->value)) {
                        http_reply_error(req, 403, "ORIGIN_NOT_ALLOWED",
                                         "pages of other origins may not use this API");
                        return false;
                }
        }
        return true;
}

/* --- who asks --- */

static bool set_caller(struct http_req *req, const struct caller *from)
{
        struct auth_context *v = arena_new(&req->arena, struct auth_context);

        if (!v)
                return false;
        v->caller = *from;
        v->caller.tenant = arena_dup_str(&req->arena, from->tenant);
        v->caller.principal = arena_dup_str(&req->arena, from->principal);
        if (from->key.p)
                v->caller.key = arena_dup_str(&req->arena, from->key);
        if (!v->caller.tenant.p || !v->caller.principal.p)
                return false;
        req->principal = &v->caller;
        log_ctx_add_str(&req->log, "tenant", v->caller.tenant);
        return true;
}

bool access__set_caller(struct http_req *req, const struct api_key *key)
{
        struct caller c = { STR(DEFAULT_TENANT), STR(DEFAULT_PRINCIPAL), ROLE_ADMIN, true };

        if (key)
                c = (struct caller){ key->tenant, key->principal, key->role,
                                     key->role == ROLE_ADMIN, .key = key->id };
        return set_caller(req, &c);
}

bool access__set_token_caller(struct http_req *req, struct str tenant)
{
        struct caller c = { tenant, STR("token"), ROLE_USER, false };

        return set_caller(req, &c);
}

bool access__set_bridge(struct http_req *req, const struct api_key *key)
{
        struct caller c = { STR("bridge"), STR("bridge"), ROLE_USER, false };
        struct auth_context *v;

        if (key)
                c = (struct caller){ key->tenant, key->name, ROLE_USER, false, .key = key->id };
        if (!set_caller(req, &c))
                return false;
        v = container_of(req->principal, struct auth_context, caller);
        v->is_bridge = true;
        if (key)
                v->bridge_key = v->caller.principal;
        return true;
}

void access__unauthorized(struct http_req *req, bool missing)
{
        http_res_header_const(req, STR("WWW-Authenticate"), STR("Bearer"));
        if (missing)
                http_reply_error(req, 401, CODE_MISSING_KEY,
                                 "an API key is needed, in the header OPEN-SANDBOX-API-KEY");
        else
                http_reply_error(req, 401, CODE_INVALID_KEY, "the API key is not valid");
}

static void out_of_memory(struct http_req *req)
{
        http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
}

static struct str bearer_of(struct http_req *req)
{
        struct str value = http_req_header(req, STR("Authorization"));

        if (value.n < 7 || !str_caseeq(str_of(value.p, 7), STR("Bearer ")))
                return STR_NULL;
        return str_trim(str_skip(value, 7));
}

/* The first that is given decides: a second one can't make up for a wrong one. An empty one is none,
 * which is what clients without a key send. */
struct str access__key_of(struct http_req *req)
{
        const struct str given[] = {
                http_req_header(req, STR("OPEN-SANDBOX-API-KEY")),
                http_req_header(req, STR("X-API-Key")),
                bearer_of(req),
        };

        for (size_t i = 0; i < ARRAY_SIZE(given); i++)
                if (given[i].n > 0)
                        return given[i];
        return STR_NULL;
}

static bool identify(struct http_req *req)
{
        const struct api *api = api_of(req);
        const struct api_key *key = NULL;
        struct str text;

        if (!api_is_open(api)) {
                text = access__key_of(req);
                key = text.p ? keyring_find(api->keyring, text) : NULL;
                if (!key) {
                        access__unauthorized(req, !text.p);
                        return false;
                }
        }
        if (access__set_caller(req, key))
                return true;
        out_of_memory(req);
        return false;
}

/* --- may he? --- */

/* Whether a role may what one bit of a scope demands. */
static bool role_may(int role, uint32_t scope)
{
        static const struct {
                uint32_t scope;
                int least;
        } demands[] = {
                { API_READ, ROLE_READ },
                { API_WRITE, ROLE_USER },
                { API_ADMIN, ROLE_ADMIN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(demands); i++)
                if (scope & demands[i].scope) {
                        if (role < demands[i].least)
                                return false;
                        scope &= ~demands[i].scope;
                }
        return scope == 0; /* what nobody knows is allowed to nobody */
}

bool access__check_role(struct http_req *req, uint32_t scope)
{
        const struct caller *caller = api_caller(req);
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;

        if (role_may(caller->role, scope) && (reads || caller->role != ROLE_READ))
                return true;
        http_reply_error(req, 403, CODE_FORBIDDEN, "the role of this API key does not allow it");
        return false;
}

static bool has_room(struct http_req *req)
{
        unsigned max = api_of(req)->requests_max;

        if (req->route->lasting)
                return true;
        if (max > 0 && http_server_stats(req->server).in_flight >= max) {
                api_retry_after(req, USEC_PER_SEC);
                http_reply_error(req, 503, "SERVER_BUSY", "too many requests are under way");
                return false;
        }
        http_req_count(req);
        return true;
}

/* The first node has let him in; what he may is looked at again. */
static int authorize_forwarded(struct http_req *req, uint32_t scope)
{
        const struct auth_context *v = container_of(req->principal, struct auth_context, caller);

        if (scope == API_INGRESS)
                return access_authorize_ingress(req);
        if (!v->is_identified || v->acts != (scope == API_BRIDGE)) {
                http_reply_error(req, 403, CODE_FORBIDDEN, "nobody is named who may do this");
                return -EACCES;
        }
        if ((scope != API_BRIDGE && !access__check_role(req, scope)) || !has_room(req))
                return -EACCES;
        return 0;
}

int access_authorize(struct http_req *req, uint32_t scope)
{
        int forwarded = forward_receive(req);

        if (forwarded < 0)
                return forwarded;
        if (forwarded > 0)
                return authorize_forwarded(req, scope);
        if (scope == API_INGRESS)
                return access_authorize_ingress(req);
        if (scope == API_BRIDGE) {
                if (!access__check_host(req) || !access__check_origin(req)
                    || access_authorize_bridge(req) < 0 || !has_room(req))
                        return -EACCES;
                return 0;
        }
        if (!access__check_host(req) || !access__check_origin(req) || !identify(req)
            || !access__check_role(req, scope) || !has_room(req))
                return -EACCES;
        if (!req->route->names || !sandbox_id_is_valid(req->params[0]))
                return 0;
        if (req->route->names == ROUTE_SANDBOX)
                log_ctx_add_str(&req->log, "sandbox", req->params[0]);
        return forward_if_remote(req, req->params[0], /* check= */ NULL) ? -EINPROGRESS : 0;
}
