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

/* What a record takes from a request unchanged. A struct of views, so that one table copies it; the tables of its members omit
 * the secrets. */
struct taken {
        struct str image, snapshot_id, node, tenant, driver;
        struct owner owner;
        struct platform *platform;
        struct json_strs entrypoint;
        struct network_policy *network_policy;
        struct json_list volumes;
        struct json_map metadata, extensions;
};

#define T struct taken

static const struct json_field taken_fields[] = {
        JSON_STR(T, image, "image", 0),
        JSON_STR(T, snapshot_id, "snapshotId", 0),
        JSON_STR(T, node, "node", 0),
        JSON_STR(T, tenant, "tenant", 0),
        JSON_STR(T, driver, "driver", 0),
        JSON_STR(T, owner.organization_id, "organizationId", 0),
        JSON_STR(T, owner.project_id, "projectId", 0),
        JSON_STR(T, owner.user_id, "userId", 0),
        JSON_OBJECT(T, owner.scope, struct scope, "scope", 0, scope_fields),
        JSON_OPT(T, platform, struct platform, "platform", 0, platform_fields),
        JSON_STRS(T, entrypoint, "entrypoint", 0),
        JSON_OPT(T, network_policy, struct network_policy, "networkPolicy", 0,
                 network_policy_fields),
        JSON_LIST(T, volumes, struct volume, "volumes", 0, volume_record_fields),
        JSON_MAP(T, metadata, "metadata", 0),
        JSON_MAP(T, extensions, "extensions", 0),
        JSON_END,
};

static int take(const struct create_request *c, const struct create_facts *f, struct sandbox *s)
{
        const struct taken from = {
                .image = c->image ? c->image->uri : STR_NULL,
                .snapshot_id = c->snapshot_id,
                .node = f->node,
                .tenant = f->tenant,
                .driver = f->driver,
                .owner = f->owner,
                .platform = c->platform,
                .entrypoint = c->entrypoint,
                .network_policy = c->network_policy,
                .volumes = c->volumes,
                .metadata = c->metadata,
                .extensions = c->extensions,
        };
        struct taken to = { 0 };

        if (json_copy_struct(taken_fields, &from, &s->arena, &to) < 0)
                return -ENOMEM;
        s->image = to.image;
        s->snapshot_id = to.snapshot_id;
        s->node = to.node;
        s->tenant = to.tenant;
        s->driver = to.driver;
        s->owner = to.owner;
        s->platform = to.platform;
        s->entrypoint = to.entrypoint;
        s->network_policy = to.network_policy;
        s->volumes = to.volumes;
        s->metadata = to.metadata;
        s->extensions = to.extensions;
        return 0;
}

static int take_env_names(const struct create_request *c, struct sandbox *s)
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

static int set_times(const struct create_request *c, const struct timestamp *now, struct sandbox *s,
                     struct err *e)
{
        struct expiry end = expiry_after(now, (usec_t) c->timeout * USEC_PER_SEC);

        s->created_ms = (int64_t) (now->wall / USEC_PER_MSEC);
        s->status = (struct status){ .state = STATE_PENDING, .changed_ms = s->created_ms };
        return c->has_timeout ? sandbox_set_expiry(s, &end, e) : 0;
}

int create_to_sandbox(const struct create_request *c, const struct create_facts *facts,
                      struct sandbox **ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *s = sandbox_new();
        int r;

        if (!sandbox_id_is_valid(facts->id))
                return err_set(e, ERR_INVALID, "not the id of a sandbox");
        if (take(c, facts, s) < 0 || take_env_names(c, s) < 0)
                return err_set(e, ERR_TOO_LARGE, "the sandbox does not fit into a record");
        s->owner_bound = facts->owner_bound;
        s->git_configured = facts->git_configured;
        s->secure_access = c->secure_access;
        r = sandbox_set_id(s, facts->id, e);
        if (r == 0)
                r = set_times(c, &facts->now, s, e);
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
