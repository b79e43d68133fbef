/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CONNTRACK_H
#define HUTCH_OS_CONNTRACK_H

/*
 * Connections that the kernel remembers (conntrack), over a socket of NETLINK_NETFILTER.
 *
 * It remembers them longer than those last who had them, up to five days, and what belongs to one is
 * let through. An address must not get another owner before they are forgotten.
 */

#include "base/compiler.h"
#include "os/link.h"
#include "os/netlink.h"

/* Whether connections that came from there are to be forgotten. */
typedef bool conntrack_match_fn(void *data, const struct link_addr *source);

/* One list of all connections, whatever they are, and a message for each that was picked; addresses
 * with very many are dealt with one by one, which is slower and has no bound of memory. -EOPNOTSUPP or
 * -EINVAL from a kernel that knows no such messages. */
int conntrack_delete(struct netlink *nl, struct netlink_batch *b, conntrack_match_fn *pick,
                     void *data) must_check;

#endif
