/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "tests/contract/store_contract.h"
#include "tests/lib/redis_server.h"

/* test_store_redis plain | reopened | dropped | restarted: what happens between the steps of a test. */

static struct redis_server server;

/* A new world begins empty. */
static struct store *open_redis(struct store_world *w)
{
        static char last[sizeof(w->dir)];
        struct store_redis_config config = redis_server_config(&server);

        if (strcmp(last, w->dir) != 0)
                (void) redis_server_do(&server, "FLUSHALL");
        (void) snprintf(last, sizeof(last), "%s", w->dir);
        return store_redis_open(&w->loop, &config);
}

/* A write that is sent before the end was seen may be lost, and says so; a read is asked again. */
static void notice(struct store_world *w)
{
        (void) world_get(w, STR("-"), NULL, NULL);
}

static void drop(struct store_world *w)
{
        (void) redis_server_do(&server, "CLIENT KILL TYPE normal");
        notice(w);
}

static void restart(struct store_world *w)
{
        redis_server_kill(&server);
        redis_server_start(&server);
        notice(w);
}

static const struct store_maker makers[] = {
        { .name = "plain", .open = open_redis },
        { .name = "reopened", .open = open_redis, .reopen = true },
        { .name = "dropped", .open = open_redis, .pause = drop },
        { .name = "restarted", .open = open_redis, .pause = restart },
};

int main(int argc, char **argv)
{
        int r = 1;

        if (!redis_server_found()) {
                puts("1..0 # SKIP there is no redis-server");
                return 0;
        }
        redis_server_open(&server, NULL, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
                if (argc == 2 && strcmp(argv[1], makers[i].name) == 0)
                        r = store_contract_run(&makers[i]);
        redis_server_close(&server);
        return r;
}
