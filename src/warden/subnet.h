/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_SUBNET_H
#define HUTCH_WARDEN_SUBNET_H

/*
 * Which subnets the private networks of this installation use, and whether the host uses them already.
 *
 * The kernel's routes answer that: an address of an interface has a route to itself and to its network,
 * whether or not traffic has ever used it. Routes of our own links (warden/addr_plan.h) do not count.
 *
 * Without a configured IPv4 subnet the first start chooses a free /16 and records it in the data
 * directory (DATA_SUBNET), so that it stays the same. Each installation starts to search at a place of
 * its own, derived from its name, so that two that start at the same moment do not choose the same. The
 * IPv6 subnet is derived from the name as well (RFC 4193) and needs no search.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "os/netlink.h"
#include "warden/addr_plan.h"

/* 0, or ERR_CONFLICT with a message that names the subnet and the route it overlaps. A configured subnet
 * may lie inside of a network that is reached by a gateway: the administrator chose it from there. One
 * that we choose (`strict`) may not. */
int subnet_check(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *p,
                 bool strict, struct err *e) must_check;

struct subnet_request {
        struct addr_plan_config config; /* v4 null: choose one */
        int data;                       /* the data directory */
        bool in_use; /* sandboxes are running in it: it stays, and the pool refuses new ones if it
                      * is taken (netns_pool_start) */
};

/* ERR_CONFLICT if the configured subnets are taken, or none is free; ERR_INVALID. */
int subnet_choose(const struct subnet_request *q, struct addr_plan *ret, struct err *e) must_check;

#endif
