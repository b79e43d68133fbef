/* SPDX-License-Identifier: Apache-2.0 */
#include "model/create.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/volumes.h"

static const struct json_field auth_fields[] = {
        JSON_STR(struct image_auth, username, "username", JSON_REQUIRED | JSON_NO_ENCODE),
        JSON_STR(struct image_auth, secret_password, "password", JSON_REQUIRED | JSON_NO_ENCODE),
        JSON_END,
};

static const struct json_field image_fields[] = {
        JSON_STR(struct create_image, uri, "uri", JSON_REQUIRED),
        JSON_OPT(struct create_image, auth, struct image_auth, "auth",
                 JSON_NULL_OK | JSON_NO_ENCODE, auth_fields),
        JSON_END,
};

static const struct json_field credential_proxy_fields[] = {
        JSON_BOOL(struct credential_proxy, enabled, "enabled", JSON_NULL_OK),
        JSON_END,
};

#define C struct create_request

const struct json_field create_fields[] = {
        JSON_OPT(C, image, struct create_image, "image", JSON_NULL_OK, image_fields),
        JSON_STR(C, snapshot_id, "snapshotId", JSON_NULL_OK, .alias = "snapshot_id"),
        JSON_OPT(C, platform, struct platform, "platform", JSON_NULL_OK, platform_fields),
        JSON_I64(C, timeout, "timeout", JSON_NULL_OK, JSON_HAS(C, has_timeout),
                 JSON_RANGE(TIMEOUT_MIN_S, TIMEOUT_MAX_S)),
        JSON_MAP(C, resource_limits, "resourceLimits", JSON_NULL_OK, .alias = "resource_limits",
                 .items_max = RESOURCES_MAX),
        JSON_MAP(C, resource_requests, "resourceRequests", JSON_NULL_OK,
                 .alias = "resource_requests", .items_max = RESOURCES_MAX),
        JSON_MAP(C, secret_env, "env", JSON_NULL_OK | JSON_MAP_NULLS | JSON_NO_ENCODE,
                 .items_max = ENV_ITEMS_MAX),
        JSON_MAP(C, metadata, "metadata", JSON_NULL_OK, .items_max = LABELS_MAX),
        JSON_STRS(C, entrypoint, "entrypoint", JSON_NULL_OK | JSON_NONEMPTY,
                  .items_max = ENTRYPOINT_ITEMS_MAX),
        JSON_OPT(C, network_policy, struct network_policy, "networkPolicy", JSON_NULL_OK,
                 network_policy_fields, .alias = "network_policy"),
        JSON_OPT(C, credential_proxy, struct credential_proxy, "credentialProxy", JSON_NULL_OK,
                 credential_proxy_fields, .alias = "credential_proxy"),
        JSON_BOOL(C, secure_access, "secureAccess", JSON_NULL_OK, .alias = "secure_access"),
        JSON_LIST(C, volumes, struct volume, "volumes", JSON_NULL_OK, volume_fields,
                  .items_max = VOLUMES_MAX),
        JSON_MAP(C, extensions, "extensions", JSON_NULL_OK, .items_max = EXTENSIONS_MAX),
        JSON_END,
};

/* --- to a record --- */

static int copy_env_names(const struct create_request *c, struct sandbox *s)
{
        struct str *names = arena_alloc_array(&s->arena, c->secret_env.n, sizeof(*names));

        if (!names)
                return -ENOMEM;
        s->env_names = (struct json_strs){ names, 0 };
        for (size_t i = 0; i < c->secret_env.n; i++) {
                struct str name = c->secret_env.items[i].key;

                if (!c->network_policy && env_is_for_egress(name))
                        continue;
                names[s->env_names.n] = arena_dup_str(&s->arena, name);
                if (!names[s->env_names.n++].p)
                        return -ENOMEM;
        }
        return 0;
}

int create_to_sandbox(const struct create_request *c, const struct create_facts *facts,
                      struct sandbox **ret, struct err *e)
{
        int64_t now_ms = (int64_t) (facts->now.wall / USEC_PER_MSEC);
        struct expiry end = expiry_after(&facts->now, (usec_t) c->timeout * USEC_PER_SEC);
        /* Views of the request. The copy leaves its secrets behind: the record's field tables do not have them. */
        const struct sandbox draft = {
                .node = facts->node,
                .tenant = facts->tenant,
                .owner = facts->owner,
                .owner_bound = facts->owner_bound,
                .driver = facts->driver,
                .image = c->image ? c->image->uri : STR_NULL,
                .snapshot_id = c->snapshot_id,
                .platform = c->platform,
                .entrypoint = c->entrypoint,
                .network_policy = c->network_policy,
                .volumes = c->volumes,
                .metadata = c->metadata,
                .extensions = c->extensions,
                .secure_access = c->secure_access,
                .git_configured = facts->git_configured,
                .schema = SANDBOX_SCHEMA,
                .created_ms = now_ms,
                .expiry = c->has_timeout ? &end : NULL,
                .status = { .state = STATE_PENDING, .changed_ms = now_ms },
                .version = 1,
        };
        scoped(sandbox_freep) struct sandbox *s = NULL;
        int r;

        if (!sandbox_id_is_valid(facts->id))
                return err_set(e, ERR_INVALID, "not the id of a sandbox");
        s = sandbox_copy(&draft);
        if (!s || copy_env_names(c, s) < 0)
                return err_set(e, ERR_TOO_LARGE, "the sandbox does not fit into a record");
        r = sandbox_set_id(s, facts->id, e);
        if (r == 0)
                r = resources_parse(&c->resource_limits, &s->arena, &s->limits, e);
        if (r == 0 && s->network_policy)
                r = network_policy_normalise(s->network_policy, &s->arena, e);
        if (r == 0)
                r = sandbox_check(s, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}
