/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETPAIR_H
#define HUTCH_WARDEN_NETPAIR_H

/*
 * The link of one sandbox: a pair, one end on the machine, the other one in a namespace, where it is
 * called eth0 and has the default route.
 *
 * The two know each other's hardware addresses from the start, so that neither has to ask, and the
 * kernel's table of neighbours, one for all namespaces together, does not overflow.
 */

#include "base/compiler.h"
#include "os/netlink.h"
#include "warden/netscheme.h"

struct netpair_ground {
        const struct netscheme *scheme;
        int machine;           /* its namespace, */
        struct netlink *route; /* and a socket there */
        struct netlink_batch *batch;
        bool v6;
};

struct netpair {
        const struct netpair_ground *ground;
        struct netlink inside; /* sockets in the other namespace: to ask, */
        int news;              /* and to hear of addresses (link_next_address); not without IPv6 */
        int link;              /* the machine's end, once it is made */
};

#define NETPAIR_NULL ((struct netpair){ NULL, NETLINK_NULL, -EBADF, 0 })

int netpair_open(struct netpair *x, const struct netpair_ground *g, int netns) must_check;
void netpair_close(struct netpair *x);

/* Both ends are up and have their addresses; those of IPv6 take packets when the kernel has told of
 * them. -EBUSY if the index has a link already: another one may be tried. */
int netpair_make(struct netpair *x, uint32_t index) must_check;

#endif
