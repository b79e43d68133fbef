/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CONNTRACK_H
#define HUTCH_OS_CONNTRACK_H

/*
 * Connection tracking, over a NETLINK_NETFILTER socket.
 *
 * The kernel keeps connections longer than their owners live, up to five days, and accepts packets that
 * belong to one. They must be deleted before an address gets another owner.
 */

#include "base/compiler.h"
#include "os/link.h"
#include "os/netlink.h"

/* Whether connections with this source are to be deleted. */
typedef bool conntrack_match_fn(void *data, const struct link_addr *source);

/* One dump of all connections, and a message for each match. Sources with very many connections are deleted
 * by one message each, which is slower and needs no memory, or by further dumps if the kernel does not
 * support that. -EOPNOTSUPP or -EINVAL if it does not support any of these messages. */
int conntrack_delete(struct netlink *nl, struct netlink_batch *b, conntrack_match_fn *match,
                     void *data) must_check;

#endif
