/* SPDX-License-Identifier: Apache-2.0 */
#include "os/conntrack.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <string.h>

#include "base/base.h"

#define TUPLES_MAX    (256 * KiB)
#define CROWDED_MAX   256
#define ROUNDS_MAX    1024
#define PER_BATCH     (NETLINK_MESSAGES_MAX - 1)
#define FILTER_SOURCE 1 /* of CTA_FILTER_ORIG_FLAGS; not in the kernel's headers */

/* Matches: tuples as they came, each after its family; and sources that had too many. */
struct matches {
        conntrack_match_fn *match;
        void *data;
        struct buf tuples;
        struct link_addr crowded[CROWDED_MAX];
        size_t n_crowded;
};

/* --- finding --- */

static bool source_of(const struct nlattr *tuple, int family, struct link_addr *ret)
{
        const struct nlattr *ip = netlink_find_nested(tuple, CTA_TUPLE_IP);
        const struct nlattr *a =
                netlink_find_nested(ip, family == AF_INET ? CTA_IP_V4_SRC : CTA_IP_V6_SRC);

        *ret = (struct link_addr){ .family = family };
        if (!a || a->nla_len != NLA_HDRLEN + link_addr_size(ret))
                return false;
        memcpy(&ret->v6, (const char *) a + NLA_HDRLEN, link_addr_size(ret));
        return true;
}

static bool is_crowded(const struct matches *p, const struct link_addr *a)
{
        for (size_t i = 0; i < p->n_crowded; i++)
                if (p->crowded[i].family == a->family
                    && memcmp(&p->crowded[i].v6, &a->v6, link_addr_size(a)) == 0)
                        return true;
        return false;
}

static int match_one(void *data, const struct nlmsghdr *h)
{
        struct matches *p = data;
        const struct nfgenmsg *m = NLMSG_DATA(h);
        const size_t head = NLMSG_LENGTH(sizeof(*m));
        const struct nlattr *tuple;
        struct link_addr source;

        if (h->nlmsg_len < head || (m->nfgen_family != AF_INET && m->nfgen_family != AF_INET6))
                return 0;
        tuple = netlink_find_attr((const char *) h + head, h->nlmsg_len - head, CTA_TUPLE_ORIG);
        if (!source_of(tuple, m->nfgen_family, &source) || !p->match(p->data, &source)
            || is_crowded(p, &source))
                return 0;
        if (p->tuples.n + 4 + NLA_ALIGN(tuple->nla_len) > TUPLES_MAX) {
                if (p->n_crowded == CROWDED_MAX)
                        return -E2BIG;
                p->crowded[p->n_crowded++] = source;
                return 0;
        }
        buf_add(&p->tuples, (char[4]){ (char) m->nfgen_family }, 4);
        buf_add(&p->tuples, (const char *) tuple, NLA_ALIGN(tuple->nla_len));
        return 0;
}

/* --- deleting --- */

static void begin(struct netlink_batch *b, uint16_t type, uint16_t flags, int family)
{
        const struct netlink_head head = { NFNL_SUBSYS_CTNETLINK << 8 | type, flags,
                                           type == IPCTNL_MSG_CT_GET };
        /* With version 0 the kernel ignores the family. */
        const struct nfgenmsg m = { .nfgen_family = (uint8_t) family, .version = 1 };

        netlink_begin(b, &head, &m, sizeof(m));
}

/* One that has ended meanwhile is fine. */
static int send_deletes(struct netlink *nl, struct netlink_batch *b)
{
        int r = b->messages > 0 ? netlink_send(nl, b, NULL) : 0;

        return r == -ENOENT ? 0 : r;
}

static int delete_tuples(struct netlink *nl, struct netlink_batch *b, struct str tuples)
{
        int r = 0;

        netlink_reset(b);
        while (r == 0 && tuples.n > 4) {
                struct nlattr a;

                memcpy(&a, tuples.p + 4, sizeof(a));
                begin(b, IPCTNL_MSG_CT_DELETE, 0, tuples.p[0]);
                netlink_add(b, CTA_TUPLE_ORIG | NLA_F_NESTED, tuples.p + 4 + NLA_HDRLEN,
                            a.nla_len - NLA_HDRLEN);
                tuples = str_skip(tuples, 4 + NLA_ALIGN(a.nla_len));
                if (b->messages == PER_BATCH)
                        r = send_deletes(nl, b);
        }
        return r == 0 ? send_deletes(nl, b) : r;
}

static int delete_source(struct netlink *nl, struct netlink_batch *b, const struct link_addr *a)
{
        size_t filter, tuple, ip;

        netlink_reset(b);
        begin(b, IPCTNL_MSG_CT_DELETE, 0, a->family);
        filter = netlink_nest(b, CTA_FILTER);
        netlink_add_u32(b, CTA_FILTER_ORIG_FLAGS, FILTER_SOURCE);
        netlink_add_u32(b, CTA_FILTER_REPLY_FLAGS, 0);
        netlink_nest_end(b, filter);
        tuple = netlink_nest(b, CTA_TUPLE_ORIG);
        ip = netlink_nest(b, CTA_TUPLE_IP);
        netlink_add(b, a->family == AF_INET ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, &a->v6,
                    link_addr_size(a));
        netlink_nest_end(b, ip);
        netlink_nest_end(b, tuple);
        return netlink_send(nl, b, NULL);
}

/* A dump that was interrupted by a change may have duplicates, but lacks no entry that existed all the
 * time. */
static int delete_round(struct netlink *nl, struct netlink_batch *b, struct matches *p)
{
        int r;

        buf_reset(&p->tuples);
        p->n_crowded = 0;
        netlink_reset(b);
        begin(b, IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC);
        r = netlink_list(nl, b, match_one, p);
        return r == 0 || r == -EAGAIN ? delete_tuples(nl, b, buf_str(&p->tuples)) : r;
}

/* Kernels before 6.11 refuse to delete by source. There, what did not fit is left for the next round. */
int conntrack_delete(struct netlink *nl, struct netlink_batch *b, conntrack_match_fn *match,
                     void *data)
{
        struct matches p = { .match = match, .data = data };
        int r = 0;

        buf_init(&p.tuples, TUPLES_MAX);
        for (int round = 0; round < ROUNDS_MAX; round++) {
                r = delete_round(nl, b, &p);
                for (size_t i = 0; r == 0 && i < p.n_crowded; i++)
                        r = delete_source(nl, b, &p.crowded[i]);
                if (r != -EINVAL || p.n_crowded == 0)
                        break;
        }
        buf_done(&p.tuples);
        return r;
}
