/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/config_rules_impl.h"
#include "model/limits.h"
#include "model/text.h"
#include "store/store_redis.h"

/* --- single values --- */

typedef const char *store_set_fn(struct config *c, struct str v);

static const char *set_kind(struct config *c, struct str v)
{
        c->store.redis = str_eq(v, STR("redis"));
        return c->store.redis || str_eq(v, STR("sqlite")) ? NULL : "expected sqlite or redis";
}

static const char *set_address(struct config *c, struct str v)
{
        if (str_starts_with(v, STR("rediss:")))
                return "TLS to Redis is not supported; use a unix socket or a tunnel such as "
                       "stunnel(8)";
        if (sock_addr_from_string(v, &c->store.address) < 0)
                return "expected an address such as 127.0.0.1:6379 or unix:/run/redis/redis.sock; "
                       "names are not looked up";
        return NULL;
}

static const char *set_user(struct config *c, struct str v)
{
        if (!text_is_clean(v, NAME_MAX_TEXT))
                return "expected the name of a user of Redis";
        return rules__set_text(c, v, &c->store.user);
}

static const char *set_password_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.password_file);
}

static const char *set_database(struct config *c, struct str v)
{
        uint64_t n;

        if (parse_u64_max(v, STORE_REDIS_DATABASE_MAX, &n) < 0)
                return "expected the number of a database, 0 to 1023";
        c->store.database = (unsigned) n;
        return NULL;
}

static const char *set_wait(struct config *c, struct str v)
{
        usec_t t;

        if (rules__set_time(v, 3600 * USEC_PER_SEC, &t) || t < 100 * USEC_PER_MSEC)
                return "expected a time from 100ms to 1h, such as 5s";
        c->store.wait = t;
        return NULL;
}

static const struct {
        const char *path;
        size_t at; /* in struct config_raw */
        store_set_fn *set;
        bool redis_only;
} rules[] = {
        { "store.kind", offsetof(struct config_raw, store.kind), set_kind },
        { "store.address", offsetof(struct config_raw, store.address), set_address, true },
        { "store.user", offsetof(struct config_raw, store.user), set_user, true },
        { "store.password_file", offsetof(struct config_raw, store.password_file),
          set_password_file, true },
        { "store.database", offsetof(struct config_raw, store.database), set_database, true },
        { "store.wait", offsetof(struct config_raw, store.wait), set_wait, true },
};

/* --- all of them --- */

int rules__apply_store(const struct config_rules *r, struct err *e)
{
        struct config *c = r->to;

        c->store.wait = STORE_REDIS_WAIT;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                char *const *value = (const void *) ((const char *) r->raw + rules[i].at);
                const char *expected;

                if (!*value)
                        continue;
                if (rules[i].redis_only && !c->store.redis)
                        return rules__wrong(r, rules[i].path, STR_NULL,
                                            "only a store of kind redis has it", e);
                expected = rules[i].set(c, str_from(*value));
                if (expected)
                        return rules__wrong(r, rules[i].path, str_from(*value), expected, e);
        }
        if (c->store.redis && !r->raw->store.address)
                return rules__wrong(r, "store.kind", STR_NULL,
                                    "a store in Redis needs store.address", e);
        if (c->store.user.p && !c->store.password_file)
                return rules__wrong(r, "store.user", STR_NULL,
                                    "a user of Redis needs store.password_file", e);
        return 0;
}
