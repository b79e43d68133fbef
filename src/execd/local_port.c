/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/local_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/base.h"

static struct sock_addr loopback4(uint16_t port)
{
        struct sock_addr a = { .len = sizeof(struct sockaddr_in) };
        struct sockaddr_in *in = (struct sockaddr_in *) &a.ss;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return a;
}

static struct sock_addr loopback6(uint16_t port)
{
        struct sock_addr a = { .len = sizeof(struct sockaddr_in6) };
        struct sockaddr_in6 *in = (struct sockaddr_in6 *) &a.ss;

        in->sin6_family = AF_INET6;
        in->sin6_port = htons(port);
        in->sin6_addr = in6addr_loopback;
        return a;
}

int local_port_from_string(const struct agent *a, struct str text, struct local_port *ret)
{
        uint16_t port;

        if (parse_port(text, &port) < 0)
                return -EINVAL;
        for (size_t i = 0; i < a->n_listen_ports; i++)
                if (a->listen_ports[i] == port)
                        return -EPERM;
        *ret = (struct local_port){ port, loopback4(port), loopback6(port) };
        return 0;
}

const char *local_port_error(int r)
{
        return r == -EPERM ? "this port is the agent's own; call it directly"
                           : "not a port: give a number from 1 to 65535";
}
