/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_LISTENER_H
#define HUTCH_NET_LISTENER_H

/*
 * Accepts connections on one listening socket.
 *
 * When the process runs out of descriptors, a listener neither spins on the pending connection nor
 * leaves it waiting: it closes a spare descriptor, accepts and closes the connection, and opens the
 * spare again, so that the client sees the refusal at once.
 */

#include "net/loop.h"
#include "os/socket.h"

struct net_listener;

struct net_listener_ops {
        /* Takes the descriptor. */
        void (*accepted)(struct net_listener *l, int fd, const struct sock_addr *peer);
        void (*closed)(struct net_listener *l);
};

struct net_listener {
        const struct net_listener_ops *ops;
        struct net_loop *loop;
        int fd;
        int _spare;
        bool _closing;
        uint64_t refused; /* for lack of descriptors */
        struct sock_addr addr;
        uint64_t _dev, _ino; /* of our socket file */
        uv_poll_t _poll;
};

/* Takes the listening socket fd, whatever it returns. */
int listener_open(struct net_listener *l, struct net_loop *loop, int fd,
                  const struct net_listener_ops *ops) must_check;

/* Removes the socket file of a unix address if it is still ours. */
void listener_close(struct net_listener *l);

#endif
