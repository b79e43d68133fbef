/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netrules.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/base.h"
#include "os/nft.h"

/* Chains. */
#define ARRIVING     "arriving"
#define INPUT        "input"
#define FORWARD      "forward"
#define NAT          "nat"
#define FROM_SANDBOX "from-sandbox"
#define TO_HOST      "to-host"
#define TO_SANDBOX   "to-sandbox"
#define OUTWARD      "outward"
#define REFUSED      "refused"

/* Sets. */
#define SANDBOXES4 "sandboxes4"
#define SANDBOXES6 "sandboxes6"
#define CLOSED4    "closed4"
#define CLOSED6    "closed6"
#define SERVICES   "services"

#define PRIORITY_MANGLE (-150) /* connections are known, destinations not yet changed */
#define PRIORITY_SRCNAT 100

static const struct nft_chain chains[] = {
        { ARRIVING, "filter", NF_INET_PRE_ROUTING, PRIORITY_MANGLE, NF_ACCEPT },
        { INPUT, "filter", NF_INET_LOCAL_IN, 0, NF_ACCEPT },
        { FORWARD, "filter", NF_INET_FORWARD, 0, NF_ACCEPT },
        { NAT, "nat", NF_INET_POST_ROUTING, PRIORITY_SRCNAT, NF_ACCEPT },
        { FROM_SANDBOX, NULL, 0, 0, 0 },
        { TO_HOST, NULL, 0, 0, 0 },
        { TO_SANDBOX, NULL, 0, 0, 0 },
        { OUTWARD, NULL, 0, 0, 0 },
        { REFUSED, NULL, 0, 0, 0 },
};

static const struct nft_set sets[] = {
        { SANDBOXES4, 1, NFT_TYPE_PAIR(NFT_TYPE_IFNAME, NFT_TYPE_IPV4), IFNAMSIZ + 4, false },
        { SANDBOXES6, 2, NFT_TYPE_PAIR(NFT_TYPE_IFNAME, NFT_TYPE_IPV6), IFNAMSIZ + 16, false },
        { CLOSED4, 3, NFT_TYPE_IPV4, 4, true },
        { CLOSED6, 4, NFT_TYPE_IPV6, 16, true },
        { SERVICES, 5, NFT_TYPE_PAIR(NFT_TYPE_PROTO, NFT_TYPE_PORT), 8, false },
};

/* In ascending order. Metadata services of clouds hold the credentials of a host. */
struct closed {
        const char *first;
        unsigned bits;
};

static const struct closed closed4[] = {
        { "0.0.0.0", 8 },          /* this host */
        { "100.100.100.200", 32 }, /* metadata, Alibaba */
        { "127.0.0.0", 8 },        /* loopback */
        { "168.63.129.16", 32 },   /* metadata, Azure */
        { "169.254.0.0", 16 },     /* link-local, and most clouds' metadata */
        { "192.0.0.192", 32 },     /* metadata, Oracle */
        { "224.0.0.0", 3 },        /* multicast, reserved, broadcast */
};

static const struct closed closed6[] = {
        { "::", 16 },               /* unspecified, loopback, IPv4-mapped */
        { "64:ff9b::a9fe:0", 112 }, /* IPv4 link-local through NAT64 */
        { "fd00:ec2::254", 128 },   /* metadata, Amazon */
        { "fd20:ce::254", 128 },    /* metadata, Google */
        { "fe80::", 9 },            /* link-local, and the former site-local */
        { "ff00::", 8 },            /* multicast */
};

struct context {
        struct netlink_batch *b;
        const struct addr_plan *addrs;
        char table[NFT_NAME_SIZE];
};

static void table_name(const struct addr_plan *s, char ret[static NFT_NAME_SIZE])
{
        (void) snprintf(ret, NFT_NAME_SIZE, "hutch-%.6s", s->prefix + 2);
}

/* --- parts of rules --- */

static size_t rule(const struct context *c, const char *chain)
{
        return nft_rule_begin(c->b, c->table, chain);
}

static void link_is(const struct context *c, uint32_t key)
{
        nft_load_meta(c->b, key, NFT_REG_1);
        nft_is(c->b, c->addrs->prefix, strlen(c->addrs->prefix));
}

struct family {
        uint8_t number;
        const char *sandboxes, *closed;
        struct nft_payload_at source, destination;
};

static const struct family families[] = {
        { NFPROTO_IPV4,
          SANDBOXES4,
          CLOSED4,
          { NFT_PAYLOAD_NETWORK_HEADER, 12, 4 },
          { NFT_PAYLOAD_NETWORK_HEADER, 16, 4 } },
        { NFPROTO_IPV6,
          SANDBOXES6,
          CLOSED6,
          { NFT_PAYLOAD_NETWORK_HEADER, 8, 16 },
          { NFT_PAYLOAD_NETWORK_HEADER, 24, 16 } },
};

static void family_is(const struct context *c, const struct family *f)
{
        nft_load_meta(c->b, NFT_META_NFPROTO, NFT_REG_1);
        nft_is(c->b, &f->number, sizeof(f->number));
}

/* --- rules --- */

static void add_lead(const struct context *c, const char *chain, const char *to)
{
        size_t at = rule(c, chain);

        link_is(c, NFT_META_IIFNAME);
        nft_verdict(c->b, NFT_GOTO, to);
        nft_rule_end(c->b, at);
}

/* TCP over IPv6 ignores an ICMP error that arrives before connect(2) has returned, as it does between two
 * namespaces, and tries again a second later. A reset is not lost, and has no rate limit. */
static void add_refused(const struct context *c)
{
        size_t at = rule(c, REFUSED);

        nft_load_meta(c->b, NFT_META_L4PROTO, NFT_REG_1);
        nft_is(c->b, &(uint8_t){ IPPROTO_TCP }, 1);
        nft_reject_tcp(c->b);
        nft_rule_end(c->b, at);
        at = rule(c, REFUSED);
        nft_reject(c->b);
        nft_rule_end(c->b, at);
}

static void add_closed(const struct context *c, const char *chain, const struct family *f)
{
        size_t at = rule(c, chain);

        family_is(c, f);
        nft_load_payload(c->b, &f->destination, NFT_REG_1);
        nft_is_in(c->b, f->closed);
        nft_verdict(c->b, NFT_GOTO, REFUSED);
        nft_rule_end(c->b, at);
}

/* The address at `at` is in our subnets. */
static void is_ours(const struct context *c, const struct family *f,
                    const struct nft_payload_at *at)
{
        const bool v4 = f->number == NFPROTO_IPV4;
        const uint32_t net4 = htonl(c->addrs->v4);
        const unsigned bits = v4 ? c->addrs->v4_bits : 64;
        char mask[16] = { 0 };

        for (unsigned i = 0; i < bits; i++)
                mask[i / 8] = (char) (mask[i / 8] | 0x80 >> i % 8);
        family_is(c, f);
        nft_load_payload(c->b, at, NFT_REG_1);
        nft_mask(c->b, mask, at->size);
        nft_is(c->b, v4 ? (const void *) &net4 : (const void *) &c->addrs->v6, at->size);
}

/* The source must be that of the link. A packet without a valid state would not be masqueraded. Refused are closed
 * addresses, and all of our subnets, also those that no sandbox has at the moment. */
static void add_from_sandbox(const struct context *c)
{
        size_t at;

        for (const struct family *f = families; f < families + ARRAY_SIZE(families); f++) {
                at = rule(c, FROM_SANDBOX);
                family_is(c, f);
                nft_load_meta(c->b, NFT_META_IIFNAME, NFT_REG_1);
                nft_load_payload(c->b, &f->source, NFT_REG_2);
                nft_is_not_in(c->b, f->sandboxes);
                nft_verdict(c->b, NF_DROP, NULL);
                nft_rule_end(c->b, at);
        }
        at = rule(c, FROM_SANDBOX);
        nft_load_fib_addrtype(c->b, NFT_REG_1);
        nft_is_not(c->b, &(uint32_t){ RTN_UNICAST }, sizeof(uint32_t));
        nft_verdict(c->b, NFT_GOTO, TO_HOST);
        nft_rule_end(c->b, at);
        at = rule(c, FROM_SANDBOX);
        nft_ct_is(c->b, NFT_CT_INVALID);
        nft_verdict(c->b, NF_DROP, NULL);
        nft_rule_end(c->b, at);
        for (const struct family *f = families; f < families + ARRAY_SIZE(families); f++) {
                add_closed(c, FROM_SANDBOX, f);
                at = rule(c, FROM_SANDBOX);
                is_ours(c, f, &f->destination);
                nft_verdict(c->b, NFT_GOTO, REFUSED);
                nft_rule_end(c->b, at);
        }
}

static void add_to_host(const struct context *c)
{
        static const struct nft_payload_at port_at = { NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2 };
        size_t at;

        at = rule(c, TO_HOST);
        nft_load_meta(c->b, NFT_META_L4PROTO, NFT_REG_1);
        nft_load_payload(c->b, &port_at, NFT_REG32_01);
        nft_is_in(c->b, SERVICES);
        nft_verdict(c->b, NF_ACCEPT, NULL);
        nft_rule_end(c->b, at);
        at = rule(c, TO_HOST);
        nft_verdict(c->b, NFT_GOTO, REFUSED);
        nft_rule_end(c->b, at);
}

/* Sandboxes of other installations have their own rules. Matches any name of the pattern "hu******-". */
static void add_other_sandboxes(const struct context *c, uint32_t key)
{
        static const char pattern[] = "hu\0\0\0\0\0\0-", mask[] = "\377\377\0\0\0\0\0\0\377";
        size_t at = rule(c, FORWARD);

        nft_load_meta(c->b, key, NFT_REG_1);
        nft_mask(c->b, mask, sizeof(mask) - 1);
        nft_is(c->b, pattern, sizeof(pattern) - 1);
        nft_verdict(c->b, NF_ACCEPT, NULL);
        nft_rule_end(c->b, at);
}

static void add_forward(const struct context *c)
{
        size_t at = rule(c, FORWARD);

        link_is(c, NFT_META_OIFNAME);
        nft_verdict(c->b, NFT_GOTO, TO_SANDBOX);
        nft_rule_end(c->b, at);
        add_lead(c, FORWARD, OUTWARD);
        add_other_sandboxes(c, NFT_META_IIFNAME);
        add_other_sandboxes(c, NFT_META_OIFNAME);

        at = rule(c, TO_SANDBOX);
        link_is(c, NFT_META_IIFNAME);
        nft_verdict(c->b, NFT_GOTO, REFUSED);
        nft_rule_end(c->b, at);
        at = rule(c, TO_SANDBOX);
        nft_ct_is(c->b, NFT_CT_ESTABLISHED | NFT_CT_RELATED);
        nft_verdict(c->b, NF_ACCEPT, NULL);
        nft_rule_end(c->b, at);
        at = rule(c, TO_SANDBOX);
        nft_verdict(c->b, NF_DROP, NULL);
        nft_rule_end(c->b, at);

        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                add_closed(c, OUTWARD, &families[i]);
        at = rule(c, OUTWARD);
        nft_verdict(c->b, NF_ACCEPT, NULL);
        nft_rule_end(c->b, at);
}

static void add_masquerade(const struct context *c, const struct family *f)
{
        size_t at = rule(c, NAT);

        is_ours(c, f, &f->source);
        nft_load_meta(c->b, NFT_META_OIFNAME, NFT_REG_1);
        nft_is_not(c->b, c->addrs->prefix, strlen(c->addrs->prefix));
        nft_masquerade(c->b);
        nft_rule_end(c->b, at);
}

/* --- sets --- */

/* The end of an interval is the first address after the subnet, if there is one. */
static void add_interval(struct netlink_batch *b, int family, const char *first, unsigned bits)
{
        size_t n = family == AF_INET ? 4 : 16;
        unsigned carry = 1U << (7 - (bits - 1) % 8);
        uint8_t addr[16];

        ASSERT(inet_pton(family, first, addr) == 1);
        nft_element(b, addr, n);
        for (int i = (int) (bits - 1) / 8; i >= 0 && carry > 0; i--) {
                carry += addr[i];
                addr[i] = (uint8_t) carry;
                carry >>= 8;
        }
        if (carry == 0)
                nft_element_end(b, addr, n);
}

static void add_closed_elements(const struct context *c)
{
        const struct nft_elements e4 = { c->table, CLOSED4, false };
        const struct nft_elements e6 = { c->table, CLOSED6, false };
        size_t at = nft_elements_begin(c->b, &e4);

        for (size_t i = 0; i < ARRAY_SIZE(closed4); i++)
                add_interval(c->b, AF_INET, closed4[i].first, closed4[i].bits);
        nft_elements_end(c->b, at);
        at = nft_elements_begin(c->b, &e6);
        for (size_t i = 0; i < ARRAY_SIZE(closed6); i++)
                add_interval(c->b, AF_INET6, closed6[i].first, closed6[i].bits);
        nft_elements_end(c->b, at);
}

static void add_services(const struct context *c, const struct netrules *r)
{
        const struct nft_elements e = { c->table, SERVICES, false };
        size_t at;

        if (r->n_services == 0)
                return;
        at = nft_elements_begin(c->b, &e);
        for (size_t i = 0; i < r->n_services; i++) {
                uint16_t port = htons(r->services[i].port);
                uint8_t key[8] = { r->services[i].protocol };

                memcpy(key + 4, &port, sizeof(port));
                nft_element(c->b, key, sizeof(key));
        }
        nft_elements_end(c->b, at);
}

bool netrules_are_closed_to(const struct link_addr *a)
{
        const struct closed *list = a->family == AF_INET ? closed4 : closed6;
        const size_t n = a->family == AF_INET ? ARRAY_SIZE(closed4) : ARRAY_SIZE(closed6);
        const uint8_t *bytes = (const uint8_t *) &a->v6;

        for (size_t i = 0; i < n; i++) {
                uint8_t first[16];
                unsigned bit = 0;

                ASSERT(inet_pton(a->family, list[i].first, first) == 1);
                while (bit < list[i].bits && !((first[bit / 8] ^ bytes[bit / 8]) & 0x80 >> bit % 8))
                        bit++;
                if (bit == list[i].bits)
                        return true;
        }
        return false;
}

/* --- the table --- */

int netrules_install(struct netlink *nl, struct netlink_batch *b, const struct netrules *r)
{
        struct context c = { .b = b, .addrs = r->addrs };

        if (r->n_services > NETRULES_SERVICES_MAX)
                return -E2BIG;
        table_name(r->addrs, c.table);
        nft_begin(b);
        nft_add_table(b, c.table); /* so that the deletion does not fail */
        nft_delete_table(b, c.table);
        nft_add_table(b, c.table);
        for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
                struct nft_chain chain = chains[i];

                if (r->only_ours && chain.type && chain.hook == NF_INET_FORWARD)
                        chain.policy = NF_DROP;
                nft_add_chain(b, c.table, &chain);
        }
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                nft_add_set(b, c.table, &sets[i]);
        add_closed_elements(&c);
        add_services(&c, r);
        add_refused(&c);
        add_lead(&c, ARRIVING, FROM_SANDBOX);
        add_lead(&c, INPUT, TO_HOST);
        add_from_sandbox(&c);
        add_to_host(&c);
        add_forward(&c);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                add_masquerade(&c, &families[i]);
        nft_end(b);
        return netlink_send(nl, b, NULL);
}

int netrules_are_only_ours(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
{
        char table[NFT_NAME_SIZE];
        int policy;

        table_name(s, table);
        policy = nft_get_policy(nl, b, table, FORWARD);
        return policy < 0 ? policy : policy == NF_DROP;
}

int netrules_remove(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s)
{
        char table[NFT_NAME_SIZE];

        table_name(s, table);
        nft_begin(b);
        nft_add_table(b, table);
        nft_delete_table(b, table);
        nft_end(b);
        return netlink_send(nl, b, NULL);
}

/* --- sandboxes --- */

struct sandbox_key {
        char link[IFNAMSIZ];
        uint8_t addr[16];
};

static_assert(sizeof(struct sandbox_key) == IFNAMSIZ + 16, "no holes");

int netrules_change(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *s,
                    const struct netrules_change *c)
{
        char table[NFT_NAME_SIZE];

        if (c->n == 0 || c->n > NETRULES_CHANGE_MAX)
                return c->n == 0 ? 0 : -E2BIG;
        table_name(s, table);
        nft_begin(b);
        for (const struct family *f = families; f < families + ARRAY_SIZE(families); f++) {
                const struct nft_elements e = { table, f->sandboxes, c->remove };
                size_t at = nft_elements_begin(b, &e), n = f->source.size;

                for (size_t i = 0; i < c->n; i++) {
                        struct sandbox_key key = { 0 };
                        struct link_addr addr;

                        addr_plan_link_name(s, c->indices[i], key.link);
                        if (f->number == NFPROTO_IPV4)
                                addr_plan_v4(s, c->indices[i], ADDR_PLAN_SANDBOX, &addr);
                        else
                                addr_plan_v6(s, c->indices[i], ADDR_PLAN_SANDBOX, &addr);
                        memcpy(key.addr, &addr.v6, n);
                        nft_element(b, &key, IFNAMSIZ + n);
                }
                nft_elements_end(b, at);
        }
        nft_end(b);
        return netlink_send(nl, b, NULL);
}
