/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "tests/contract/store_contract.h"
#include "tests/lib/nats_server.h"

/* test_store_nats plain | reopened | restarted: what happens between the steps of a test. */

static struct nats_server server;

/* A new world has a bucket of its own. */
static struct store *open_nats(struct store_world *w)
{
        const char *slash = strrchr(w->dir, '/');
        struct store_nats_config config = nats_server_config(&server, slash + 1);
        struct store *store = NULL;
        struct err e;

        if (store_nats_open(&w->loop, &config, &store, &e) < 0)
                fail_msg("%s", e.message);
        return store;
}

/* It ends the process that holds the connection, too. A write that is sent before that was seen may be lost, and
 * says so; a read is asked again. */
static void restart(struct store_world *w)
{
        nats_server_kill(&server);
        nats_server_start(&server);
        (void) world_get(w, STR("-"), NULL, NULL);
}

static const struct store_maker makers[] = {
        { .name = "plain", .open = open_nats },
        { .name = "reopened", .open = open_nats, .reopen = true },
        { .name = "restarted", .open = open_nats, .pause = restart },
};

int main(int argc, char **argv)
{
        const char *missing = nats_server_missing();
        int r = 1;

        if (missing) {
                printf("1..0 # SKIP %s\n", missing);
                return 0;
        }
        nats_server_open(&server, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
                if (argc == 2 && strcmp(argv[1], makers[i].name) == 0)
                        r = store_contract_run(&makers[i]);
        nats_server_close(&server);
        return r;
}
