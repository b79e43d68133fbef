/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_TUNNEL_H
#define HUTCH_HTTP_TUNNEL_H

/*
 * What becomes of a connection after a protocol switch: raw bytes, in the hands of a WebSocket or
 * a proxied upgrade. The connection keeps the descriptor and the limits; the tunnel's user reads
 * through the ops and writes to tunnel->stream (net/stream.h), respecting stream_pending.
 *
 * `closed` is the last call; tunnel->stream is NULL from then on.
 */

#include "net/stream.h"

struct http_tunnel;

struct http_tunnel_ops {
        void (*data)(struct http_tunnel *t, char *p, size_t n);
        void (*eof)(struct http_tunnel *t);
        void (*drained)(struct http_tunnel *t);
        void (*closed)(struct http_tunnel *t, int reason);
        /* The server is going down: end soon, or be cut off. May be NULL. */
        void (*retire)(struct http_tunnel *t);
};

struct http_tunnel {
        const struct http_tunnel_ops *ops;
        struct net_stream *stream;
        bool paused; /* wants no input yet when the switch happens; see http_tunnel_pause */
        void (*_close)(struct http_tunnel *t); /* the connection's */
        void *_conn;
};

/* Holds the sender back. What was read already still comes. Fine before the switch has happened,
 * which is right after the call that asked for it has returned. */
void http_tunnel_pause(struct http_tunnel *t);
void http_tunnel_resume(struct http_tunnel *t);

/* Ends the connection now; `closed` follows from the loop. Fine to call twice. */
void http_tunnel_close(struct http_tunnel *t);

#endif
