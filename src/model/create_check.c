/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of a decoded create request: two tables, one per kind of problem. */

#include "model/create.h"

#include <stdio.h>

#include "base/base.h"
#include "model/extensions.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/resources.h"
#include "model/text.h"
#include "model/volumes.h"

/* --- defaults --- */

static bool is_blank(struct str s)
{
        return str_trim(s).n == 0;
}

static void drop_nulls(struct json_map *m)
{
        size_t n = 0;

        for (size_t i = 0; i < m->n; i++)
                if (m->items[i].value.p)
                        m->items[n++] = m->items[i];
        m->n = n;
}

static void set_defaults(struct create_request *c)
{
        static struct str keep_running[] = { STR("tail"), STR("-f"), STR("/dev/null") };

        if (c->image && is_blank(c->image->uri))
                c->image = NULL;
        if (is_blank(c->snapshot_id))
                c->snapshot_id = STR_NULL;
        if (c->snapshot_id.p && c->entrypoint.n == 0)
                c->entrypoint = (struct json_strs){ keep_running, ARRAY_SIZE(keep_running) };
        drop_nulls(&c->secret_env);
        volumes_set_defaults(&c->volumes);
}

/* --- form --- */

static bool wants_pool(const struct create_request *c)
{
        return !is_blank(extensions_get(&c->extensions, EXTENSION_POOL_REF));
}

static bool no_source(const struct create_request *c)
{
        return !c->image && !c->snapshot_id.p && !wants_pool(c);
}

static bool two_sources(const struct create_request *c)
{
        return c->image && c->snapshot_id.p;
}

static bool pool_and_snapshot(const struct create_request *c)
{
        return c->snapshot_id.p && wants_pool(c);
}

static bool no_entrypoint(const struct create_request *c)
{
        return c->image && c->entrypoint.n == 0 && !wants_pool(c);
}

static bool no_limits(const struct create_request *c)
{
        return !c->resource_limits.items && !wants_pool(c);
}

static bool proxy_without_policy(const struct create_request *c)
{
        return c->credential_proxy && c->credential_proxy->enabled && !c->network_policy;
}

static const struct {
        bool (*is_broken)(const struct create_request *c);
        const char *type, *loc, *msg;
} forms[] = {
        { no_source, "value_error", "", "exactly one of image and snapshotId is required" },
        { two_sources, "value_error", "", "image and snapshotId exclude each other" },
        { pool_and_snapshot, "value_error", "",
          "snapshotId and extensions.poolRef exclude each other" },
        { no_entrypoint, "missing", "\"entrypoint\"", "is required with an image" },
        { no_limits, "missing", "\"resourceLimits\"", "is required" },
        { proxy_without_policy, "value_error", "\"credentialProxy\"",
          "needs a networkPolicy when it is enabled" },
};

/* --- rules --- */

struct checker {
        const struct create_request *c;
        const struct create_policy *policy;
        struct arena *arena;
        struct err err;
        const char *code; /* instead of the rule's; or NULL */
};

static int refuse(struct checker *k, const char *message)
{
        return err_set(&k->err, ERR_INVALID, "%s", message);
}

static int check_pool(struct checker *k)
{
        return wants_pool(k->c) ? refuse(k, "extensions.poolRef: this server has no pools") : 0;
}

static int check_image(struct checker *k)
{
        struct str uri = k->c->image ? k->c->image->uri : STR_NULL;

        if (!uri.p)
                return 0;
        if (!text_is_clean(uri, IMAGE_URI_MAX) || str_find(uri, ' ') >= 0 || uri.p[0] == '-')
                return refuse(k, "image.uri: is not the name of an image");
        return 0;
}

static int check_snapshot(struct checker *k)
{
        struct str id = k->c->snapshot_id;

        return !id.p || text_is_label(id, NAME_MAX_TEXT)
                       ? 0
                       : refuse(k, "snapshotId: is not the id of a snapshot");
}

static int check_platform(struct checker *k)
{
        const struct platform *p = k->c->platform;

        if (!p)
                return 0;
        if (!str_eq(p->os, STR("linux")) && !str_eq(p->os, STR("windows")))
                return refuse(k, "platform.os: must be linux or windows");
        if (!str_eq(p->arch, STR("amd64")) && !str_eq(p->arch, STR("arm64")))
                return refuse(k, "platform.arch: must be amd64 or arm64");
        return 0;
}

static int check_timeout(struct checker *k)
{
        int64_t max = k->policy->timeout_max_s;

        if (!k->c->has_timeout || max == 0 || k->c->timeout <= max)
                return 0;
        return err_set(&k->err, ERR_INVALID, "timeout: must be at most %lld seconds on this server",
                       (long long) max);
}

static int check_metadata(struct checker *k)
{
        return labels_check(&k->c->metadata, &k->err);
}

static int check_extensions(struct checker *k)
{
        return extensions_check(&k->c->extensions, &k->err);
}

static int check_entrypoint(struct checker *k)
{
        const struct json_strs *items = &k->c->entrypoint;

        if (items->n > 0 && items->items[0].n == 0)
                return refuse(k, "entrypoint[0]: must not be empty");
        for (size_t i = 0; i < items->n; i++)
                if (!text_is_argument(items->items[i], ARGUMENT_MAX))
                        return refuse(k, "entrypoint: an argument is too long");
        return 0;
}

static int check_resources(struct checker *k)
{
        struct resources r;

        return resources_parse(&k->c->resource_limits, k->arena, &r, &k->err);
}

static int check_network(struct checker *k)
{
        struct network_policy *p = k->c->network_policy;

        return p ? network_policy_normalise(p, k->arena, &k->err) : 0;
}

static int check_proxy(struct checker *k)
{
        const struct credential_proxy *p = k->c->credential_proxy;

        return p && p->enabled && !k->policy->has_credential_proxy
                       ? refuse(k, "credentialProxy: this server has none")
                       : 0;
}

static int check_volumes(struct checker *k)
{
        struct volume_problem p;

        if (volumes_check(&k->c->volumes, true, &p) == 0
            && volumes_check_allowed(&k->c->volumes, &k->policy->host_dirs, &p) == 0)
                return 0;
        k->code = volume_code_to_string((int) p.code);
        return refuse(k, p.message);
}

/* --- variables --- */

#define EGRESS_PREFIX "OPENSANDBOX_EGRESS_"

bool env_is_for_egress(struct str name)
{
        return str_starts_with(name, STR(EGRESS_PREFIX));
}

static bool is_known_to_egress(struct str name)
{
        static const struct str known[] = {
                STR("LOG_LEVEL"),
                STR("DNS_UPSTREAM_TIMEOUT"),
                STR("MITMPROXY_SSL_INSECURE"),
                STR("MITMPROXY_TRANSPARENT"),
                STR("MITMPROXY_EXTRA_PORTS"),
                STR("DENY_WEBHOOK"),
                STR("METRICS_EXTRA_ATTRS"),
                STR("CREDENTIAL_VAULT_REQUIRE_TLS"),
                STR("CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS"),
                STR("POLICY_FILE"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (str_eq(str_skip(name, strlen(EGRESS_PREFIX)), known[i]))
                        return true;
        return false;
}

static int check_variable(struct checker *k, const struct json_pair *p)
{
        bool proxy = k->c->credential_proxy && k->c->credential_proxy->enabled;

        /* The value is a secret: no message repeats it. */
        if (!text_is_clean(p->key, ENV_NAME_MAX) || str_find(p->key, '=') >= 0)
                return err_set(&k->err, ERR_INVALID, "env: %s is not the name of a variable",
                               QUOTED(p->key));
        if (!text_is_argument(p->value, ARGUMENT_MAX - p->key.n - 1))
                return err_set(&k->err, ERR_INVALID, "env: the value of %s is too long",
                               QUOTED(p->key));
        if (!env_is_for_egress(p->key))
                return 0;
        if (!is_known_to_egress(p->key))
                return err_set(&k->err, ERR_INVALID, "env: %s may not be set", QUOTED(p->key));
        if (proxy && str_eq(p->key, STR(EGRESS_PREFIX "MITMPROXY_SSL_INSECURE")))
                return err_set(&k->err, ERR_INVALID,
                               "env: %s may not be set together with credentialProxy",
                               QUOTED(p->key));
        return 0;
}

static int check_env(struct checker *k)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < k->c->secret_env.n; i++)
                r = check_variable(k, &k->c->secret_env.items[i]);
        return r;
}

/* The first broken rule is reported. */
static const struct {
        int (*check)(struct checker *k);
        const char *code;
} rules[] = {
        { check_metadata, CODE_INVALID_METADATA_LABEL },
        { check_pool, CODE_UNSUPPORTED_POOL_REF },
        { check_timeout, CODE_INVALID_PARAMETER },
        { check_extensions, CODE_INVALID_PARAMETER },
        { check_platform, CODE_INVALID_PARAMETER },
        { check_image, CODE_INVALID_PARAMETER },
        { check_snapshot, CODE_INVALID_PARAMETER },
        { check_entrypoint, CODE_INVALID_PARAMETER },
        { check_env, CODE_INVALID_PARAMETER },
        { check_resources, CODE_INVALID_PARAMETER },
        { check_network, CODE_INVALID_PARAMETER },
        { check_proxy, CODE_INVALID_PARAMETER },
        { check_volumes, NULL },
};

int create_check(struct create_request *c, const struct create_policy *policy, struct arena *a,
                 struct problems *reterr)
{
        struct checker k = { .c = c, .policy = policy, .arena = a };
        struct problems found = { 0 };

        set_defaults(c);
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
                if (forms[i].is_broken(c))
                        problems_add(&found, a, forms[i].type, forms[i].loc, forms[i].msg);
        for (size_t i = 0; found.detail.n == 0 && i < ARRAY_SIZE(rules); i++) {
                if (rules[i].check(&k) == 0)
                        continue;
                problems_add(&found, a, "value_error", "", k.err.message);
                found.code = k.code ? k.code : rules[i].code;
        }
        if (found.detail.n == 0)
                return 0;
        *reterr = found;
        return -EINVAL;
}
