/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/config_rules_impl.h"
#include "model/limits.h"
#include "model/resources.h"
#include "model/text.h"

/* --- what the sandboxes are --- */

static const char *set_image(struct config *c, struct str v)
{
        if (!text_is_clean(v, IMAGE_URI_MAX))
                return "expected the name of an image";
        return rules__set_text(c, v, &c->purista.image);
}

static const char *set_driver(struct config *c, struct str v)
{
        if (!text_is_dns_label(v))
                return "expected the name of a driver";
        return rules__set_text(c, v, &c->purista.driver);
}

static const char *set_network(struct config *c, struct str v)
{
        if (!text_is_dns_label(v))
                return "expected none or private";
        return rules__set_text(c, v, &c->purista.network);
}

static const char *set_size(struct str v, size_t *ret)
{
        int64_t n;

        if (quantity_parse(v, 0, &n) < 0 || n < (int64_t) KiB || n > (int64_t) PURISTA_LIMIT_MAX)
                return "expected a size from 1Ki to 64Mi";
        *ret = (size_t) n;
        return NULL;
}

static const char *set_output(struct config *c, struct str v)
{
        return set_size(v, &c->purista.output_max);
}

static const char *set_file(struct config *c, struct str v)
{
        return set_size(v, &c->purista.file_max);
}

static int apply_texts(const struct config_rules *r, struct err *e)
{
        const typeof(r->raw->purista) *raw = &r->raw->purista;
        const struct {
                const char *path, *value;
                const char *(*set)(struct config *c, struct str v);
        } texts[] = {
                { "purista.image", raw->image, set_image },
                { "purista.driver", raw->driver, set_driver },
                { "purista.network", raw->network, set_network },
                { "purista.output_limit", raw->output_limit, set_output },
                { "purista.file_limit", raw->file_limit, set_file },
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct str value = str_from(texts[i].value);
                const char *expected = value.p ? texts[i].set(r->to, value) : NULL;

                if (expected)
                        return rules__wrong(r, texts[i].path, value, expected, e);
        }
        return 0;
}

static int apply_limits(const struct config_rules *r, struct err *e)
{
        const struct {
                const char *name, *value, *path;
        } limits[] = {
                { "cpu", r->raw->purista.resource_limits.cpu, "purista.resource_limits.cpu" },
                { "memory", r->raw->purista.resource_limits.memory,
                  "purista.resource_limits.memory" },
        };
        struct json_map *to = &r->to->purista.limits;
        struct resources parsed;

        to->items = arena_alloc_array(&r->to->memory, ARRAY_SIZE(limits), sizeof(*to->items));
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                struct json_pair one = { str_from(limits[i].name), STR_NULL };
                struct json_map map = { &one, 1 };
                struct err why;

                if (!limits[i].value)
                        continue;
                if (!to->items || rules__set_text(r->to, str_from(limits[i].value), &one.value))
                        return rules__wrong(r, limits[i].path, STR_NULL, RULES_NO_ROOM, e);
                if (resources_parse(&map, &r->to->memory, &parsed, &why) < 0)
                        return rules__wrong(r, limits[i].path, one.value,
                                            "expected an amount, such as 500m, 4, 512Mi or 8Gi", e);
                to->items[to->n++] = one;
        }
        return 0;
}

/* --- bridges --- */

/* The kernel gives the overflow number to every user that has none here, so it names nobody. */
static const char *set_uid(struct str v, int64_t *ret)
{
        uint64_t uid;

        if (parse_u64_max(v, UINT32_MAX - 1, &uid) < 0 || uid == SOCK_OVERFLOW_UID)
                return "expected the number of a user, and not 65534, which stands for any that is "
                       "unknown";
        *ret = (int64_t) uid;
        return NULL;
}

static int apply_tenants(const struct config_rules *r, uint64_t i, struct api_bridge *to,
                         struct err *e)
{
        const struct raw_list *list = &r->raw->purista.bridges[i].tenants;

        if (list->n == 0)
                return rules__wrong(r, RULES_ENTRY("purista.bridges", i, NULL), STR_NULL,
                                    "expected tenants: a list of names, or [\"*\"] for all", e);
        to->tenants.items = arena_alloc_array(&r->to->memory, list->n, sizeof(struct str));
        if (!to->tenants.items)
                return rules__wrong(r, RULES_ENTRY("purista.bridges", i, NULL), STR_NULL,
                                    RULES_NO_ROOM, e);
        for (uint64_t n = 0; n < list->n; n++) {
                struct str name = str_from(list->items[n]);

                if (!text_is_clean(name, NAME_MAX_TEXT)
                    || rules__set_text(r->to, name, &to->tenants.items[to->tenants.n++]))
                        return rules__wrong(r, RULES_ENTRY("purista.bridges", i, "tenants"), name,
                                            "expected the name of a tenant, or \"*\"", e);
        }
        return 0;
}

static int apply_bridge(const struct config_rules *r, uint64_t i, struct err *e)
{
        const struct raw_bridge *raw = &r->raw->purista.bridges[i];
        struct api_bridge *to = &r->to->bridges[i];
        struct str uid = str_from(raw->uid), key = str_from(raw->key);
        const char *expected;

        to->uid = -1;
        if (!uid.p == !key.p)
                return rules__wrong(r, RULES_ENTRY("purista.bridges", i, NULL), STR_NULL,
                                    "expected either uid or key", e);
        if (uid.p)
                expected = set_uid(uid, &to->uid);
        else
                expected = text_is_clean(key, NAME_MAX_TEXT) ? rules__set_text(r->to, key, &to->key)
                                                             : "expected the name of a key";
        if (expected)
                return rules__wrong(r, RULES_ENTRY("purista.bridges", i, uid.p ? "uid" : "key"),
                                    uid.p ? uid : key, expected, e);
        return apply_tenants(r, i, to, e);
}

int rules__apply_purista(const struct config_rules *r, struct err *e)
{
        uint64_t n = r->raw->purista.n_bridges;
        int ret = apply_texts(r, e);

        if (ret == 0)
                ret = apply_limits(r, e);
        if (ret < 0 || n == 0)
                return ret;
        r->to->bridges = arena_zalloc(&r->to->memory, n * sizeof(*r->to->bridges));
        if (!r->to->bridges)
                return rules__wrong(r, "purista.bridges", STR_NULL, RULES_NO_ROOM, e);
        for (uint64_t i = 0; i < n && ret == 0; i++)
                ret = apply_bridge(r, i, e);
        r->to->n_bridges = n;
        return ret;
}
