/* SPDX-License-Identifier: Apache-2.0 */

/* The expressions of rules. */

#include "os/nft.h"

#include <string.h>

#include "base/base.h"

/* Attributes of expressions are numbers, except for the compared values. */
struct number {
        uint16_t type;
        uint32_t value;
};

struct expression {
        size_t item, data;
};

static struct expression open_expression(struct netlink_batch *b, const char *name)
{
        struct expression x;

        x.item = netlink_nest(b, NFTA_LIST_ELEM);
        netlink_add_str(b, NFTA_EXPR_NAME, name);
        x.data = netlink_nest(b, NFTA_EXPR_DATA);
        return x;
}

static void close_expression(struct netlink_batch *b, struct expression x)
{
        netlink_nest_end(b, x.data);
        netlink_nest_end(b, x.item);
}

static void add_numbers(struct netlink_batch *b, const struct number *numbers, size_t n)
{
        for (size_t i = 0; i < n; i++)
                netlink_add_be32(b, numbers[i].type, numbers[i].value);
}

static void add_value(struct netlink_batch *b, uint16_t type, const void *p, size_t n)
{
        size_t at = netlink_nest(b, type);

        netlink_add(b, NFTA_DATA_VALUE, p, n);
        netlink_nest_end(b, at);
}

static void simple(struct netlink_batch *b, const char *name, const struct number *numbers,
                   size_t n)
{
        struct expression x = open_expression(b, name);

        add_numbers(b, numbers, n);
        close_expression(b, x);
}

#define SIMPLE(b, name, ...)                                         \
        do {                                                         \
                const struct number numbers_[] = { __VA_ARGS__ };    \
                simple((b), (name), numbers_, ARRAY_SIZE(numbers_)); \
        } while (0)

void nft_load_meta(struct netlink_batch *b, uint32_t key, uint32_t reg)
{
        SIMPLE(b, "meta", { NFTA_META_KEY, key }, { NFTA_META_DREG, reg });
}

void nft_load_payload(struct netlink_batch *b, const struct nft_payload_at *at, uint32_t reg)
{
        SIMPLE(b, "payload", { NFTA_PAYLOAD_DREG, reg }, { NFTA_PAYLOAD_BASE, at->base },
               { NFTA_PAYLOAD_OFFSET, at->offset }, { NFTA_PAYLOAD_LEN, at->size });
}

void nft_load_fib_addrtype(struct netlink_batch *b, uint32_t reg)
{
        SIMPLE(b, "fib", { NFTA_FIB_DREG, reg }, { NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE },
               { NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR });
}

static void compare(struct netlink_batch *b, uint32_t op, const void *value, size_t n)
{
        const struct number numbers[] = { { NFTA_CMP_SREG, NFT_REG_1 }, { NFTA_CMP_OP, op } };
        struct expression x = open_expression(b, "cmp");

        add_numbers(b, numbers, ARRAY_SIZE(numbers));
        add_value(b, NFTA_CMP_DATA, value, n);
        close_expression(b, x);
}

void nft_is(struct netlink_batch *b, const void *value, size_t n)
{
        compare(b, NFT_CMP_EQ, value, n);
}

void nft_is_not(struct netlink_batch *b, const void *value, size_t n)
{
        compare(b, NFT_CMP_NEQ, value, n);
}

void nft_mask(struct netlink_batch *b, const void *mask, size_t n)
{
        static const char zeros[16];
        const struct number numbers[] = { { NFTA_BITWISE_SREG, NFT_REG_1 },
                                          { NFTA_BITWISE_DREG, NFT_REG_1 },
                                          { NFTA_BITWISE_LEN, (uint32_t) n } };
        struct expression x;

        ASSERT(n <= sizeof(zeros));
        x = open_expression(b, "bitwise");
        add_numbers(b, numbers, ARRAY_SIZE(numbers));
        add_value(b, NFTA_BITWISE_MASK, mask, n);
        add_value(b, NFTA_BITWISE_XOR, zeros, n);
        close_expression(b, x);
}

static void lookup(struct netlink_batch *b, const char *set, uint32_t flags)
{
        const struct number numbers[] = { { NFTA_LOOKUP_SREG, NFT_REG_1 },
                                          { NFTA_LOOKUP_FLAGS, flags } };
        struct expression x = open_expression(b, "lookup");

        netlink_add_str(b, NFTA_LOOKUP_SET, set);
        add_numbers(b, numbers, ARRAY_SIZE(numbers));
        close_expression(b, x);
}

void nft_is_in(struct netlink_batch *b, const char *set)
{
        lookup(b, set, 0);
}

void nft_is_not_in(struct netlink_batch *b, const char *set)
{
        lookup(b, set, NFT_LOOKUP_F_INV);
}

void nft_ct_is(struct netlink_batch *b, uint32_t states)
{
        SIMPLE(b, "ct", { NFTA_CT_KEY, NFT_CT_STATE }, { NFTA_CT_DREG, NFT_REG_1 });
        nft_mask(b, &states, sizeof(states));
        nft_is_not(b, &(uint32_t){ 0 }, sizeof(uint32_t));
}

void nft_verdict(struct netlink_batch *b, int32_t code, const char *chain)
{
        struct expression x = open_expression(b, "immediate");
        size_t data, verdict;

        netlink_add_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = netlink_nest(b, NFTA_IMMEDIATE_DATA);
        verdict = netlink_nest(b, NFTA_DATA_VERDICT);
        netlink_add_be32(b, NFTA_VERDICT_CODE, (uint32_t) code);
        if (chain)
                netlink_add_str(b, NFTA_VERDICT_CHAIN, chain);
        netlink_nest_end(b, verdict);
        netlink_nest_end(b, data);
        close_expression(b, x);
}

void nft_reject(struct netlink_batch *b)
{
        struct expression x = open_expression(b, "reject");

        netlink_add_be32(b, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
        netlink_add_u8(b, NFTA_REJECT_ICMP_CODE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
        close_expression(b, x);
}

void nft_reject_tcp(struct netlink_batch *b)
{
        SIMPLE(b, "reject", { NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST });
}

void nft_masquerade(struct netlink_batch *b)
{
        struct expression x = open_expression(b, "masq");

        close_expression(b, x);
}
