/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/config_rules_impl.h"
#include "model/limits.h"
#include "model/text.h"
#include "store/nats_url.h"
#include "store/store_nats.h"
#include "store/store_redis.h"

/* --- single values --- */

typedef const char *store_set_fn(struct config *c, struct str v);

static const struct {
        const char *name;
        enum config_store kind;
} kinds[] = {
        { "sqlite", CONFIG_STORE_SQLITE },
        { "redis", CONFIG_STORE_REDIS },
        { "nats", CONFIG_STORE_NATS },
};

static const char *set_kind(struct config *c, struct str v)
{
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                if (!str_eq(v, str_from(kinds[i].name)))
                        continue;
                c->store.kind = kinds[i].kind;
                return NULL;
        }
        return "expected sqlite, redis or nats";
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
                return "expected the name of a user of the server";
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

static const char *set_url(struct config *c, struct str v)
{
        struct str rest = v;
        struct nats_url url;
        unsigned n = 0;

        do {
                const char *wrong = nats_url_take(&rest, &url);

                if (wrong)
                        return wrong;
        } while (++n < STORE_NATS_URLS_MAX && rest.n > 0);
        if (rest.n > 0)
                return "expected at most 16 servers";
        c->store.urls = arena_dup(&c->memory, v);
        return c->store.urls ? NULL : RULES_NO_ROOM;
}

static const char *set_bucket(struct config *c, struct str v)
{
        if (!nats_is_bucket(v))
                return "expected 1 to 64 letters, digits, - and _";
        c->store.bucket = arena_dup(&c->memory, v);
        return c->store.bucket ? NULL : RULES_NO_ROOM;
}

static const char *set_replicas(struct config *c, struct str v)
{
        uint64_t n;

        if (parse_u64_max(v, STORE_NATS_REPLICAS_MAX, &n) < 0 || n == 0)
                return "expected a number of servers, 1 to 5";
        c->store.replicas = (unsigned) n;
        return NULL;
}

static const char *set_token_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.token_file);
}

static const char *set_credentials_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.credentials_file);
}

static const char *set_ca_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.ca_file);
}

static const char *set_cert_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.cert_file);
}

static const char *set_key_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->store.key_file);
}

/* Who has it. */
#define ALL   (1U << CONFIG_STORE_SQLITE | REDIS | NATS)
#define REDIS (1U << CONFIG_STORE_REDIS)
#define NATS  (1U << CONFIG_STORE_NATS)

#define RULE(name, set, kinds)                                                      \
        {                                                                           \
                "store." #name, offsetof(struct config_raw, store.name), set, kinds \
        }

static const struct {
        const char *path;
        size_t at; /* in struct config_raw */
        store_set_fn *set;
        unsigned kinds;
} rules[] = {
        RULE(kind, set_kind, ALL),
        RULE(address, set_address, REDIS),
        RULE(user, set_user, REDIS | NATS),
        RULE(password_file, set_password_file, REDIS | NATS),
        RULE(database, set_database, REDIS),
        RULE(wait, set_wait, REDIS | NATS),
        RULE(url, set_url, NATS),
        RULE(bucket, set_bucket, NATS),
        RULE(replicas, set_replicas, NATS),
        RULE(token_file, set_token_file, NATS),
        RULE(credentials_file, set_credentials_file, NATS),
        RULE(ca_file, set_ca_file, NATS),
        RULE(cert_file, set_cert_file, NATS),
        RULE(key_file, set_key_file, NATS),
};

static const char *only(unsigned of)
{
        if (of == REDIS)
                return "only a store of kind redis has it";
        return of == NATS ? "only a store of kind nats has it"
                          : "only stores of kind redis and nats have it";
}

/* --- all of them --- */

struct lack {
        bool wrong;
        const char *path, *what;
};

/* What belongs together. */
static int check_together(const struct config_rules *r, const struct config *c, struct err *e)
{
        unsigned ways = (c->store.user.p != NULL) + (c->store.token_file != NULL)
                        + (c->store.credentials_file != NULL);
        bool nats = c->store.kind == CONFIG_STORE_NATS;
        const struct lack lacks[] = {
                { c->store.kind == CONFIG_STORE_REDIS && !r->raw->store.address, "store.kind",
                  "a store in Redis needs store.address" },
                { nats && !c->store.urls, "store.kind", "a store in NATS needs store.url" },
                { c->store.user.p && !c->store.password_file, "store.user",
                  "a user needs store.password_file" },
                { nats && c->store.password_file && !c->store.user.p, "store.password_file",
                  "a password for NATS needs store.user" },
                { ways > 1, "store.kind",
                  "of user, token_file and credentials_file only one can be" },
                { !c->store.cert_file != !c->store.key_file, "store.kind",
                  "cert_file and key_file belong together" },
                { c->store.urls && (c->store.ca_file || c->store.cert_file)
                          && !strstr(c->store.urls, "tls://"),
                  "store.url", "ca_file and cert_file are for TLS: expected tls://" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lacks); i++)
                if (lacks[i].wrong)
                        return rules__wrong(r, lacks[i].path, STR_NULL, lacks[i].what, e);
        return 0;
}

int rules__apply_store(const struct config_rules *r, struct err *e)
{
        struct config *c = r->to;

        c->store.wait = STORE_REDIS_WAIT;
        c->store.bucket = STORE_NATS_BUCKET;
        c->store.replicas = 1;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                char *const *value = (const void *) ((const char *) r->raw + rules[i].at);
                const char *expected;

                if (!*value)
                        continue;
                if (!(rules[i].kinds & 1U << c->store.kind))
                        return rules__wrong(r, rules[i].path, STR_NULL, only(rules[i].kinds), e);
                expected = rules[i].set(c, str_from(*value));
                if (expected)
                        return rules__wrong(r, rules[i].path, str_from(*value), expected, e);
        }
        return check_together(r, c, e);
}
