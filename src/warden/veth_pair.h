/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_VETH_PAIR_H
#define HUTCH_WARDEN_VETH_PAIR_H

/*
 * The link of one sandbox: a pair, one end on the host, the other one in a namespace, where it is
 * called eth0 and has the default route.
 *
 * The two know each other's hardware addresses from the start, so that neither has to ask, and the
 * kernel's table of neighbours, one for all namespaces together, does not overflow.
 */

#include "base/compiler.h"
#include "os/netlink.h"
#include "warden/addr_plan.h"

struct veth_context {
        const struct addr_plan *addrs;
        int machine;           /* its namespace, */
        struct netlink *route; /* and a socket there */
        struct netlink_batch *batch;
        bool v6;
};

struct veth_pair {
        const struct veth_context *ctx;
        struct netlink inside; /* sockets in the other namespace: to ask, */
        int news;              /* and to hear of addresses (link_next_address); not without IPv6 */
        int link;              /* the host's end, once it is made */
};

#define VETH_PAIR_NULL ((struct veth_pair){ NULL, NETLINK_NULL, -EBADF, 0 })

int veth_pair_open(struct veth_pair *x, const struct veth_context *g, int netns) must_check;
void veth_pair_close(struct veth_pair *x);

/* Both ends are up and have their addresses; those of IPv6 take packets when the kernel has told of
 * them. -EBUSY if the index has a link already: another one may be tried. */
int veth_pair_make(struct veth_pair *x, uint32_t index) must_check;

#endif
