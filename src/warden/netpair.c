/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netpair.h"

#include <sys/socket.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/netns.h"

#define NAME  "eth0"
#define INDEX 16 /* smaller ones may belong to tunnels that the kernel makes by itself */

int netpair_open(struct netpair *x, const struct netpair_ground *g, int netns)
{
        int s = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        int r = s < 0 ? s : netlink_adopt(s, &x->inside);

        x->ground = g;
        if (r < 0 || !g->v6)
                return r;
        x->news = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        return x->news < 0 ? x->news : link_watch_addresses(x->news);
}

void netpair_close(struct netpair *x)
{
        netlink_close(&x->inside);
        x->news = fd_close(x->news);
}

static void add_neighbours(const struct netpair_ground *g, int link, uint32_t index,
                           enum netscheme_side other)
{
        uint8_t mac[LINK_MAC_SIZE];
        struct link_addr addr;

        netscheme_mac(index, other, mac);
        netscheme_v4(g->scheme, index, other, &addr);
        link_add_neighbour(g->batch, link, &addr, mac);
        netscheme_v6(g->scheme, index, other, &addr);
        if (g->v6)
                link_add_neighbour(g->batch, link, &addr, mac);
}

/* The link goes up with them. */
static void add_addresses(const struct netpair_ground *g, int link, uint32_t index,
                          enum netscheme_side side)
{
        struct link_addr addr;

        if (g->v6)
                link_set_addr_gen_none(g->batch, link);
        link_set_up(g->batch, link);
        netscheme_v4(g->scheme, index, side, &addr);
        link_add_address(g->batch, link, &addr, NETSCHEME_V4_BITS);
        netscheme_v6(g->scheme, index, side, &addr);
        if (g->v6)
                link_add_address(g->batch, link, &addr, NETSCHEME_V6_BITS);
}

/* All in one batch: in a namespace of ours the link's number is our choice. -EEXIST: the name of the
 * machine's end is taken. */
static int connect_inside(struct netpair *x, uint32_t index, const char *name)
{
        const struct netpair_ground *g = x->ground;
        uint8_t inner[LINK_MAC_SIZE], outer[LINK_MAC_SIZE];
        const struct link_veth veth = { NAME, INDEX, name, g->machine, inner, outer };
        struct link_addr gateway;

        netscheme_mac(index, NETSCHEME_SANDBOX, inner);
        netscheme_mac(index, NETSCHEME_MACHINE, outer);
        netlink_reset(g->batch);
        link_add_veth(g->batch, &veth);
        add_addresses(g, INDEX, index, NETSCHEME_SANDBOX);
        add_neighbours(g, INDEX, index, NETSCHEME_MACHINE);
        netscheme_v4(g->scheme, index, NETSCHEME_MACHINE, &gateway);
        link_add_default_route(g->batch, INDEX, &gateway);
        netscheme_v6(g->scheme, index, NETSCHEME_MACHINE, &gateway);
        if (g->v6)
                link_add_default_route(g->batch, INDEX, &gateway);
        return netlink_send(&x->inside, g->batch, NULL);
}

static int connect_outside(struct netpair *x, uint32_t index)
{
        const struct netpair_ground *g = x->ground;

        netlink_reset(g->batch);
        add_addresses(g, x->link, index, NETSCHEME_MACHINE);
        add_neighbours(g, x->link, index, NETSCHEME_SANDBOX);
        return netlink_send(g->route, g->batch, NULL);
}

int netpair_make(struct netpair *x, uint32_t index)
{
        char name[IFNAMSIZ];
        int r;

        netscheme_name(x->ground->scheme, index, name);
        r = connect_inside(x, index, name);
        if (r < 0)
                return r == -EEXIST ? -EBUSY : r;
        x->link = link_index(x->ground->route, name);
        r = x->link < 0 ? x->link : connect_outside(x, index);
        if (r == 0)
                link_update_carrier(&x->inside, NAME);
        return r;
}
