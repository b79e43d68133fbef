/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_LINK_H
#define HUTCH_OS_LINK_H

/*
 * Network links, their addresses and routes, as messages of a batch (os/netlink.h) to a socket of
 * NETLINK_ROUTE. They are about the namespace that the socket belongs to.
 *
 * Links have a number and a name. In a namespace of our own we choose the numbers, so that a link can be
 * made and get its addresses in the same batch.
 */

#include <net/if.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "os/netlink.h"

/* IPv4 or IPv6, in the order of the network. */
struct link_addr {
        int family; /* AF_INET, AF_INET6 */
        union {
                struct in_addr v4;
                struct in6_addr v6;
        };
};

size_t link_addr_size(const struct link_addr *a);

#define LINK_MAC_SIZE 6

struct link_veth {
        const char *name;
        int index; /* 0: the kernel chooses one */
        const char *peer;
        int peer_netns;                /* where the peer is to be */
        const uint8_t *mac, *peer_mac; /* hardware addresses; NULL: the kernel makes one up */
};

/* A pair of links, both down. -EEXIST if one of the names is taken. */
void link_add_veth(struct netlink_batch *b, const struct link_veth *v);

void link_set_up(struct netlink_batch *b, int index);

/* No address of its own making (fe80::…): before it is up. Saves the kernel's asking around for
 * whether somebody has that address already, and our having to filter it. */
void link_set_addr_gen_none(struct netlink_batch *b, int index);

/* v6 addresses can be used at once: we know that nobody else has them. */
void link_add_address(struct netlink_batch *b, int index, const struct link_addr *a,
                      unsigned prefix);

/* Who has an address on that link, for good: nobody asks, and the entry does not count among those that
 * the kernel throws out when it has more than a thousand in all namespaces together. */
void link_add_neighbour(struct netlink_batch *b, int index, const struct link_addr *a,
                        const uint8_t *mac);

/* Everything that has no route of its own goes there. */
void link_add_default_route(struct netlink_batch *b, int index, const struct link_addr *gateway);

/* Many: give them a number of a group that nobody else uses, and delete the group. The kernel waits once
 * for all of them. -ENODEV if the group has none. */
void link_set_group(struct netlink_batch *b, int index, uint32_t group);
void link_delete_group(struct netlink_batch *b, uint32_t group);

/* The number of a link; -ENODEV if there is none of that name. */
int link_index(const struct netlink *nl, const char *name) must_check;

/* The end of a pair that went up first sends when a worker of the kernel has noticed the other. This asks
 * for its state, which makes it notice (since Linux 6.8). */
void link_update_carrier(const struct netlink *nl, const char *name);

/* A new address of IPv6 takes packets when another worker has made a route for it, which the kernel
 * then tells to sockets of NETLINK_ROUTE that listen. link_next_address: 1, and on which link; 0 if
 * there are no news; negative if some were lost. Does not wait. */
int link_watch_addresses(int fd) must_check;
int link_next_address(int fd, int *ret_link) must_check;

/* Calls for each link whose name starts so; see netlink_list. */
typedef int link_each_fn(void *data, const char *name, int index);
int link_list(struct netlink *nl, struct netlink_batch *b, const char *prefix, link_each_fn *fn,
              void *data) must_check;

/* Calls for each address of the machine, with the number of its link; see netlink_list. */
typedef int link_address_fn(void *data, const struct link_addr *a, int index);
int link_list_addresses(struct netlink *nl, struct netlink_batch *b, link_address_fn *fn,
                        void *data) must_check;

/* Calls for each route of all tables, the routes to the host's own addresses and networks among them; see
 * netlink_list. */
struct link_route {
        struct link_addr to;
        unsigned bits; /* of the prefix; 0: the default route */
        int link;      /* 0: none, or more than one */
        bool has_gateway;
};
typedef int link_route_fn(void *data, const struct link_route *r);
int link_list_routes(struct netlink *nl, struct netlink_batch *b, link_route_fn *fn, void *data)
        must_check;

#endif
