/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETRULES_H
#define HUTCH_WARDEN_NETRULES_H

/*
 * The packet rules (nftables) of private networks: sandboxes reach everything outside of the host, and
 * nothing else.
 *
 * One table of ours ("hutch-" and the tag of the links), installed once. A sandbox is an element of two
 * sets, its link with its address, and never a rule: ten thousand sandboxes cost a packet no more than one.
 *
 *         from a sandbox                                           is
 *         with a source address that its link does not have        dropped
 *         to an address of the host, multicast, broadcast          rejected, except named services
 *         to link-local, loopback, metadata addresses of clouds    rejected
 *         to another sandbox, or to an address in the subnet       rejected
 *         to anywhere else                                         masqueraded
 *
 *         to a sandbox
 *         from outside, of a connection that it has opened         forwarded
 *         from outside otherwise                                   dropped
 *         from another sandbox                                     rejected
 *
 * The first block is evaluated when a packet arrives, before rules of others can change its destination
 * (published ports of containers), and again when it is forwarded. Rejected packets get a reply, so that a
 * program fails at once and not after minutes.
 *
 * Sandboxes can't change the rules: they are in the host's namespace, and even the namespaces of their own links
 * do not belong to their user namespace.
 */

#include "base/compiler.h"
#include "os/netlink.h"
#include "warden/addr_plan.h"

/* A service of the host that sandboxes may use, such as a resolver. */
struct netrules_service {
        uint8_t protocol; /* IPPROTO_UDP, IPPROTO_TCP */
        uint16_t port;
};

struct netrules {
        const struct addr_plan *addrs;
        const struct netrules_service *services;
        size_t n_services; /* at most NETRULES_SERVICES_MAX */
        bool only_ours; /* forward nothing but packets of sandboxes: forwarding was off before us, and the
                         * host must not become a router for its neighbours */
};

#define NETRULES_SERVICES_MAX 16

/* Replaces our table in one transaction; no sandbox is in it then. The socket is of NETLINK_NETFILTER. */
int netrules_install(struct netlink *nl, struct netlink_batch *b, const struct netrules *r)
        must_check;

/* Whether the installed rules have only_ours: 1, 0, or -ENOENT. */
int netrules_are_only_ours(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
        must_check;

/* Whether no sandbox can reach the address, on any host. */
bool netrules_are_closed_to(const struct link_addr *a);

/* Removes our table. 0 if there is none. */
int netrules_remove(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
        must_check;

/* Adds or removes sandboxes: all of the list, or none. */
#define NETRULES_CHANGE_MAX 128
struct netrules_change {
        const uint32_t *indices;
        size_t n;
        bool remove;
};

int netrules_change(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s,
                    const struct netrules_change *c) must_check;

#endif
