/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETRULES_H
#define HUTCH_WARDEN_NETRULES_H

/*
 * What sandboxes of the network `private` can reach: everything outside of the host, and nothing else.
 *
 * One table of ours ("hutch-" and the links' tag), made once; a sandbox is an element of two sets, its
 * link with its address, and never a rule, so that ten thousand cost a packet no more than one does.
 *
 *         from a sandbox                                           is
 *         with an address that its link does not have              dropped
 *         to an address of the host, multicast, broadcast       refused, but for named services
 *         to link-local, loopback, clouds' metadata addresses      refused
 *         to another sandbox, or where one could be                refused
 *         to anywhere else                                         sent on under the host's address
 *
 *         to a sandbox
 *         from outside, as part of what it has begun               sent on
 *         from outside otherwise, from another sandbox             dropped, refused
 *
 * The first block is looked at when a packet arrives, before others' rules can give it another
 * destination (published ports of containers), and again where it goes after that. Refused ones are
 * answered, so that a program fails at once instead of after minutes.
 *
 * Sandboxes have no power over it: the namespace of the rules is the host's, and not even
 * that of their own links belongs to their user namespace.
 */

#include "base/compiler.h"
#include "os/netlink.h"
#include "warden/addr_plan.h"

/* What sandboxes may use of the host: a resolver, say. */
struct netrules_service {
        uint8_t protocol; /* IPPROTO_UDP, IPPROTO_TCP */
        uint16_t port;
};

struct netrules {
        const struct addr_plan *addrs;
        const struct netrules_service *services;
        size_t n_services; /* at most NETRULES_SERVICES_MAX */
        bool only_ours;    /* what is neither from nor to a sandbox is not sent on: the host was no
                            * router before we made it one, and is to be none for its neighbours */
};

#define NETRULES_SERVICES_MAX 16

/* At once in place of what is there, with no sandbox in it. The socket is of NETLINK_NETFILTER. */
int netrules_install(struct netlink *nl, struct netlink_batch *b, const struct netrules *r)
        must_check;

/* Whether rules are there, made with only_ours. 1, 0, -ENOENT … */
int netrules_are_only_ours(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
        must_check;

/* Whether it is one of those addresses that no sandbox reaches, on whatever host. */
bool netrules_are_closed_to(const struct link_addr *a);

/* Takes all of them away. 0 also if there are none. */
int netrules_remove(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
        must_check;

/* Sandboxes come and go: all of the list, or none. */
#define NETRULES_CHANGE_MAX 128
struct netrules_change {
        const uint32_t *indices;
        size_t n;
        bool remove;
};

int netrules_change(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s,
                    const struct netrules_change *c) must_check;

#endif
