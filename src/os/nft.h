/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NFT_H
#define HUTCH_OS_NFT_H

/*
 * Packet filter rules (nf_tables), as messages of a batch (os/netlink.h) to a NETLINK_NETFILTER socket.
 * Everything between nft_begin and nft_end is one transaction: no packet sees a part of it.
 *
 * Tables are of the family inet: one set of rules for IPv4 and IPv6. A rule is a list of expressions,
 * evaluated until the first that does not match; load expressions put a value into a register for the
 * next one. All values are in network byte order, except those of the kernel itself (connection state,
 * address type).
 *
 * We encode ourselves here, too: the nft program parses text and takes 17 ms, its library contains that
 * parser, and libnftnl would only replace nft.c and nft_rule.c.
 */

#include <netinet/in.h> /* before the kernel's, which then leaves its own copies out */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/compiler.h"
#include "os/netlink.h"

#define NFT_NAME_SIZE 32 /* of a table, with its NUL */

void nft_begin(struct netlink_batch *b);
void nft_end(struct netlink_batch *b);

/* --- tables, chains --- */

/* No error if it exists already. */
void nft_add_table(struct netlink_batch *b, const char *table);

/* With its content. -ENOENT if there is none. */
void nft_delete_table(struct netlink_batch *b, const char *table);

struct nft_chain {
        const char *name;
        const char *type; /* "filter", "nat"; NULL: reached by jumps only */
        uint32_t hook;    /* NF_INET_FORWARD … */
        int32_t priority;
        uint32_t policy; /* NF_ACCEPT, NF_DROP */
};

void nft_add_chain(struct netlink_batch *b, const char *table, const struct nft_chain *c);

/* The policy of a chain, or a negative errno; -ENOENT if there is none. -EAGAIN only if the rules change
 * all the time. */
int nft_get_policy(struct netlink *nl, struct netlink_batch *b, const char *table,
                   const char *chain) must_check;

/* --- sets --- */

/* Type of a key, as nft(8) shows it; concatenated ones follow one another, each padded to 4 bytes. */
enum {
        NFT_TYPE_IPV4 = 7,
        NFT_TYPE_IPV6 = 8,
        NFT_TYPE_PROTO = 12,
        NFT_TYPE_PORT = 13,
        NFT_TYPE_IFNAME = 41,
};
#define NFT_TYPE_PAIR(a, b) ((uint32_t) (a) << 6 | (uint32_t) (b))

struct nft_set {
        const char *name;
        uint32_t id; /* unique within the batch */
        uint32_t type, key_size;
        bool intervals; /* elements are pairs of start and end */
};

void nft_add_set(struct netlink_batch *b, const char *table, const struct nft_set *s);

/* Elements to add to a set or to delete from it: begin, any number of keys, end. */
struct nft_elements {
        const char *table, *set;
        bool remove;
};

size_t nft_elements_begin(struct netlink_batch *b, const struct nft_elements *e) must_check;
void nft_element(struct netlink_batch *b, const void *key, size_t n);
void nft_element_end(struct netlink_batch *b, const void *key, size_t n); /* first key after it */
void nft_elements_end(struct netlink_batch *b, size_t at);

/* --- rules --- */

size_t nft_rule_begin(struct netlink_batch *b, const char *table, const char *chain) must_check;
void nft_rule_end(struct netlink_batch *b, size_t at);

struct nft_payload_at {
        uint32_t base; /* NFT_PAYLOAD_NETWORK_HEADER … */
        uint32_t offset, size;
};

/* Load into a register: NFT_REG_1 to NFT_REG_4, of 16 bytes each. Two consecutive ones form a
 * concatenated key. */
void nft_load_meta(struct netlink_batch *b, uint32_t key, uint32_t reg);
void nft_load_payload(struct netlink_batch *b, const struct nft_payload_at *at, uint32_t reg);
void nft_load_fib_addrtype(struct netlink_batch *b, uint32_t reg); /* RTN_LOCAL …, destination */

/* Compare the value in NFT_REG_1. A shorter value is compared with its beginning. */
void nft_is(struct netlink_batch *b, const void *value, size_t n);
void nft_is_not(struct netlink_batch *b, const void *value, size_t n);
void nft_mask(struct netlink_batch *b, const void *mask, size_t n);
void nft_is_in(struct netlink_batch *b, const char *set);
void nft_is_not_in(struct netlink_batch *b, const char *set);

/* Connection state, as bits. */
enum { NFT_CT_INVALID = 1, NFT_CT_ESTABLISHED = 2, NFT_CT_RELATED = 4, NFT_CT_NEW = 8 };
void nft_ct_is(struct netlink_batch *b, uint32_t states);

/* Verdicts. Code: NF_ACCEPT, NF_DROP, NFT_JUMP, NFT_GOTO (with a chain). */
void nft_verdict(struct netlink_batch *b, int32_t code, const char *chain);
void nft_reject(struct netlink_batch *b);     /* with ICMP "administratively prohibited" */
void nft_reject_tcp(struct netlink_batch *b); /* with a TCP reset; for TCP only */
void nft_masquerade(struct netlink_batch *b);

#endif
