/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_TUNNEL_H
#define HUTCH_EXECD_TUNNEL_H

/*
 * TCP connections to ports of the sandbox, over WebSocket: GET /tunnel/{port}.
 *
 * The connection is made first; if nobody takes it, the answer is 502 and no protocol is switched.
 * Then the payload of binary messages is what goes to the server, and what comes from it goes back
 * in binary messages; where one message ends and the next begins means nothing. Text messages are
 * refused (1003).
 *
 * Whoever is slow slows the other: each direction holds at most TUNNEL_LOW bytes and one read.
 *
 * How an end is passed on:
 *         the server has sent everything (FIN)      close 1000, once the client has got it all
 *         the server's connection breaks            close 1011, likewise
 *         the client closes with an ordinary code   FIN; the server has TUNNEL_LINGER to do the same
 *         the client is lost or speaks nonsense     a reset, so that nobody takes a part for all
 */

#include "http/ws.h"
#include "net/timeout.h"

#define TUNNEL_LOW     (64 * KiB)
#define TUNNEL_CONNECT (5 * USEC_PER_SEC)
#define TUNNEL_LINGER  (10 * USEC_PER_SEC)
/* For what lies between us and the client and forgets silent connections. Whether the client
 * answers does not matter: one that reads nothing for a while has a right to. */
#define TUNNEL_PING (30 * USEC_PER_SEC)

struct tunnels {
        struct net_loop *loop;
        struct list all;
        struct http_ws_group group;
        struct timeout_kind connects, lingers, pings;
};

void tunnels_init(struct tunnels *ts, struct net_loop *loop);

/* No request may be left. The memory must stay until the loop ran once more. */
void tunnels_close(struct tunnels *ts);

#endif
