/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "hutchd/config_rules_impl.h"

/* --- single values --- */

typedef const char *engine_set_fn(struct config *c, struct engine_config *to, struct str v);

static const char *set_socket(struct config *c, struct engine_config *to, struct str v)
{
        return rules__set_path(c, v, &to->socket);
}

static const char *set_worker(struct config *c, struct engine_config *to, struct str v)
{
        struct sock_addr addr;

        if (!str_starts_with(v, STR("unix:")))
                return rules__set_path(c, v, &to->worker);
        to->worker = arena_dup(&c->memory, v);
        return to->worker && sock_addr_from_string(v, &addr) == 0
                       ? NULL
                       : "expected the path of hutch-engine, or unix:PATH of its socket";
}

static const char *set_reach(struct config *c, struct engine_config *to, struct str v)
{
        (void) c;
        to->reach = engine_reach_from_string(v);
        return to->reach < 0 ? "expected socket or exec" : NULL;
}

static const char *set_network(struct config *c, struct engine_config *to, struct str v)
{
        (void) c;
        to->network = engine_network_from_string(v);
        return to->network < 0 ? "expected bridge or none" : NULL;
}

static const struct {
        const char *name;
        size_t at; /* in struct raw_engine */
        engine_set_fn *set;
} rules[] = {
        { "socket", offsetof(struct raw_engine, socket), set_socket },
        { "worker", offsetof(struct raw_engine, worker), set_worker },
        { "reach", offsetof(struct raw_engine, reach), set_reach },
        { "network", offsetof(struct raw_engine, network), set_network },
};

/* --- both engines --- */

static int apply(const struct config_rules *r, enum engine_kind kind, const struct raw_engine *raw,
                 struct err *e)
{
        char path[RULES_PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                char *const *value = (const void *) ((const char *) raw + rules[i].at);
                const char *expected;

                if (!*value)
                        continue;
                expected = rules[i].set(r->to, &r->to->engines[kind], str_from(*value));
                (void) snprintf(path, sizeof(path), "%s.%s", engine_kind_to_string((int) kind),
                                rules[i].name);
                if (expected)
                        return rules__wrong(r, path, str_from(*value), expected, e);
        }
        r->to->engines[kind].host_folders = r->to->host_folders;
        return 0;
}

int rules__apply_engines(const struct config_rules *r, struct err *e)
{
        int result = apply(r, ENGINE_DOCKER, &r->raw->docker, e);

        return result < 0 ? result : apply(r, ENGINE_PODMAN, &r->raw->podman, e);
}
