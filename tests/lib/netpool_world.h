/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_NETPOOL_WORLD_H
#define HUTCH_TESTS_LIB_NETPOOL_WORLD_H

/* A host in a small world (tests/lib/net_world.h) that has a pool of networks. */

#include "tests/lib/net_world.h"
#include "warden/netpool.h"

#define NETWORKS (CLONE_NEWNET)

static const int families[] = { AF_INET, AF_INET6 };

struct world {
        struct net_world net;
        struct netpool *pool;
        struct netpool_item a, b;
        unsigned from_a; /* connections */
        struct netpool_config config;
};

static inline struct netpool_config sample_config(const char *installation, const char *v4)
{
        const struct netscheme_config names = { str_from(installation), str_from(v4), STR_NULL };
        struct netpool_config c = { .depth = { 2, 3 }, .none_max = 8, .close_batch = 3 };

        if (netscheme_init(&c.scheme, &names) < 0)
                abort();
        return c;
}

static inline int fill(struct netpool *p)
{
        int r;

        do
                r = netpool_step(p);
        while (r == 1);
        return r;
}

/* A host with a full pool, and two sandboxes' namespaces. */
static inline int open_world(struct world *w)
{
        int r = net_world_open(&w->net);

        w->config = sample_config("one", NULL);
        if (r == 0)
                r = netpool_open(&w->config, &w->pool, NULL);
        if (r == 0)
                r = netpool_start(w->pool, NULL);
        if (r == 0)
                r = fill(w->pool);
        if (r == 0)
                r = netpool_take(w->pool, NETPOOL_PRIVATE, &w->a);
        return r < 0 ? r : netpool_take(w->pool, NETPOOL_PRIVATE, &w->b);
}

static inline const char *address(const struct world *w, int family,
                                  const struct netpool_item *item, enum netscheme_side side)
{
        static char text[4][INET6_ADDRSTRLEN];
        static unsigned next;
        struct link_addr a;

        if (family == AF_INET)
                netscheme_v4(&w->config.scheme, item->index, side, &a);
        else
                netscheme_v6(&w->config.scheme, item->index, side, &a);
        return world_text(&a, text[next++ % 4]);
}

static inline void run(apart_fn *fn)
{
        static struct world w;

        if (!apart_possible())
                skip_because("network namespaces need root");
        memset(&w, 0, sizeof(w));
        apart_run(fn, &w, NETWORKS);
}

#endif
