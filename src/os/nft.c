/* SPDX-License-Identifier: Apache-2.0 */
#include "os/nft.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "base/base.h"

#define LIST_TRIES 256

static void marker(struct netlink_batch *b, uint16_t type)
{
        const struct netlink_head head = { type, 0, true };
        const struct nfgenmsg m = { .nfgen_family = AF_UNSPEC,
                                    .version = NFNETLINK_V0,
                                    .res_id = htons(NFNL_SUBSYS_NFTABLES) };

        netlink_begin(b, &head, &m, sizeof(m));
}

void nft_begin(struct netlink_batch *b)
{
        netlink_reset(b);
        marker(b, NFNL_MSG_BATCH_BEGIN);
}

void nft_end(struct netlink_batch *b)
{
        marker(b, NFNL_MSG_BATCH_END);
}

static void message(struct netlink_batch *b, uint16_t type, uint16_t flags)
{
        const struct netlink_head head = { NFNL_SUBSYS_NFTABLES << 8 | type, flags, false };
        const struct nfgenmsg m = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

        netlink_begin(b, &head, &m, sizeof(m));
}

/* --- tables, chains --- */

void nft_add_table(struct netlink_batch *b, const char *table)
{
        message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
        netlink_add_str(b, NFTA_TABLE_NAME, table);
        netlink_add_be32(b, NFTA_TABLE_FLAGS, 0);
}

void nft_delete_table(struct netlink_batch *b, const char *table)
{
        message(b, NFT_MSG_DELTABLE, 0);
        netlink_add_str(b, NFTA_TABLE_NAME, table);
}

void nft_add_chain(struct netlink_batch *b, const char *table, const struct nft_chain *c)
{
        size_t hook;

        message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
        netlink_add_str(b, NFTA_CHAIN_TABLE, table);
        netlink_add_str(b, NFTA_CHAIN_NAME, c->name);
        if (!c->type)
                return;
        netlink_add_str(b, NFTA_CHAIN_TYPE, c->type);
        hook = netlink_nest(b, NFTA_CHAIN_HOOK);
        netlink_add_be32(b, NFTA_HOOK_HOOKNUM, c->hook);
        netlink_add_be32(b, NFTA_HOOK_PRIORITY, (uint32_t) c->priority);
        netlink_nest_end(b, hook);
        netlink_add_be32(b, NFTA_CHAIN_POLICY, c->policy);
}

struct policy_of {
        const char *table, *chain;
        int policy;
};

static bool is_str(const struct nlmsghdr *h, uint16_t type, const char *z)
{
        const char *p = netlink_find(h, sizeof(struct nfgenmsg), type, strlen(z) + 1);

        return p && memcmp(p, z, strlen(z) + 1) == 0;
}

static int find_policy(void *data, const struct nlmsghdr *h)
{
        struct policy_of *want = data;
        const void *p;
        uint32_t policy;

        if (!is_str(h, NFTA_CHAIN_TABLE, want->table) || !is_str(h, NFTA_CHAIN_NAME, want->chain))
                return 0;
        p = netlink_find(h, sizeof(struct nfgenmsg), NFTA_CHAIN_POLICY, sizeof(policy));
        if (!p)
                return 0;
        memcpy(&policy, p, sizeof(policy));
        want->policy = (int) (ntohl(policy) & NF_VERDICT_MASK);
        return 0;
}

/* A dump is interrupted when any rule of this network namespace changes meanwhile (by another warden, a
 * container engine); a chain that was found exists nevertheless. */
int nft_get_policy(struct netlink *nl, struct netlink_batch *b, const char *table,
                   const char *chain)
{
        const struct netlink_head head = { NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN, NLM_F_DUMP,
                                           true };
        const struct nfgenmsg m = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
        struct policy_of want = { table, chain, -ENOENT };
        int r = -EAGAIN;

        for (int i = 0; r == -EAGAIN && want.policy < 0 && i < LIST_TRIES; i++) {
                netlink_reset(b);
                netlink_begin(b, &head, &m, sizeof(m));
                netlink_add_str(b, NFTA_CHAIN_TABLE, table);
                r = netlink_list(nl, b, find_policy, &want);
        }
        return r < 0 && want.policy < 0 ? r : want.policy;
}

/* --- sets --- */

void nft_add_set(struct netlink_batch *b, const char *table, const struct nft_set *s)
{
        message(b, NFT_MSG_NEWSET, NLM_F_CREATE);
        netlink_add_str(b, NFTA_SET_TABLE, table);
        netlink_add_str(b, NFTA_SET_NAME, s->name);
        netlink_add_be32(b, NFTA_SET_ID, s->id);
        netlink_add_be32(b, NFTA_SET_FLAGS, s->intervals ? NFT_SET_INTERVAL : 0);
        netlink_add_be32(b, NFTA_SET_KEY_TYPE, s->type);
        netlink_add_be32(b, NFTA_SET_KEY_LEN, s->key_size);
}

size_t nft_elements_begin(struct netlink_batch *b, const struct nft_elements *e)
{
        if (e->remove)
                message(b, NFT_MSG_DELSETELEM, 0);
        else
                message(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
        netlink_add_str(b, NFTA_SET_ELEM_LIST_TABLE, e->table);
        netlink_add_str(b, NFTA_SET_ELEM_LIST_SET, e->set);
        return netlink_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
}

static void element(struct netlink_batch *b, const void *key, size_t n, uint32_t flags)
{
        size_t item = netlink_nest(b, NFTA_LIST_ELEM), value;

        if (flags)
                netlink_add_be32(b, NFTA_SET_ELEM_FLAGS, flags);
        value = netlink_nest(b, NFTA_SET_ELEM_KEY);
        netlink_add(b, NFTA_DATA_VALUE, key, n);
        netlink_nest_end(b, value);
        netlink_nest_end(b, item);
}

void nft_element(struct netlink_batch *b, const void *key, size_t n)
{
        element(b, key, n, 0);
}

void nft_element_end(struct netlink_batch *b, const void *key, size_t n)
{
        element(b, key, n, NFT_SET_ELEM_INTERVAL_END);
}

void nft_elements_end(struct netlink_batch *b, size_t at)
{
        netlink_nest_end(b, at);
}

/* --- rules: their expressions are in nft_rule.c --- */

size_t nft_rule_begin(struct netlink_batch *b, const char *table, const char *chain)
{
        message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
        netlink_add_str(b, NFTA_RULE_TABLE, table);
        netlink_add_str(b, NFTA_RULE_CHAIN, chain);
        return netlink_nest(b, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_end(struct netlink_batch *b, size_t at)
{
        netlink_nest_end(b, at);
}
