/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses on a link that the kernel has to resolve or to remember: its table of them is one for all network
 * namespaces of the host. */

#include "bomb.h"
#include "probe.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* The loopback where there is no other. */
static const char *link_name(void)
{
        return if_nametoindex("eth0") > 0 ? "eth0" : "lo";
}

/* A socket whose datagrams go to the link, whatever the routes say. */
static int on_link(int family)
{
        const int on = 1, hops = 4;
        const char *link = link_name();
        const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0
            || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, link, (socklen_t) strlen(link) + 1) < 0
            || setsockopt(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof(on)) < 0)
                return -errno;
        if (family == AF_INET6)
                (void) setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
        return fd;
}

/* What is not resolved waits, and counts as the memory of its socket: the next ones need another. */
#define WAITING_MAX 100

static void send_to(int fd, const void *to, size_t n)
{
        progress->reached += sendto(fd, "x", 1, 0, to, (socklen_t) n) > 0;
}

/* Of one network, one after the other. */
static void flood4(uint32_t network, long most)
{
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
        int fd = -1;

        for (long i = 0; i < most; i++) {
                fd = i % WAITING_MAX == 0 ? on_link(AF_INET) : fd;
                to.sin_addr.s_addr = htonl(network + 2 + (uint32_t) i);
                send_to(fd, &to, sizeof(to));
        }
}

static void flood6(int fd, const char *network, long most)
{
        struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                                   .sin6_port = htons(9),
                                   .sin6_scope_id = if_nametoindex(link_name()) };

        (void) inet_pton(AF_INET6, network, &to.sin6_addr);
        for (long i = 0; i < most; i++) {
                const uint32_t last = htonl((uint32_t) (i + 0x1000));

                memcpy(&to.sin6_addr.s6_addr[12], &last, sizeof(last));
                send_to(fd, &to, sizeof(to));
        }
}

/* `most` addresses of each kind: unicast, multicast, and link-local. */
void bomb_neighbours(long most)
{
        const int v6 = on_link(AF_INET6);

        raise_descriptors();
        flood4(0x0a000000U /* 10.0.0.0 */, most);
        flood4(0xcb007100U /* 203.0.113.0 */, most);
        flood4(0xef000000U /* 239.0.0.0 */, most);
        if (v6 < 0)
                return; /* the host has no IPv6 */
        flood6(v6, "fe80::", most);
        flood6(v6, "fd00::", most);
        flood6(v6, "2001:db8::", most);
        flood6(v6, "ff02::", most);
        flood6(v6, "ff15::", most);
}
