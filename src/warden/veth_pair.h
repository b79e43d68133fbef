/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_VETH_PAIR_H
#define HUTCH_WARDEN_VETH_PAIR_H

/*
 * The veth pair of a sandbox: one end on the host, the other in its namespace, where it is called eth0 and
 * has the default routes.
 *
 * Both ends know each other's hardware address from the start: neither has to resolve it, nor may it resolve
 * anything else, and the kernel's neighbour table, which all namespaces share, does not overflow.
 */

#include "base/compiler.h"
#include "os/netlink.h"
#include "warden/addr_plan.h"

struct veth_context {
        const struct addr_plan *addrs;
        int host_netns;
        struct netlink *route; /* a socket of the host */
        struct netlink_batch *batch;
        bool v6;
};

struct veth_pair {
        const struct veth_context *ctx;
        struct netlink inside; /* a socket of the namespace */
        int addr_events; /* reports its addresses (link_watch_addresses); -EBADF without IPv6 */
        int link;        /* of the host, once it exists */
};

#define VETH_PAIR_NULL ((struct veth_pair){ NULL, NETLINK_NULL, -EBADF, 0 })

int veth_pair_open(struct veth_pair *x, const struct veth_context *g, int netns) must_check;
void veth_pair_close(struct veth_pair *x);

/* Both ends are up and have their addresses; IPv6 addresses accept packets when the kernel has reported
 * them. -EBUSY: the index has a link already, another one may be tried. */
int veth_pair_make(struct veth_pair *x, uint32_t index) must_check;

#endif
