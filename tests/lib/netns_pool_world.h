/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_NETNS_POOL_WORLD_H
#define HUTCH_TESTS_LIB_NETNS_POOL_WORLD_H

/* A host in a small world (tests/lib/net_world.h) that has a pool of networks. */

#include "tests/lib/net_world.h"
#include "warden/netns_pool.h"

#define NETWORKS (CLONE_NEWNET)

static const int families[] = { AF_INET, AF_INET6 };

struct world {
        struct net_world net;
        struct netns_pool *pool;
        struct pooled_netns a, b;
        unsigned from_a; /* connections */
        struct netns_pool_config config;
};

static inline struct netns_pool_config sample_config(const char *installation, const char *v4)
{
        const struct addr_plan_config names = { str_from(installation), str_from(v4), STR_NULL };
        struct netns_pool_config c = { .depth = { 2, 3 }, .none_max = 8, .close_batch = 3 };

        if (addr_plan_init(&c.addrs, &names) < 0)
                abort();
        return c;
}

static inline int fill(struct netns_pool *p)
{
        int r;

        do
                r = netns_pool_step(p);
        while (r == 1);
        return r;
}

/* A host with a full pool, and two sandboxes' namespaces. */
static inline int open_world(struct world *w)
{
        int r = net_world_open(&w->net);

        w->config = sample_config("one", NULL);
        if (r == 0)
                r = netns_pool_open(&w->config, &w->pool, NULL);
        if (r == 0)
                r = netns_pool_start(w->pool, NULL);
        if (r == 0)
                r = fill(w->pool);
        if (r == 0)
                r = netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a);
        return r < 0 ? r : netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->b);
}

static inline const char *address(const struct world *w, int family,
                                  const struct pooled_netns *item, enum addr_plan_side side)
{
        static char text[4][INET6_ADDRSTRLEN];
        static unsigned next;
        struct link_addr a;

        if (family == AF_INET)
                addr_plan_v4(&w->config.addrs, item->index, side, &a);
        else
                addr_plan_v6(&w->config.addrs, item->index, side, &a);
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
