/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_TUNNEL_H
#define HUTCH_CLIENT_TUNNEL_H

/*
 * A tunnel: a WebSocket to /tunnel/{port} of the agent. curl makes the connection, including TLS and
 * proxies; the WebSocket protocol is implemented here.
 *
 * The easy handle stays in the multi handle it was created with, which is how curl keeps such a
 * connection. A tunnel that was opened by a blocking call therefore keeps that call's loop.
 */

#include "client/loop.h"
#include "client/ws.h"

#define TUNNEL_PIECE (64 * KiB) /* largest read, and largest frame */

struct hutch_tunnel {
        struct hutch_loop *loop; /* to free with the tunnel, or NULL */
        CURLM *multi;
        CURL *easy;
        int fd;
        struct buf in;  /* received, not parsed yet */
        struct buf out; /* frames to send */
        struct ws_reader reader;
        uint64_t masks; /* state of a random generator; masks need not be secret */
        bool peer_closed, closed;
        int failure; /* HUTCH_BROKEN …: the tunnel is unusable */
};

/* Reads into t->in. 1, 0 at the end, HUTCH_AGAIN or HUTCH_BROKEN. */
int tunnel__receive(struct hutch_tunnel *t);

/* Sends t->out. 0, HUTCH_AGAIN or HUTCH_BROKEN. */
int tunnel__flush(struct hutch_tunnel *t);

#endif
