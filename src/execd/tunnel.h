/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_TUNNEL_H
#define HUTCH_EXECD_TUNNEL_H

/*
 * TCP connections to ports of the sandbox, over WebSocket: GET /tunnel/{port}.
 *
 * The connection to the server is made first; if that fails, the reply is 502 and no protocol is switched.
 * Then the payload of binary messages goes to the server, and what the server sends goes back in binary
 * messages; message boundaries mean nothing. Text messages are refused (1003).
 *
 * A slow side slows the other: each direction holds at most TUNNEL_LOW bytes and one read.
 *
 * How the end of one side is passed on:
 *         the server has sent everything (FIN)      close 1000, once the client has received it all
 *         the server's connection breaks            close 1011, likewise
 *         the client closes with an ordinary code   FIN; the server has TUNNEL_LINGER to do the same
 *         the client is lost or violates protocol   reset, so that the server does not take a part for all
 */

#include "http/ws.h"
#include "net/timeout.h"

#define TUNNEL_LOW     (64 * KiB)
#define TUNNEL_CONNECT (5 * USEC_PER_SEC)
#define TUNNEL_LINGER  (10 * USEC_PER_SEC)
/* Keeps the connection alive in middleboxes that forget idle connections. A missing pong is no error: a client
 * may stop reading for any time. */
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
