/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_LINK_H
#define HUTCH_OS_LINK_H

/*
 * Network links, their addresses and routes, as messages of a batch (os/netlink.h) to a NETLINK_ROUTE
 * socket, in whose namespace they take effect.
 *
 * Links have an index and a name. In a namespace of our own we choose the indices, so that a link can be
 * created and get its addresses in one batch.
 */

#include <net/if.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "os/netlink.h"

/* IPv4 or IPv6, in network byte order. */
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
        int index; /* 0: chosen by the kernel */
        const char *peer;
        int peer_netns;                /* namespace of the peer */
        const uint8_t *mac, *peer_mac; /* NULL: random */
};

/* A veth pair, both ends down. -EEXIST if one of the names is taken. */
void link_add_veth(struct netlink_batch *b, const struct link_veth *v);

void link_set_up(struct netlink_batch *b, int index);

/* No automatic link-local address (fe80::…); to be called before the link is up. Saves duplicate address
 * detection and a filter rule. */
void link_set_addr_gen_none(struct netlink_batch *b, int index);

/* IPv6 addresses are usable at once, without duplicate address detection. */
void link_add_address(struct netlink_batch *b, int index, const struct link_addr *a,
                      unsigned prefix);

/* A permanent neighbour entry: no ARP or NDP request is sent, and the entry is not subject to the
 * kernel's limit of about a thousand for all namespaces together. */
void link_add_neighbour(struct netlink_batch *b, int index, const struct link_addr *a,
                        const uint8_t *mac);

/* No address on the link is ever resolved; what has no permanent entry fails at once. Such entries are counted as well,
 * but the kernel drops failed ones to make room, which it does not with those it is still trying to resolve. AF_INET or
 * AF_INET6. */
void link_resolve_nothing(struct netlink_batch *b, int index, int family);

void link_add_default_route(struct netlink_batch *b, int index, const struct link_addr *gateway);

/* Deleting a link waits for an RCU grace period, 20 ms and more. To delete many, assign them to a group
 * that is not used otherwise, and delete the group: the kernel waits once for all of them. -ENODEV if the
 * group is empty. */
void link_set_group(struct netlink_batch *b, int index, uint32_t group);
void link_delete_group(struct netlink_batch *b, uint32_t group);

/* The index of a link; -ENODEV if there is none of that name. */
int link_index(const struct netlink *nl, const char *name) must_check;

/* The end of a veth pair that went up first sends only after a kernel worker has noticed the other end.
 * Reading its state makes it notice at once (since Linux 6.8). */
void link_update_carrier(const struct netlink *nl, const char *name);

/* A new IPv6 address receives packets once another kernel worker has added a route for it, which the
 * kernel then reports to subscribed NETLINK_ROUTE sockets. link_next_address: 1, and on which link; 0 if
 * there is no further event; negative if some were lost. Does not wait. */
int link_watch_addresses(int fd) must_check;
int link_next_address(int fd, int *ret_link) must_check;

/* Calls fn for each link whose name has the prefix; see netlink_list. */
typedef int link_each_fn(void *data, const char *name, int index);
int link_list(struct netlink *nl, struct netlink_batch *b, const char *prefix, link_each_fn *fn,
              void *data) must_check;

/* Calls fn for each address of the namespace, with the index of its link; see netlink_list. */
typedef int link_address_fn(void *data, const struct link_addr *a, int index);
int link_list_addresses(struct netlink *nl, struct netlink_batch *b, link_address_fn *fn,
                        void *data) must_check;

/* Calls for each route of all tables, the routes to the host's own addresses and networks among them; see
 * netlink_list. */
struct link_route {
        struct link_addr to;
        unsigned bits;    /* of the prefix; 0: the default route */
        int link;         /* 0: none, or more than one */
        bool has_gateway; /* or leads nowhere: in either case not a network of this host */
};
typedef int link_route_fn(void *data, const struct link_route *r);
int link_list_routes(struct netlink *nl, struct netlink_batch *b, link_route_fn *fn, void *data)
        must_check;

#endif
