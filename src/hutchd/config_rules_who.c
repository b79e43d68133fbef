/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/config_rules.h"
#include "hutchd/config_rules_impl.h"
#include "model/limits.h"
#include "model/resources.h"
#include "model/text.h"

/* --- keys --- */

const char *config_key_set(struct api_key *k, struct str text, char *id)
{
        if (text.n < API_KEY_MIN || text.n > API_KEY_MAX)
                return "expected 16 to 512 characters; try: openssl rand -hex 32";
        for (size_t i = 0; i < text.n; i++)
                if (text.p[i] <= ' ' || text.p[i] > '~')
                        return "expected printable ASCII characters without spaces";
        sha256(text.p, text.n, k->digest);
        id[0] = 'k';
        id[1] = '-';
        hex_encode(id + 2, k->digest, (CONFIG_KEY_ID_LEN - 2) / 2);
        id[CONFIG_KEY_ID_LEN] = '\0';
        k->id = str_of(id, CONFIG_KEY_ID_LEN);
        return NULL;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -EINVAL;
}

static const char *set_digest(struct api_key *k, struct str text, char *id)
{
        for (size_t i = 0; i < SHA256_SIZE; i++) {
                int high = text.n == 2 * SHA256_SIZE ? hex_digit(text.p[2 * i]) : -EINVAL;
                int low = high < 0 ? high : hex_digit(text.p[2 * i + 1]);

                if (low < 0)
                        return "expected 64 hexadecimal digits in lower case, as sha256sum prints";
                k->digest[i] = (uint8_t) (high << 4 | low);
        }
        id[0] = 'k';
        id[1] = '-';
        memcpy(id + 2, text.p, CONFIG_KEY_ID_LEN - 2);
        id[CONFIG_KEY_ID_LEN] = '\0';
        k->id = str_of(id, CONFIG_KEY_ID_LEN);
        return NULL;
}

/* A name that people chose, or a default. */
static const char *set_name(struct config *c, const char *raw, const char *otherwise,
                            struct str *ret)
{
        if (raw && !text_is_clean(str_from(raw), NAME_MAX_TEXT))
                return "expected a name of 1 to 128 bytes without control characters";
        return rules__set_text(c, str_from(raw ? raw : otherwise), ret);
}

static int apply_key_names(const struct config_rules *r, uint64_t i, struct err *e)
{
        const struct raw_key *raw = &r->raw->keys[i];
        struct api_key *k = &r->to->keys[i];
        struct {
                const char *member, *raw, *otherwise;
                struct str *to;
        } names[] = {
                { "name", raw->name, "", &k->name },
                { "tenant", raw->tenant, "default", &k->tenant },
                { "principal", raw->principal, "default", &k->principal },
        };

        for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
                const char *expected =
                        set_name(r->to, names[n].raw, names[n].otherwise, names[n].to);

                if (expected)
                        return rules__wrong(r, RULES_ENTRY("keys", i, names[n].member),
                                            str_from(names[n].raw), expected, e);
        }
        k->role = raw->role ? role_from_string(str_from(raw->role)) : ROLE_USER;
        if (k->role < 0)
                return rules__wrong(r, RULES_ENTRY("keys", i, "role"), str_from(raw->role),
                                    "expected read, user or admin", e);
        return 0;
}

static int apply_key(const struct config_rules *r, uint64_t i, struct err *e)
{
        const struct raw_key *raw = &r->raw->keys[i];
        struct api_key *k = &r->to->keys[i];
        char *id = arena_alloc(&r->to->memory, CONFIG_KEY_ID_LEN + 1);
        const char *expected;

        k->configured = true;
        if (!raw->key == !raw->sha256)
                return rules__wrong(r, RULES_ENTRY("keys", i, NULL), STR_NULL,
                                    "expected either key or sha256", e);
        expected = !id        ? RULES_NO_ROOM
                   : raw->key ? config_key_set(k, str_from(raw->key), id)
                              : set_digest(k, str_from(raw->sha256), id);
        if (expected) /* the value is not shown, however wrong it is */
                return rules__wrong(r, RULES_ENTRY("keys", i, raw->key ? "key" : "sha256"),
                                    STR_NULL, expected, e);
        for (uint64_t j = 0; j < i; j++)
                if (memcmp(r->to->keys[j].digest, k->digest, sizeof(k->digest)) == 0)
                        return rules__wrong(r, RULES_ENTRY("keys", i, NULL), STR_NULL,
                                            "the same key is there twice", e);
        return apply_key_names(r, i, e);
}

int rules__apply_keys(const struct config_rules *r, struct err *e)
{
        uint64_t n = r->raw->n_keys;

        if (n == 0)
                return 0;
        r->to->keys = arena_zalloc(&r->to->memory, n * sizeof(*r->to->keys));
        if (!r->to->keys)
                return rules__wrong(r, "keys", STR_NULL, RULES_NO_ROOM, e);
        for (uint64_t i = 0; i < n; i++) {
                int ret = apply_key(r, i, e);

                if (ret < 0)
                        return ret;
        }
        r->to->n_keys = n;
        return 0;
}

/* --- quotas --- */

static const char *set_quantity(struct str value, int scale, int64_t max, uint64_t *ret)
{
        int64_t v;

        if (quantity_parse(value, scale, &v) < 0 || v > max || (scale == 0 && v < MEMORY_MIN))
                return scale < 0 ? "expected a number of processors, such as 4 or 500m"
                                 : "expected a size of at least 1Mi, such as 512Mi or 8Gi";
        *ret = (uint64_t) v;
        return NULL;
}

/* `where` is "quotas.default" or "quotas.tenants[3]". */
static int apply_quota(const struct config_rules *r, const char *where, const struct raw_quota *raw,
                       struct quota *to, struct err *e)
{
        const struct {
                const char *member, *raw, *expected;
        } parts[] = {
                { "sandboxes", raw->sandboxes,
                  raw->sandboxes
                          ? rules__set_number(str_from(raw->sandboxes), INT32_MAX, &to->sandboxes)
                          : NULL },
                { "cpu", raw->cpu,
                  raw->cpu ? set_quantity(str_from(raw->cpu), -3, CPU_MILLI_MAX * 1000,
                                          &to->cpu_milli)
                           : NULL },
                { "memory", raw->memory,
                  raw->memory
                          ? set_quantity(str_from(raw->memory), 0, MEMORY_MAX, &to->memory_bytes)
                          : NULL },
                { "snapshots", raw->snapshots,
                  raw->snapshots
                          ? rules__set_number(str_from(raw->snapshots), INT32_MAX, &to->snapshots)
                          : NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                char path[RULES_PATH_MAX];

                if (!parts[i].expected)
                        continue;
                (void) snprintf(path, sizeof(path), "%s.%s", where, parts[i].member);
                return rules__wrong(r, path, str_from(parts[i].raw), parts[i].expected, e);
        }
        return 0;
}

static int apply_tenant(const struct config_rules *r, struct tenant_quota *to, uint64_t i,
                        struct err *e)
{
        const struct raw_quota *raw = &r->raw->quotas.tenants[i];
        const char *expected = raw->tenant ? set_name(r->to, raw->tenant, "", &to[i].tenant)
                                           : "expected the name of a tenant";

        if (expected)
                return rules__wrong(r, RULES_ENTRY("quotas.tenants", i, "tenant"),
                                    str_from(raw->tenant), expected, e);
        for (uint64_t j = 0; j < i; j++)
                if (str_eq(to[j].tenant, to[i].tenant))
                        return rules__wrong(r, RULES_ENTRY("quotas.tenants", i, "tenant"),
                                            to[i].tenant, "is there twice", e);
        return apply_quota(r, RULES_ENTRY("quotas.tenants", i, NULL), raw, &to[i].quota, e);
}

int rules__apply_quotas(const struct config_rules *r, struct err *e)
{
        uint64_t n = r->raw->quotas.n_tenants;
        struct tenant_quota *tenants;
        int ret = apply_quota(r, "quotas.default", &r->raw->quotas.each, &r->to->quotas.each, e);

        if (ret < 0 || n == 0)
                return ret;
        tenants = arena_zalloc(&r->to->memory, n * sizeof(*tenants));
        if (!tenants)
                return rules__wrong(r, "quotas.tenants", STR_NULL, RULES_NO_ROOM, e);
        for (uint64_t i = 0; i < n && ret == 0; i++)
                ret = apply_tenant(r, tenants, i, e);
        r->to->quotas.tenants = tenants;
        r->to->quotas.n_tenants = n;
        return ret;
}
