/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/bridge.h"

#include "api/access/access_impl.h"
#include "api/problem.h"
#include "base/base.h"

static const struct api_bridge *by_user(const struct http_req *req)
{
        const struct api *api = api_of(req);

        for (size_t i = 0; req->peer_uid >= 0 && i < api->n_bridges; i++)
                if (!api->bridges[i].key.p && api->bridges[i].uid == req->peer_uid)
                        return &api->bridges[i];
        return NULL;
}

static const struct api_bridge *by_key(const struct http_req *req, struct str name)
{
        const struct api *api = api_of(req);

        for (size_t i = 0; i < api->n_bridges; i++)
                if (api->bridges[i].key.p && str_eq(api->bridges[i].key, name))
                        return &api->bridges[i];
        return NULL;
}

static int refuse(struct http_req *req)
{
        http_reply_error(req, 403, CODE_FORBIDDEN,
                         "only bridges may act for others; purista.bridges of hutchd.yaml names "
                         "them");
        return -EACCES;
}

static int let_in(struct http_req *req, const struct api_key *key)
{
        if (!access__set_bridge(req, key)) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
                return -EACCES;
        }
        return 0;
}

static int bridge_without_key(struct http_req *req)
{
        if (by_user(req))
                return let_in(req, NULL);
        if (api_is_open(api_of(req)))
                return refuse(req);
        access__unauthorized(req, true);
        return -EACCES;
}

/* Who shows a key is whose key it is: its user must not make up for a wrong one, or nobody would notice
 * that it is wrong before the day on which the bridge moves to another host. */
int access_authorize_bridge(struct http_req *req)
{
        struct str text = access__key_of(req);
        const struct api_key *key;

        if (!text.p)
                return bridge_without_key(req);
        key = keyring_find(api_of(req)->keyring, text);
        if (!key) {
                access__unauthorized(req, false);
                return -EACCES;
        }
        return by_key(req, key->name) ? let_in(req, key) : refuse(req);
}

static bool may(const struct api_bridge *b, struct str tenant)
{
        for (size_t i = 0; b && i < b->tenants.n; i++)
                if (str_eq(b->tenants.items[i], STR("*")) || str_eq(b->tenants.items[i], tenant))
                        return true;
        return false;
}

bool access_bridge_act_for(struct http_req *req, struct str tenant, struct str principal)
{
        struct auth_context *v = container_of(req->principal, struct auth_context, caller);
        struct str names[] = { tenant, principal };

        if (v->acts) /* the first node has judged, and said for whom */
                return str_eq(v->caller.tenant, tenant) && str_eq(v->caller.principal, principal);
        if (!v->is_bridge
            || !may(v->bridge_key.p ? by_key(req, v->bridge_key) : by_user(req), tenant))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                names[i] = arena_dup_str(&req->arena, names[i]);
        if (names[0].p && names[1].p) {
                v->caller.tenant = names[0];
                v->caller.principal = names[1];
        }
        return true;
}
