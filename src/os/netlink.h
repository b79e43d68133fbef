/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NETLINK_H
#define HUTCH_OS_NETLINK_H

/*
 * Netlink: links, addresses, routes (os/link.h) and packet filter rules (os/nft.h) by messages to the
 * kernel instead of by programs.
 *
 * Messages are collected in a batch and sent together: one system call, and the kernel processes them in
 * their order before that call returns, so there is nothing to wait for. Then the acknowledgements are
 * read. Whether a batch is atomic depends on the family: nf_tables is; for links and addresses the
 * messages after a failed one are processed as well.
 *
 *         netlink_begin(b, &(struct netlink_head){ RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL },
 *                       &info, sizeof(info));
 *         netlink_add_str(b, IFLA_IFNAME, "veth0");
 *         at = netlink_nest(b, IFLA_LINKINFO);
 *         ...
 *         netlink_nest_end(b, at);
 *         r = netlink_send(nl, b);
 *
 * As a struct buf, a batch that is full stays failed, and netlink_send reports it. We encode ourselves:
 * with libmnl the code would look the same, with one library more in a program that runs as root.
 */

#include <linux/netlink.h>

#include "base/compiler.h"

/* --- a batch --- */

#define NETLINK_BATCH_MAX    (32 * KiB)
#define NETLINK_MESSAGES_MAX 128 /* so that all acks fit into a socket buffer of default size */

struct netlink_batch {
        size_t n;     /* bytes */
        size_t start; /* of the last message */
        unsigned messages;
        unsigned acks; /* expected */
        bool failed;
        _Alignas(struct nlmsghdr) char bytes[NETLINK_BATCH_MAX];
};

struct netlink_head {
        uint16_t type;
        uint16_t flags; /* besides NLM_F_REQUEST */
        bool silent;    /* no ack on success */
};

/* Empties the batch. */
void netlink_reset(struct netlink_batch *b);

/* Begins a message with its fixed part; attributes follow. */
void netlink_begin(struct netlink_batch *b, const struct netlink_head *h, const void *fixed,
                   size_t n);

void netlink_add(struct netlink_batch *b, uint16_t type, const void *p, size_t n);
void netlink_add_str(struct netlink_batch *b, uint16_t type, const char *z);
void netlink_add_u8(struct netlink_batch *b, uint16_t type, uint8_t v);
void netlink_add_u32(struct netlink_batch *b, uint16_t type, uint32_t v);
void netlink_add_be32(struct netlink_batch *b, uint16_t type, uint32_t v);

/* A nested attribute: contains everything that is added until its end. */
size_t netlink_nest(struct netlink_batch *b, uint16_t type) must_check;
void netlink_nest_end(struct netlink_batch *b, size_t at);

/* Zeroed room in the current message, without an attribute's head. NULL if the batch is full. */
void *netlink_reserve(struct netlink_batch *b, size_t n) must_check;

/* --- a socket --- */

struct netlink {
        int fd;
        uint32_t next; /* sequence number */
};

#define NETLINK_NULL ((struct netlink){ -EBADF, 0 })

/* Family: NETLINK_ROUTE, NETLINK_NETFILTER. The socket belongs to the network namespace in which it was
 * opened. */
int netlink_open(int family, struct netlink *ret) must_check;

/* Takes a socket of type SOCK_RAW that the caller opened, in another network namespace for example. */
int netlink_adopt(int fd, struct netlink *ret) must_check;

void netlink_close(struct netlink *nl);

/* Sends the batch, reads the acks, and empties it. 0, or the error of the first message that failed and,
 * if ret_failed is not NULL, its index in the batch. -EMSGSIZE if the batch was too large (nothing was
 * sent), -EPROTO if acks are missing. */
int netlink_send(struct netlink *nl, struct netlink_batch *b, unsigned *ret_failed) must_check;

/* Sends one silent message that requests a dump (NLM_F_DUMP) and calls the function for each item; it
 * returns 0 to continue. A negative value is returned at the end of the dump. -EAGAIN: the list changed
 * meanwhile, retry. */
typedef int netlink_each_fn(void *data, const struct nlmsghdr *h);
int netlink_list(struct netlink *nl, struct netlink_batch *b, netlink_each_fn *fn, void *data)
        must_check;

/* --- attributes --- */

/* The attribute of that type in a message with a fixed part of `fixed` bytes, of at least `size` bytes;
 * NULL if there is none. */
const void *netlink_find(const struct nlmsghdr *h, size_t fixed, uint16_t type, size_t size);

/* The head of the attribute of that type among those at (p, n), or in a nested one, which may be NULL;
 * NULL if there is none. */
const struct nlattr *netlink_find_attr(const char *p, size_t n, uint16_t type);
const struct nlattr *netlink_find_nested(const struct nlattr *a, uint16_t type);

#endif
