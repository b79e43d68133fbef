/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_NET_WORLD_H
#define HUTCH_TESTS_LIB_NET_WORLD_H

/*
 * A small world of network namespaces: a host and the outside, joined by a link.
 *
 *         host  up0  192.0.2.1, 2001:db8::1 ─── 192.0.2.2, 2001:db8::2  up0  outside
 *
 * The host is the namespace that the calling child is in (apart_run with CLONE_NEWNET). Each sends
 * what it does not know to the other, so that nothing but rules can be in the way of a packet, and the
 * outside has the metadata address of clouds.
 *
 * To be used inside of apart_run: all return 0 or a negative errno.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/icmp.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <poll.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "os/ip_forward.h"
#include "os/link.h"
#include "os/netns.h"
#include "tests/lib/apart.h"

#define WORLD_HOST4     "192.0.2.1"
#define WORLD_OUTSIDE4  "192.0.2.2"
#define WORLD_HOST6     "2001:db8::1"
#define WORLD_OUTSIDE6  "2001:db8::2"
#define WORLD_METADATA4 "169.254.169.254"
#define WORLD_METADATA6 "fd00:ec2::254"
#define WORLD_LINK      "up0"
#define WORLD_OUT_INDEX 20

struct net_world {
        int host, outside;    /* namespaces */
        struct netlink route; /* of the host */
        struct netlink_batch batch;
};

static inline struct link_addr world_addr(const char *text)
{
        struct link_addr a = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };

        if (inet_pton(a.family, text, &a.v6) != 1)
                abort();
        return a;
}

static inline const char *world_text(const struct link_addr *a, char *buf)
{
        return inet_ntop(a->family, &a->v6, buf, INET6_ADDRSTRLEN);
}

static inline void world_delete_link(struct netlink_batch *b, int index)
{
        const struct netlink_head head = { RTM_DELLINK, 0, false };
        const struct ifinfomsg info = { .ifi_index = index };

        netlink_begin(b, &head, &info, sizeof(info));
}

static inline void world_address(struct netlink_batch *b, int link, const char *text, unsigned bits)
{
        const struct link_addr a = world_addr(text);

        link_add_address(b, link, &a, bits);
}

static inline void world_default(struct netlink_batch *b, int link, const char *text)
{
        const struct link_addr a = world_addr(text);

        link_add_default_route(b, link, &a);
}

static inline int world_outside(struct net_world *w)
{
        const struct link_veth veth = {
                WORLD_LINK, WORLD_OUT_INDEX, WORLD_LINK, w->host, NULL, NULL
        };
        struct netlink_batch *b = &w->batch;
        struct netlink nl;
        int r = netlink_adopt(netns_socket(w->outside, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), &nl);

        if (r < 0)
                return r;
        netlink_reset(b);
        link_add_veth(b, &veth);
        link_set_up(b, WORLD_OUT_INDEX);
        world_address(b, WORLD_OUT_INDEX, WORLD_OUTSIDE4, 24);
        world_address(b, WORLD_OUT_INDEX, WORLD_OUTSIDE6, 64);
        world_address(b, WORLD_OUT_INDEX, WORLD_METADATA4, 32);
        world_address(b, WORLD_OUT_INDEX, WORLD_METADATA6, 128);
        world_default(b, WORLD_OUT_INDEX, WORLD_HOST4);
        world_default(b, WORLD_OUT_INDEX, WORLD_HOST6);
        r = netlink_send(&nl, b, NULL);
        netlink_close(&nl);
        return r;
}

static inline int world_host(struct net_world *w)
{
        struct netlink_batch *b = &w->batch;
        int link = link_index(&w->route, WORLD_LINK);

        netlink_reset(b);
        link_set_up(b, 1);
        link_set_up(b, link);
        world_address(b, link, WORLD_HOST4, 24);
        world_address(b, link, WORLD_HOST6, 64);
        world_default(b, link, WORLD_OUTSIDE4);
        world_default(b, link, WORLD_OUTSIDE6);
        return link < 0 ? link : netlink_send(&w->route, b, NULL);
}

/* The kernel says no a few times, and then once a second. */
static inline int world_talkative(void)
{
        static const char *const paths[] = { "/proc/sys/net/ipv4/icmp_ratelimit",
                                             "/proc/sys/net/ipv6/icmp/ratelimit" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                scoped(fd_closep) int fd = open(paths[i], O_WRONLY | O_CLOEXEC);

                if (fd < 0 || write(fd, "0", 1) != 1)
                        return -errno;
        }
        return 0;
}

/* Waits until the kernel has reported so many addresses: from then on no packet is lost. */
static inline int world_settle(int events, unsigned addresses)
{
        while (addresses > 0) {
                struct pollfd p = { events, POLLIN, 0 };
                int link, r = link_next_address(events, &link);

                if (r < 0)
                        return r;
                addresses -= r > 0;
                if (r == 0 && poll(&p, 1, (int) check_timeout(3000)) <= 0)
                        return -ETIMEDOUT;
        }
        return 0;
}

static inline int world_join(struct net_world *w)
{
        scoped(fd_closep) int here = netns_socket(w->host, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        scoped(fd_closep) int there = netns_socket(w->outside, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        int r = link_watch_addresses(here);

        if (r == 0)
                r = link_watch_addresses(there);
        if (r == 0)
                r = world_outside(w);
        if (r == 0)
                r = world_host(w);
        link_update_carrier(&(struct netlink){ there, 0 }, WORLD_LINK);
        if (r == 0)
                r = world_settle(here, 2); /* its loopback is new as well */
        return r == 0 ? world_settle(there, 2) : r;
}

static inline int net_world_open(struct net_world *w)
{
        int r;

        w->host = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        r = world_talkative();
        if (r == 0) /* a new namespace has it from the first one of the host */
                r = ip_forward_disable(AF_INET);
        if (r == 0)
                r = ip_forward_disable(AF_INET6);
        if (r == 0)
                r = netns_make(&w->outside);
        if (r == 0)
                r = netlink_open(NETLINK_ROUTE, &w->route);
        return r < 0 ? r : world_join(w);
}

/* --- attempts --- */

enum world_how { WORLD_TCP, WORLD_UDP, WORLD_PING };

struct world_attempt {
        enum world_how how;
        int from, to;       /* namespaces */
        const char *addr;   /* of `to` */
        const char *source; /* of `from`; NULL: whichever */
        const char *seen;   /* as which the other side sees us; NULL: whichever */
        int timeout_ms;     /* milliseconds; 0: enough for a second attempt of the kernel */
};

#define WORLD_PORT 4321

struct world_sockaddr {
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        };
        socklen_t n;
};

static inline struct world_sockaddr world_sockaddr(const char *text, uint16_t port)
{
        const struct link_addr a = world_addr(text);
        struct world_sockaddr s = { .n = sizeof(s.v4) };

        if (a.family == AF_INET) {
                s.v4 = (struct sockaddr_in){ AF_INET, htons(port), a.v4, { 0 } };
                return s;
        }
        s.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
                                      .sin6_port = htons(port),
                                      .sin6_addr = a.v6 };
        s.n = sizeof(s.v6);
        return s;
}

/* The socket's own error while it waits for what should come. */
static inline int world_wait(int fd, short events, int timeout_ms)
{
        struct pollfd p = { fd, events, 0 };
        int n = poll(&p, 1, timeout_ms ? timeout_ms : (int) check_timeout(3000)), error = 0;
        socklen_t size = sizeof(error);

        if (n <= 0)
                return n < 0 ? -errno : -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                return -errno;
        return -error;
}

static inline int world_seen(const struct world_sockaddr *peer, const char *seen)
{
        struct world_sockaddr s;

        if (!seen)
                return 0;
        s = world_sockaddr(seen, 0);
        if (s.any.sa_family == AF_INET)
                return s.v4.sin_addr.s_addr == peer->v4.sin_addr.s_addr ? 0 : -EXDEV;
        return memcmp(&s.v6.sin6_addr, &peer->v6.sin6_addr, 16) == 0 ? 0 : -EXDEV;
}

static inline int world_client(const struct world_attempt *a, int type, int protocol)
{
        struct world_sockaddr to = world_sockaddr(a->addr, WORLD_PORT);
        scoped(fd_closep) int fd =
                netns_socket(a->from, to.any.sa_family, type | SOCK_NONBLOCK, protocol);

        if (fd < 0)
                return fd;
        if (a->source) {
                struct world_sockaddr from = world_sockaddr(a->source, 0);

                if (bind(fd, &from.any, from.n) < 0)
                        return -errno;
        }
        if (connect(fd, &to.any, to.n) < 0 && errno != EINPROGRESS)
                return -errno;
        return TAKE_FD(fd);
}

static inline int world_server(const struct world_attempt *a, int type)
{
        struct world_sockaddr at = world_sockaddr(a->addr, WORLD_PORT);
        scoped(fd_closep) int fd = netns_socket(a->to, at.any.sa_family, type | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return fd;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0
            || bind(fd, &at.any, at.n) < 0 || (type == SOCK_STREAM && listen(fd, 1) < 0))
                return -errno;
        return TAKE_FD(fd);
}

static inline int world_tcp(const struct world_attempt *a)
{
        scoped(fd_closep) int server = world_server(a, SOCK_STREAM);
        scoped(fd_closep) int client = server < 0 ? -EBADF : world_client(a, SOCK_STREAM, 0);
        scoped(fd_closep) int taken = -EBADF;
        struct world_sockaddr peer = { .n = sizeof(peer.v6) };
        int r;

        if (server < 0 || client < 0)
                return server < 0 ? server : client;
        r = world_wait(client, POLLOUT, a->timeout_ms);
        if (r < 0)
                return r;
        taken = accept(server, &peer.any, &peer.n);
        return taken < 0 ? -errno : world_seen(&peer, a->seen);
}

/* At the server, or a refusal at the client. */
static inline int world_arrives(int server, int client, int timeout_ms)
{
        struct pollfd p[2] = { { server, POLLIN, 0 }, { client, POLLIN, 0 } };
        int n = poll(p, 2, timeout_ms ? timeout_ms : (int) check_timeout(3000));

        if (n <= 0)
                return n < 0 ? -errno : -ETIMEDOUT;
        return p[0].revents ? 0 : world_wait(client, POLLIN, 1);
}

static inline int world_udp(const struct world_attempt *a)
{
        scoped(fd_closep) int server = world_server(a, SOCK_DGRAM);
        scoped(fd_closep) int client = server < 0 ? -EBADF : world_client(a, SOCK_DGRAM, 0);
        struct world_sockaddr peer = { .n = sizeof(peer.v6) };
        char c;
        int r;

        if (server < 0 || client < 0)
                return server < 0 ? server : client;
        if (send(client, "a", 1, 0) != 1)
                return -errno;
        r = world_arrives(server, client, a->timeout_ms);
        if (r < 0)
                return r;
        if (recvfrom(server, &c, 1, 0, &peer.any, &peer.n) != 1)
                return -errno;
        if (sendto(server, "b", 1, 0, &peer.any, peer.n) != 1)
                return -errno;
        r = world_wait(client, POLLIN, a->timeout_ms);
        return r < 0 ? r : world_seen(&peer, a->seen);
}

static inline int world_ping(const struct world_attempt *a)
{
        bool v6 = strchr(a->addr, ':');
        scoped(fd_closep) int client =
                world_client(a, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
        struct icmphdr echo = { .type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO };

        if (client < 0)
                return client;
        if (send(client, &echo, sizeof(echo), 0) != sizeof(echo))
                return -errno;
        return world_wait(client, POLLIN, a->timeout_ms);
}

/* 0: got through. */
static inline int world_try(const struct world_attempt *a)
{
        static int (*const ways[])(const struct world_attempt *) = { world_tcp, world_udp,
                                                                     world_ping };

        return ways[a->how](a);
}

#endif
