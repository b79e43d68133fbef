/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_AGENT_NET_H
#define HUTCH_TESTS_LIB_AGENT_NET_H

/* An agent that listens, and servers of the test's own beside it, on TCP ports of the loopback. */

#include "tests/lib/agent_world.h"
#include "tests/lib/wire.h"

struct agent_net {
        struct agent_world w;
        struct sock_addr addr; /* of the agent */
};

static inline unsigned port_of(const struct sock_addr *a)
{
        return sock_addr_port(a);
}

/* Listens at "127.0.0.1:0" and the like; false if the host has no such address. */
static inline bool tcp_listen(const char *text, struct wire_listener *ret)
{
        *ret = (struct wire_listener){ .fd = -EBADF };
        check_i64_eq(sock_addr_from_string(str_from(text), &ret->addr), 0);
        if (sock_listen(&ret->addr, &ret->fd) < 0)
                return false;
        check_i64_eq(sock_local_addr(ret->fd, &ret->addr), 0);
        return true;
}

static inline void tcp_unlisten(struct wire_listener *l)
{
        l->fd = fd_close(l->fd);
}

static inline void agent_net_open(struct agent_net *n)
{
        struct wire_listener l;

        agent_world_open(&n->w);
        check_true(tcp_listen("127.0.0.1:0", &l));
        n->addr = l.addr;
        check_i64_eq(http_server_listen(n->w.agent->server, l.fd), 0);
        agent_add_listen_port(n->w.agent, sock_addr_port(&n->addr));
}

static inline void agent_net_close(struct agent_net *n)
{
        agent_world_close(&n->w);
}

#endif
