/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/config_rules_impl.h"
#include "registry/nodes.h"

#define LEASE_DEFAULT (10 * USEC_PER_SEC)
#define GRACE_DEFAULT (60 * USEC_PER_SEC)
#define TIME_MAX      (24 * 3600 * USEC_PER_SEC)

typedef const char *cluster_set_fn(struct config *c, struct str v);

static const char *set_advertise(struct config *c, struct str v)
{
        struct sock_addr a;

        if (v.n > NODE_ADDRESS_MAX || sock_addr_from_string(v, &a) < 0
            || (!sock_addr_is_unix(&a) && sock_addr_port(&a) == 0))
                return "expected where other nodes reach this one, such as http://10.0.0.7:8080; names "
                       "are not looked up";
        c->cluster.advertise = arena_dup(&c->memory, v);
        return c->cluster.advertise ? NULL : RULES_NO_ROOM;
}

static const char *set_key_file(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->cluster.key_file);
}

static const char *set_lease(struct config *c, struct str v)
{
        usec_t t;

        if (rules__set_time(v, TIME_MAX, &t) || t < 100 * USEC_PER_MSEC)
                return "expected a time from 100ms to 24h, such as 10s";
        c->cluster.lease = t;
        return NULL;
}

static const char *set_grace(struct config *c, struct str v)
{
        usec_t t;

        if (rules__set_time(v, TIME_MAX, &t))
                return "expected a time of at most 24h, such as 60s";
        c->cluster.grace = t;
        return NULL;
}

static const struct {
        const char *path;
        size_t at; /* in struct config_raw */
        cluster_set_fn *set;
} rules[] = {
        { "cluster.advertise", offsetof(struct config_raw, cluster.advertise), set_advertise },
        { "cluster.key_file", offsetof(struct config_raw, cluster.key_file), set_key_file },
        { "cluster.lease", offsetof(struct config_raw, cluster.lease), set_lease },
        { "cluster.grace", offsetof(struct config_raw, cluster.grace), set_grace },
};

int rules__apply_cluster(const struct config_rules *r, struct err *e)
{
        struct config *c = r->to;
        bool any = false;

        c->cluster.lease = LEASE_DEFAULT;
        c->cluster.grace = GRACE_DEFAULT;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                char *const *value = (const void *) ((const char *) r->raw + rules[i].at);
                const char *expected;

                if (!*value)
                        continue;
                any = true;
                expected = rules[i].set(c, str_from(*value));
                if (expected)
                        return rules__wrong(r, rules[i].path, str_from(*value), expected, e);
        }
        if (!any)
                return 0;
        if (c->store.kind == CONFIG_STORE_SQLITE)
                return rules__wrong(
                        r, "cluster", STR_NULL,
                        "a store of kind sqlite has one node; several need redis or nats", e);
        if (!c->cluster.advertise)
                return rules__wrong(r, "cluster", STR_NULL, "cluster.advertise is missing", e);
        if (!c->cluster.key_file)
                return rules__wrong(r, "cluster", STR_NULL, "cluster.key_file is missing", e);
        return 0;
}
