/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NETLINK_H
#define HUTCH_OS_NETLINK_H

/*
 * Netlink: what the kernel is asked to do about links, addresses, routes (os/link.h) and packet rules
 * (os/nft.h), by messages instead of programs.
 *
 * Messages are put into a batch and go out together: one system call, and the kernel carries them out
 * in their order before that call returns, so there is nothing to wait for. Then the acks
 * are read. Whether a batch is all or nothing is the business of the family: nf_tables is, links
 * and addresses are not: there the messages behind a failed one are carried out as well.
 *
 *         netlink_begin(b, &(struct netlink_head){ RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL },
 *                       &info, sizeof(info));
 *         netlink_add_str(b, IFLA_IFNAME, "veth0");
 *         at = netlink_nest(b, IFLA_LINKINFO);
 *         ...
 *         netlink_nest_end(b, at);
 *         r = netlink_send(nl, b);
 *
 * Like a struct buf, a batch that is full stays failed, and netlink_send says so: appending needs no
 * questions. We encode ourselves: with libmnl the appending would look the same, and there would be
 * a library more in a program that runs as root.
 */

#include <linux/netlink.h>

#include "base/compiler.h"

/* --- a batch --- */

#define NETLINK_BATCH_MAX    (32 * KiB)
#define NETLINK_MESSAGES_MAX 128 /* so that all acks fit into a socket's buffer of default size */

struct netlink_batch {
        size_t n;     /* bytes */
        size_t start; /* of the last message */
        unsigned messages;
        unsigned acks; /* that are to come */
        bool failed;
        _Alignas(struct nlmsghdr) char bytes[NETLINK_BATCH_MAX];
};

struct netlink_head {
        uint16_t type;
        uint16_t flags; /* besides NLM_F_REQUEST */
        bool silent;    /* no answer if all goes well */
};

/* Empties it. */
void netlink_reset(struct netlink_batch *b);

/* A message with its fixed part; attributes follow. */
void netlink_begin(struct netlink_batch *b, const struct netlink_head *h, const void *fixed,
                   size_t n);

void netlink_add(struct netlink_batch *b, uint16_t type, const void *p, size_t n);
void netlink_add_str(struct netlink_batch *b, uint16_t type, const char *z);
void netlink_add_u8(struct netlink_batch *b, uint16_t type, uint8_t v);
void netlink_add_u32(struct netlink_batch *b, uint16_t type, uint32_t v);
void netlink_add_be32(struct netlink_batch *b, uint16_t type, uint32_t v);

/* An attribute of attributes: all that is added until its end. */
size_t netlink_nest(struct netlink_batch *b, uint16_t type) must_check;
void netlink_nest_end(struct netlink_batch *b, size_t at);

/* Room without an attribute's head: zeroed, and inside of the current message. NULL if it is full. */
void *netlink_reserve(struct netlink_batch *b, size_t n) must_check;

/* --- a socket --- */

struct netlink {
        int fd;
        uint32_t next; /* sequence number */
};

#define NETLINK_NULL ((struct netlink){ -EBADF, 0 })

/* Family: NETLINK_ROUTE, NETLINK_NETFILTER. The socket belongs to the network namespace that the caller
 * is in, and stays there. */
int netlink_open(int family, struct netlink *ret) must_check;

/* The same for a socket of type SOCK_RAW that was made elsewhere; the descriptor is ours then. */
int netlink_adopt(int fd, struct netlink *ret) must_check;

void netlink_close(struct netlink *nl);

/* Sends, reads the acks, and empties the batch. 0, or the error of the first message that failed,
 * and, if ret_failed is not NULL, its place in the batch. -EMSGSIZE if the batch was too
 * large (nothing was sent), -EPROTO if acks are missing. */
int netlink_send(struct netlink *nl, struct netlink_batch *b, unsigned *ret_failed) must_check;

/* One silent message that asks for a list (NLM_F_DUMP); each answer goes to the function, which returns 0 to go
 * on. A negative value is returned when the list is at its end. -EAGAIN: the list changed while it was
 * made, ask again. */
typedef int netlink_each_fn(void *data, const struct nlmsghdr *h);
int netlink_list(struct netlink *nl, struct netlink_batch *b, netlink_each_fn *fn, void *data)
        must_check;

/* The attribute of that type in an answer with a fixed part of `fixed` bytes, of at least `size` bytes;
 * NULL if there is none. */
const void *netlink_find(const struct nlmsghdr *h, size_t fixed, uint16_t type, size_t size);

#endif
