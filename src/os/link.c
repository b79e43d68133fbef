/* SPDX-License-Identifier: Apache-2.0 */
#include "os/link.h"

#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"

size_t link_addr_size(const struct link_addr *a)
{
        return a->family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static const void *bytes_of(const struct link_addr *a)
{
        return a->family == AF_INET6 ? (const void *) &a->v6 : (const void *) &a->v4;
}

void link_add_veth(struct netlink_batch *b, const struct link_veth *v)
{
        const struct netlink_head head = { RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, false };
        const struct ifinfomsg info = { .ifi_index = v->index };
        size_t linkinfo, data, peer;

        netlink_begin(b, &head, &info, sizeof(info));
        netlink_add_str(b, IFLA_IFNAME, v->name);
        if (v->mac)
                netlink_add(b, IFLA_ADDRESS, v->mac, LINK_MAC_SIZE);
        linkinfo = netlink_nest(b, IFLA_LINKINFO);
        netlink_add_str(b, IFLA_INFO_KIND, "veth");
        data = netlink_nest(b, IFLA_INFO_DATA);
        peer = netlink_nest(b, VETH_INFO_PEER);
        (void) !netlink_reserve(b, sizeof(struct ifinfomsg));
        netlink_add_str(b, IFLA_IFNAME, v->peer);
        if (v->peer_mac)
                netlink_add(b, IFLA_ADDRESS, v->peer_mac, LINK_MAC_SIZE);
        netlink_add_u32(b, IFLA_NET_NS_FD, (uint32_t) v->peer_netns);
        netlink_nest_end(b, peer);
        netlink_nest_end(b, data);
        netlink_nest_end(b, linkinfo);
}

static void set_link(struct netlink_batch *b, int index, unsigned flags)
{
        const struct netlink_head head = { RTM_SETLINK, 0, false };
        const struct ifinfomsg info = { .ifi_index = index,
                                        .ifi_flags = flags,
                                        .ifi_change = flags };

        netlink_begin(b, &head, &info, sizeof(info));
}

void link_set_up(struct netlink_batch *b, int index)
{
        set_link(b, index, IFF_UP);
}

void link_set_addr_gen_none(struct netlink_batch *b, int index)
{
        size_t spec, inet6;

        set_link(b, index, 0);
        spec = netlink_nest(b, IFLA_AF_SPEC);
        inet6 = netlink_nest(b, AF_INET6);
        netlink_add_u8(b, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
        netlink_nest_end(b, inet6);
        netlink_nest_end(b, spec);
}

void link_set_group(struct netlink_batch *b, int index, uint32_t group)
{
        set_link(b, index, 0);
        netlink_add_u32(b, IFLA_GROUP, group);
}

void link_add_address(struct netlink_batch *b, int index, const struct link_addr *a,
                      unsigned prefix)
{
        const struct netlink_head head = { RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, false };
        const struct ifaddrmsg m = { .ifa_family = (uint8_t) a->family,
                                     .ifa_prefixlen = (uint8_t) prefix,
                                     .ifa_flags = a->family == AF_INET6 ? IFA_F_NODAD : 0,
                                     .ifa_index = (uint32_t) index };

        netlink_begin(b, &head, &m, sizeof(m));
        netlink_add(b, IFA_LOCAL, bytes_of(a), link_addr_size(a));
        netlink_add(b, IFA_ADDRESS, bytes_of(a), link_addr_size(a));
}

void link_add_neighbour(struct netlink_batch *b, int index, const struct link_addr *a,
                        const uint8_t *mac)
{
        const struct netlink_head head = { RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, false };
        const struct ndmsg m = { .ndm_family = (uint8_t) a->family,
                                 .ndm_ifindex = index,
                                 .ndm_state = NUD_PERMANENT };

        netlink_begin(b, &head, &m, sizeof(m));
        netlink_add(b, NDA_DST, bytes_of(a), link_addr_size(a));
        netlink_add(b, NDA_LLADDR, mac, LINK_MAC_SIZE);
}

void link_resolve_nothing(struct netlink_batch *b, int index, int family)
{
        const struct netlink_head head = { RTM_SETNEIGHTBL, 0, false };
        const struct ndtmsg m = { .ndtm_family = (uint8_t) family };
        size_t parms;

        netlink_begin(b, &head, &m, sizeof(m));
        netlink_add_str(b, NDTA_NAME, family == AF_INET6 ? "ndisc_cache" : "arp_cache");
        parms = netlink_nest(b, NDTA_PARMS);
        netlink_add_u32(b, NDTPA_IFINDEX, (uint32_t) index);
        netlink_add_u32(b, NDTPA_APP_PROBES, 0);
        netlink_add_u32(b, NDTPA_MCAST_PROBES, 0);
        netlink_nest_end(b, parms);
}

void link_add_default_route(struct netlink_batch *b, int index, const struct link_addr *gateway)
{
        const struct netlink_head head = { RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, false };
        const struct rtmsg m = { .rtm_family = (uint8_t) gateway->family,
                                 .rtm_table = RT_TABLE_MAIN,
                                 .rtm_protocol = RTPROT_STATIC,
                                 .rtm_scope = RT_SCOPE_UNIVERSE,
                                 .rtm_type = RTN_UNICAST };

        netlink_begin(b, &head, &m, sizeof(m));
        netlink_add(b, RTA_GATEWAY, bytes_of(gateway), link_addr_size(gateway));
        netlink_add_u32(b, RTA_OIF, (uint32_t) index);
}

void link_delete_group(struct netlink_batch *b, uint32_t group)
{
        const struct netlink_head head = { RTM_DELLINK, 0, false };
        const struct ifinfomsg info = { 0 };

        netlink_begin(b, &head, &info, sizeof(info));
        netlink_add_u32(b, IFLA_GROUP, group);
}

static int name_request(struct ifreq *req, const char *name)
{
        *req = (struct ifreq){ 0 };
        if (strlen(name) >= sizeof(req->ifr_name))
                return -EINVAL;
        memcpy(req->ifr_name, name, strlen(name));
        return 0;
}

void link_update_carrier(const struct netlink *nl, const char *name)
{
        struct ethtool_value value = { .cmd = ETHTOOL_GLINK };
        struct ifreq req;

        if (name_request(&req, name) < 0)
                return;
        req.ifr_data = (void *) &value;
        (void) !ioctl(nl->fd, SIOCETHTOOL, &req);
}

/* Only bound sockets receive events. */
int link_watch_addresses(int fd)
{
        const struct sockaddr_nl me = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV6_ROUTE };

        return bind(fd, (const struct sockaddr *) &me, sizeof(me)) < 0 ? -errno : 0;
}

/* Each event is a message of its own. */
int link_next_address(int fd, int *ret_link)
{
        _Alignas(struct nlmsghdr) char event[4 * KiB];
        const struct nlmsghdr *h = (const void *) event;
        const struct rtmsg *m = NLMSG_DATA(h);
        const void *link;
        ssize_t n;

        for (;;) {
                n = recv(fd, event, sizeof(event), MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                if ((size_t) n < NLMSG_LENGTH(sizeof(*m)) || h->nlmsg_len > (size_t) n
                    || h->nlmsg_type != RTM_NEWROUTE || m->rtm_type != RTN_LOCAL)
                        continue;
                link = netlink_find(h, sizeof(*m), RTA_OIF, sizeof(*ret_link));
                if (!link)
                        continue;
                memcpy(ret_link, link, sizeof(*ret_link));
                return 1;
        }
}

int link_index(const struct netlink *nl, const char *name)
{
        struct ifreq req;

        if (name_request(&req, name) < 0)
                return -EINVAL;
        return ioctl(nl->fd, SIOCGIFINDEX, &req) < 0 ? -errno : req.ifr_ifindex;
}

/* --- lists --- */

struct link_list {
        const char *prefix;
        link_each_fn *fn;
        void *data;
};

static int each(void *data, const struct nlmsghdr *h)
{
        const struct link_list *w = data;
        const struct ifinfomsg *info = NLMSG_DATA(h);
        const char *name;

        if (h->nlmsg_type != RTM_NEWLINK || h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
                return 0;
        name = netlink_find(h, sizeof(*info), IFLA_IFNAME, 1);
        if (!name || strncmp(name, w->prefix, strlen(w->prefix)) != 0)
                return 0;
        return w->fn(w->data, name, info->ifi_index);
}

int link_list(struct netlink *nl, struct netlink_batch *b, const char *prefix, link_each_fn *fn,
              void *data)
{
        const struct netlink_head head = { RTM_GETLINK, NLM_F_DUMP, true };
        const struct ifinfomsg info = { 0 };
        struct link_list w = { prefix, fn, data };

        netlink_reset(b);
        netlink_begin(b, &head, &info, sizeof(info));
        netlink_add_u32(b, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        return netlink_list(nl, b, each, &w);
}

struct address_list {
        link_address_fn *fn;
        void *data;
};

static int each_address(void *data, const struct nlmsghdr *h)
{
        const struct address_list *w = data;
        const struct ifaddrmsg *m = NLMSG_DATA(h);
        struct link_addr a = { 0 };
        const void *p;

        if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m))
            || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
                return 0;
        a.family = m->ifa_family;
        p = netlink_find(h, sizeof(*m), IFA_LOCAL, link_addr_size(&a));
        if (!p)
                p = netlink_find(h, sizeof(*m), IFA_ADDRESS, link_addr_size(&a));
        if (!p)
                return 0;
        memcpy(&a.v6, p, link_addr_size(&a));
        return w->fn(w->data, &a, (int) m->ifa_index);
}

int link_list_addresses(struct netlink *nl, struct netlink_batch *b, link_address_fn *fn,
                        void *data)
{
        const struct netlink_head head = { RTM_GETADDR, NLM_F_DUMP, true };
        const struct ifaddrmsg m = { .ifa_family = AF_UNSPEC };
        struct address_list w = { fn, data };

        netlink_reset(b);
        netlink_begin(b, &head, &m, sizeof(m));
        return netlink_list(nl, b, each_address, &w);
}

struct route_search {
        link_route_fn *fn;
        void *data;
};

static int each_route(void *data, const struct nlmsghdr *h)
{
        const struct route_search *s = data;
        const struct rtmsg *m = NLMSG_DATA(h);
        struct link_route r = { 0 };
        const void *p;

        if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m))
            || (m->rtm_family != AF_INET && m->rtm_family != AF_INET6)
            || (m->rtm_flags & RTM_F_CLONED))
                return 0;
        r.to.family = m->rtm_family;
        r.bits = m->rtm_dst_len;
        p = netlink_find(h, sizeof(*m), RTA_DST, link_addr_size(&r.to));
        if (p)
                memcpy(&r.to.v6, p, link_addr_size(&r.to));
        p = netlink_find(h, sizeof(*m), RTA_OIF, sizeof(r.link));
        if (p)
                memcpy(&r.link, p, sizeof(r.link));
        r.has_gateway = netlink_find(h, sizeof(*m), RTA_GATEWAY, 1)
                        || netlink_find(h, sizeof(*m), RTA_VIA, 1)
                        || netlink_find(h, sizeof(*m), RTA_MULTIPATH, 1)
                        || m->rtm_type == RTN_BLACKHOLE || m->rtm_type == RTN_UNREACHABLE
                        || m->rtm_type == RTN_PROHIBIT || m->rtm_type == RTN_THROW;
        return s->fn(s->data, &r);
}

int link_list_routes(struct netlink *nl, struct netlink_batch *b, link_route_fn *fn, void *data)
{
        const struct netlink_head head = { RTM_GETROUTE, NLM_F_DUMP, true };
        const struct rtmsg m = { .rtm_family = AF_UNSPEC };
        struct route_search s = { fn, data };

        netlink_reset(b);
        netlink_begin(b, &head, &m, sizeof(m));
        return netlink_list(nl, b, each_route, &s);
}
