/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/veth_pair.h"

#include <sys/socket.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/netns.h"

#define NAME  "eth0"
#define INDEX 16 /* lower ones may belong to tunnels that the kernel creates */

int veth_pair_open(struct veth_pair *x, const struct veth_context *g, int netns)
{
        int s = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        int r = s < 0 ? s : netlink_adopt(s, &x->inside);

        x->ctx = g;
        if (r < 0 || !g->v6)
                return r;
        x->addr_events = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        return x->addr_events < 0 ? x->addr_events : link_watch_addresses(x->addr_events);
}

void veth_pair_close(struct veth_pair *x)
{
        netlink_close(&x->inside);
        x->addr_events = fd_close(x->addr_events);
}

/* A process of the sandbox can send to any address as if it were on the link (SO_DONTROUTE). */
static void add_neighbours(const struct veth_context *g, int link, uint32_t index,
                           enum addr_plan_side other)
{
        uint8_t mac[LINK_MAC_SIZE];
        struct link_addr addr;

        addr_plan_mac(index, other, mac);
        addr_plan_v4(g->addrs, index, other, &addr);
        link_resolve_nothing(g->batch, link, AF_INET);
        link_add_neighbour(g->batch, link, &addr, mac);
        addr_plan_v6(g->addrs, index, other, &addr);
        if (g->v6) {
                link_resolve_nothing(g->batch, link, AF_INET6);
                link_add_neighbour(g->batch, link, &addr, mac);
        }
}

/* Also sets the link up. */
static void add_addresses(const struct veth_context *g, int link, uint32_t index,
                          enum addr_plan_side side)
{
        struct link_addr addr;

        if (g->v6)
                link_set_addr_gen_none(g->batch, link);
        link_set_up(g->batch, link);
        addr_plan_v4(g->addrs, index, side, &addr);
        link_add_address(g->batch, link, &addr, ADDR_PLAN_V4_BITS);
        addr_plan_v6(g->addrs, index, side, &addr);
        if (g->v6)
                link_add_address(g->batch, link, &addr, ADDR_PLAN_V6_BITS);
}

/* First the sandbox's end, in one batch: in a namespace of ours we choose the index of the link. */
int veth_pair_make(struct veth_pair *x, uint32_t index)
{
        const struct veth_context *g = x->ctx;
        uint8_t inner[LINK_MAC_SIZE], outer[LINK_MAC_SIZE];
        char name[IFNAMSIZ];
        const struct link_veth veth = { NAME, INDEX, name, g->host_netns, inner, outer };
        struct link_addr gateway;
        int r;

        addr_plan_link_name(g->addrs, index, name);
        addr_plan_mac(index, ADDR_PLAN_SANDBOX, inner);
        addr_plan_mac(index, ADDR_PLAN_HOST, outer);
        netlink_reset(g->batch);
        link_add_veth(g->batch, &veth);
        add_addresses(g, INDEX, index, ADDR_PLAN_SANDBOX);
        add_neighbours(g, INDEX, index, ADDR_PLAN_HOST);
        addr_plan_v4(g->addrs, index, ADDR_PLAN_HOST, &gateway);
        link_add_default_route(g->batch, INDEX, &gateway);
        addr_plan_v6(g->addrs, index, ADDR_PLAN_HOST, &gateway);
        if (g->v6)
                link_add_default_route(g->batch, INDEX, &gateway);
        r = netlink_send(&x->inside, g->batch, NULL);
        if (r < 0)
                return r == -EEXIST ? -EBUSY : r; /* the name on the host is in use */
        x->link = link_index(g->route, name);
        if (x->link < 0)
                return x->link;
        netlink_reset(g->batch);
        add_addresses(g, x->link, index, ADDR_PLAN_HOST);
        add_neighbours(g, x->link, index, ADDR_PLAN_SANDBOX);
        r = netlink_send(g->route, g->batch, NULL);
        if (r == 0)
                link_update_carrier(&x->inside, NAME);
        return r;
}
