/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_TUNNEL_H
#define HUTCH_HTTP_TUNNEL_H

/*
 * A connection after a protocol switch: raw bytes, for a WebSocket or a proxied upgrade. The
 * connection keeps the descriptor and its limits; the user of the tunnel reads through the ops and
 * writes to tunnel->stream (net/stream.h), respecting stream_pending.
 *
 * `closed` is the last call; tunnel->stream is NULL from then on.
 */

#include "net/stream.h"
#include "net/timeout.h"

struct http_tunnel;

struct http_tunnel_ops {
        void (*data)(struct http_tunnel *t, char *p, size_t n);
        void (*eof)(struct http_tunnel *t);
        void (*drained)(struct http_tunnel *t);
        void (*closed)(struct http_tunnel *t, int reason);
        /* The server is shutting down: end soon. May be NULL. */
        void (*retire)(struct http_tunnel *t);
};

struct http_tunnel {
        const struct http_tunnel_ops *ops;
        struct net_stream *stream;
        bool paused; /* do not read after the switch; see http_tunnel_pause */
        void (*_close)(struct http_tunnel *t); /* of the connection */
        void *_conn;
};

/* Stops reading. What was read already is still delivered. May be called before the switch, which
 * happens right after the call that requested it has returned. */
void http_tunnel_pause(struct http_tunnel *t);
void http_tunnel_resume(struct http_tunnel *t);

/* Closes the connection; `closed` follows from the loop. May be called twice. */
void http_tunnel_close(struct http_tunnel *t);

/* --- pumps --- */

/*
 * A pump joins two tunnels: what one receives is sent to the other, in both directions.
 *
 * A side that accepts nothing stops reading of the other side; at most PUMP_LOW bytes and one read
 * wait for it. A FIN is forwarded as a FIN, and the other direction goes on. When both sides have
 * sent FIN, or one side is gone, the pump delivers what is in flight and closes both. `ended` is
 * called once, from the loop, when both tunnels are closed; the memory belongs to the owner again.
 *
 * The owner passes &pump->a.tunnel and &pump->b.tunnel to the code that makes the tunnels.
 */

#define PUMP_LOW (64 * KiB)

struct http_pump;

typedef void http_pump_ended_fn(struct http_pump *p);

struct pump_end {
        struct http_tunnel tunnel;
        struct http_pump *pump;
        bool eof; /* it will send no more */
        bool closed;
};

struct http_pump {
        struct pump_end a, b;
        http_pump_ended_fn *ended;
        struct timeout_kind *idle, *half_closed; /* valid while both ends are open */
        struct timeout timeout;
};

/* `idle` ends a pump through which nothing has passed for its length, by http_pump_timed_out; so
 * does `half_closed`, if it is shorter, once one side has sent FIN: that side may be gone altogether,
 * and the other may never notice. The kinds need not outlive the first `closed` of a tunnel. */
void http_pump_init(struct http_pump *p, struct timeout_kind *idle,
                    struct timeout_kind *half_closed, http_pump_ended_fn *ended);
void http_pump_timed_out(struct timeout *t);

#endif
