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

static const struct api_bridge *by_key(const struct api *api, const struct api_key *key)
{
        for (size_t i = 0; key && i < api->n_bridges; i++)
                if (api->bridges[i].key.p && str_eq(api->bridges[i].key, key->name))
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

static int let_in(struct http_req *req, const struct api_bridge *bridge, const struct api_key *key)
{
        if (!access__set_bridge(req, bridge, key)) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
                return -EACCES;
        }
        return 0;
}

int access_bridge(struct http_req *req)
{
        const struct api *api = api_of(req);
        const struct api_bridge *bridge = by_user(req);
        struct str text = access__key_of(req);
        const struct api_key *key;

        if (bridge)
                return let_in(req, bridge, NULL);
        key = text.p ? keyring_find(api->keyring, text) : NULL;
        if (!key && !api_is_open(api)) {
                access__refuse(req, !text.p);
                return -EACCES;
        }
        bridge = by_key(api, key);
        return bridge ? let_in(req, bridge, key) : refuse(req);
}

static bool may(const struct api_bridge *b, struct str tenant)
{
        for (size_t i = 0; b && i < b->tenants.n; i++)
                if (str_eq(b->tenants.items[i], STR("*")) || str_eq(b->tenants.items[i], tenant))
                        return true;
        return false;
}

bool access_bridge_acts(struct http_req *req, struct str tenant, struct str principal)
{
        struct visitor *v = container_of(req->principal, struct visitor, caller);
        struct str names[] = { tenant, principal };

        if (!may(v->bridge, tenant))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                names[i] = arena_dup_str(&req->arena, names[i]);
        if (names[0].p && names[1].p) {
                v->caller.tenant = names[0];
                v->caller.principal = names[1];
        }
        return true;
}
