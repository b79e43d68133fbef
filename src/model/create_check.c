/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of a decoded create request: first its form, of which all problems are reported, then the rules. */

#include "model/create.h"

#include <stdio.h>

#include "base/base.h"
#include "model/extensions.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/resources.h"
#include "model/text.h"
#include "model/volumes.h"

static bool is_blank(struct str s)
{
        return str_trim(s).n == 0;
}

static void set_defaults(struct create_request *c)
{
        static struct str keep_running[] = { STR("tail"), STR("-f"), STR("/dev/null") };
        struct json_map *env = &c->secret_env;
        size_t n = 0;

        if (c->image && is_blank(c->image->uri))
                c->image = NULL;
        if (is_blank(c->snapshot_id))
                c->snapshot_id = STR_NULL;
        if (c->snapshot_id.p && c->entrypoint.n == 0)
                c->entrypoint = (struct json_strs){ keep_running, ARRAY_SIZE(keep_running) };
        for (size_t i = 0; i < env->n; i++)
                if (env->items[i].value.p)
                        env->items[n++] = env->items[i];
        env->n = n;
        volumes_set_defaults(&c->volumes);
}

static void check_form(const struct create_request *c, struct arena *a, struct problems *found)
{
        bool pool = !is_blank(extensions_get(&c->extensions, EXTENSION_POOL_REF));

        if (!c->image && !c->snapshot_id.p && !pool)
                problems_add(found, a, "value_error", "",
                             "exactly one of image and snapshotId is required");
        if (c->image && c->snapshot_id.p)
                problems_add(found, a, "value_error", "",
                             "image and snapshotId exclude each other");
        if (c->snapshot_id.p && pool)
                problems_add(found, a, "value_error", "",
                             "snapshotId and extensions.poolRef exclude each other");
        if (c->image && c->entrypoint.n == 0 && !pool)
                problems_add(found, a, "missing", "\"entrypoint\"", "is required with an image");
        if (!c->resource_limits.items && !pool)
                problems_add(found, a, "missing", "\"resourceLimits\"", "is required");
        if (c->credential_proxy && c->credential_proxy->enabled && !c->network_policy)
                problems_add(found, a, "value_error", "\"credentialProxy\"",
                             "needs a networkPolicy when it is enabled");
}

/* --- rules --- */

static int check_source(const struct create_request *c, struct err *e)
{
        const struct platform *p = c->platform;
        struct str uri = c->image ? c->image->uri : STR_NULL;

        if (p && !str_eq(p->os, STR("linux")) && !str_eq(p->os, STR("windows")))
                return err_set(e, ERR_INVALID, "platform.os: must be linux or windows");
        if (p && !str_eq(p->arch, STR("amd64")) && !str_eq(p->arch, STR("arm64")))
                return err_set(e, ERR_INVALID, "platform.arch: must be amd64 or arm64");
        if (uri.p
            && (!text_is_clean(uri, IMAGE_URI_MAX) || str_find(uri, ' ') >= 0 || uri.p[0] == '-'))
                return err_set(e, ERR_INVALID, "image.uri: is not the name of an image");
        if (c->snapshot_id.p && !text_is_label(c->snapshot_id, NAME_MAX_TEXT))
                return err_set(e, ERR_INVALID, "snapshotId: is not the id of a snapshot");
        return 0;
}

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

static int check_process(const struct create_request *c, struct err *e)
{
        bool proxy = c->credential_proxy && c->credential_proxy->enabled;

        if (c->entrypoint.n > 0 && c->entrypoint.items[0].n == 0)
                return err_set(e, ERR_INVALID, "entrypoint[0]: must not be empty");
        for (size_t i = 0; i < c->entrypoint.n; i++)
                if (!text_is_argument(c->entrypoint.items[i], ARGUMENT_MAX))
                        return err_set(e, ERR_INVALID, "entrypoint: an argument is too long");
        for (size_t i = 0; i < c->secret_env.n; i++) {
                struct str name = c->secret_env.items[i].key, value = c->secret_env.items[i].value;

                /* The value is a secret: no message repeats it. */
                if (!text_is_clean(name, ENV_NAME_MAX) || str_find(name, '=') >= 0)
                        return err_set(e, ERR_INVALID, "env: %s is not the name of a variable",
                                       QUOTED(name));
                if (!text_is_argument(value, ARGUMENT_MAX - name.n - 1))
                        return err_set(e, ERR_INVALID, "env: the value of %s is too long",
                                       QUOTED(name));
                if (!env_is_for_egress(name))
                        continue;
                if (!is_known_to_egress(name))
                        return err_set(e, ERR_INVALID, "env: %s may not be set", QUOTED(name));
                if (proxy && str_eq(name, STR(EGRESS_PREFIX "MITMPROXY_SSL_INSECURE")))
                        return err_set(e, ERR_INVALID,
                                       "env: %s may not be set together with credentialProxy",
                                       QUOTED(name));
        }
        return 0;
}

/* The code of the first broken rule, with its message in *e; or NULL. */
static const char *check_rules(struct create_request *c, const struct create_policy *policy,
                               struct arena *a, struct err *e)
{
        int64_t timeout_max = policy->timeout_max_s;
        struct volume_problem volume;
        struct resources limits;
        const char *code;
        int r = 0;

        if (labels_check(&c->metadata, e) < 0)
                return CODE_INVALID_METADATA_LABEL;
        if (!is_blank(extensions_get(&c->extensions, EXTENSION_POOL_REF))) {
                (void) err_set(e, ERR_INVALID, "extensions.poolRef: this server has no pools");
                return CODE_UNSUPPORTED_POOL_REF;
        }
        if (c->has_timeout && timeout_max > 0 && c->timeout > timeout_max)
                r = err_set(e, ERR_INVALID, "timeout: must be at most %lld seconds on this server",
                            (long long) timeout_max);
        if (r == 0)
                r = extensions_check(&c->extensions, e);
        if (r == 0)
                r = check_source(c, e);
        if (r == 0)
                r = check_process(c, e);
        if (r == 0)
                r = resources_apply(&policy->resources, &c->resource_limits, a, e);
        if (r == 0)
                r = resources_parse(&c->resource_limits, a, &limits, e);
        if (r == 0 && c->network_policy)
                r = network_policy_normalise(c->network_policy, a, e);
        if (r == 0 && c->credential_proxy && c->credential_proxy->enabled
            && !policy->has_credential_proxy)
                r = err_set(e, ERR_INVALID, "credentialProxy: this server has none");
        if (r < 0)
                return CODE_INVALID_PARAMETER;
        if (volumes_check(&c->volumes, true, &volume) == 0
            && volumes_check_allowed(&c->volumes, &policy->host_dirs, &volume) == 0)
                return NULL;
        (void) err_set(e, ERR_INVALID, "%s", volume.message);
        code = volume_code_to_string((int) volume.code);
        ASSERT(code); /* NULL would accept the request */
        return code;
}

int create_check(struct create_request *c, const struct create_policy *policy, struct arena *a,
                 struct problems *reterr)
{
        struct problems found = { 0 };
        struct err e = { 0 };

        set_defaults(c);
        check_form(c, a, &found);
        if (found.detail.n == 0) {
                found.code = check_rules(c, policy, a, &e);
                if (!found.code)
                        return 0;
                problems_add(&found, a, "value_error", "", e.message);
        }
        *reterr = found;
        return -EINVAL;
}
