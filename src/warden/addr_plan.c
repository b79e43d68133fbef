/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/addr_plan.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/base.h"
#include "base/sha256.h"

#define TAG_BYTES 3

/* "ADDRESS/BITS" */
static int parse_subnet(struct str text, int family, void *ret_addr, unsigned *ret_bits)
{
        char z[INET6_ADDRSTRLEN];
        struct str addr;
        uint64_t bits;
        int r;

        if (!str_split(&text, '/', &addr) || addr.n == 0 || addr.n >= sizeof(z))
                return -EINVAL;
        memcpy(z, addr.p, addr.n);
        z[addr.n] = '\0';
        r = parse_u64_max(text, 128, &bits);
        if (r < 0 || inet_pton(family, z, ret_addr) != 1)
                return -EINVAL;
        *ret_bits = (unsigned) bits;
        return 0;
}

static bool is_private(uint32_t net, unsigned bits)
{
        static const struct {
                uint32_t net;
                unsigned bits;
        } ranges[] = {
                { 0x0a000000, 8 },  /* 10.0.0.0 */
                { 0xac100000, 12 }, /* 172.16.0.0 */
                { 0xc0a80000, 16 }, /* 192.168.0.0 */
                { 0x64400000, 10 }, /* 100.64.0.0 */
        };

        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                if (bits >= ranges[i].bits && (net ^ ranges[i].net) >> (32 - ranges[i].bits) == 0)
                        return true;
        return false;
}

static int set_v4(struct addr_plan *s, struct str text)
{
        struct in_addr net;
        unsigned bits;
        int r = parse_subnet(text.p ? text : STR(ADDR_PLAN_V4_DEFAULT), AF_INET, &net, &bits);

        if (r < 0 || bits < 8 || bits > 28 || ntohl(net.s_addr) << bits != 0)
                return -EINVAL;
        if (!is_private(ntohl(net.s_addr), bits))
                return -ERANGE;
        s->v4 = ntohl(net.s_addr);
        s->v4_bits = bits;
        /* Without the first and the last pair: they contain the network and the broadcast address of
         * the subnet, which some programs treat specially. */
        s->capacity = MIN_OF((1U << (31 - bits)) - 2, (uint32_t) ADDR_PLAN_INDEX_MAX);
        return 0;
}

static int set_v6(struct addr_plan *s, struct str text, const uint8_t *digest)
{
        unsigned bits;
        int r;

        if (!text.p) {
                s->v6.s6_addr[0] = 0xfd;
                memcpy(s->v6.s6_addr + 1, digest + TAG_BYTES, 5);
                return 0;
        }
        r = parse_subnet(text, AF_INET6, &s->v6, &bits);
        if (r < 0 || bits != 64 || memcmp(s->v6.s6_addr + 8, (char[8]){ 0 }, 8) != 0)
                return -EINVAL;
        return (s->v6.s6_addr[0] & 0xfe) == 0xfc ? 0 : -ERANGE;
}

int addr_plan_init(struct addr_plan *s, const struct addr_plan_config *c)
{
        uint8_t digest[SHA256_SIZE];
        char tag[2 * TAG_BYTES + 1] = "";
        int r;

        if (c->installation.n == 0)
                return -EINVAL;
        *s = (struct addr_plan){ 0 };
        sha256(c->installation.p, c->installation.n, digest);
        hex_encode(tag, digest, TAG_BYTES);
        (void) snprintf(s->prefix, sizeof(s->prefix), "hu%.6s-", tag);
        memcpy(&s->group, digest + 8, sizeof(s->group));
        s->group = (s->group & 0x3fffffff)
                   | 0x40000000; /* far from the numbers that administrators use */
        r = set_v4(s, c->v4);
        return r < 0 ? r : set_v6(s, c->v6, digest);
}

void addr_plan_link_name(const struct addr_plan *s, uint32_t index, char ret[static IFNAMSIZ])
{
        ASSERT(index < s->capacity);
        (void) snprintf(ret, IFNAMSIZ, "%.9s%u", s->prefix, index % 100000);
}

int64_t addr_plan_index(const struct addr_plan *s, const char *name)
{
        struct str text = str_from(name), prefix = str_from(s->prefix);
        uint64_t index;
        char again[IFNAMSIZ];

        if (!str_starts_with(text, prefix)
            || parse_u64_max(str_skip(text, prefix.n), s->capacity - 1, &index) < 0)
                return -EINVAL;
        addr_plan_link_name(s, (uint32_t) index, again); /* not "007" */
        return str_eq(text, str_from(again)) ? (int64_t) index : -EINVAL;
}

static uint32_t place(uint32_t index, enum addr_plan_side side)
{
        return 2 * (index + 1) + (side == ADDR_PLAN_SANDBOX);
}

void addr_plan_v4(const struct addr_plan *s, uint32_t index, enum addr_plan_side side,
                  struct link_addr *ret)
{
        *ret = (struct link_addr){ .family = AF_INET };
        ret->v4.s_addr = htonl(s->v4 + place(index, side));
}

void addr_plan_v6(const struct addr_plan *s, uint32_t index, enum addr_plan_side side,
                  struct link_addr *ret)
{
        uint32_t low = htonl(place(index, side));

        *ret = (struct link_addr){ .family = AF_INET6, .v6 = s->v6 };
        memcpy(ret->v6.s6_addr + 12, &low, sizeof(low));
}

void addr_plan_mac(uint32_t index, enum addr_plan_side side, uint8_t ret[static LINK_MAC_SIZE])
{
        uint32_t low = htonl(place(index, side));

        memcpy(ret, (uint8_t[]){ 0x02, 0x68 }, 2);
        memcpy(ret + 2, &low, sizeof(low));
}

int64_t addr_plan_index_of_addr(const struct addr_plan *s, const struct link_addr *a)
{
        uint32_t low = 0;
        int64_t index;

        if (a->family == AF_INET ? (ntohl(a->v4.s_addr) ^ s->v4) >> (32 - s->v4_bits) != 0
                                 : memcmp(&a->v6, &s->v6, 8) != 0)
                return -EINVAL;
        if (a->family == AF_INET)
                low = ntohl(a->v4.s_addr) - s->v4;
        else if (memcmp(a->v6.s6_addr + 8, (char[4]){ 0 }, 4) == 0)
                low = (uint32_t) a->v6.s6_addr[12] << 24 | (uint32_t) a->v6.s6_addr[13] << 16
                      | (uint32_t) a->v6.s6_addr[14] << 8 | a->v6.s6_addr[15];
        index = (int64_t) (low / 2) - 1;
        return index >= 0 && index < s->capacity ? index : -EINVAL;
}
