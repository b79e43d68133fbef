/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_PUMP_H
#define HUTCH_HTTP_PUMP_H

/*
 * Joins two tunnels: what comes out of one goes into the other, both ways.
 *
 * A side that takes nothing stops the reading of the other; at most PUMP_LOW bytes and one read
 * wait for it. A side that has sent everything (FIN) is passed on as that, and the other direction
 * goes on; when both have, or one side is gone, the pump closes both, after what is on its way was
 * delivered. `ended` comes once, from the loop, when both tunnels are closed; the memory is the
 * owner's again.
 *
 * The owner gives &pump->a.tunnel and &pump->b.tunnel to whoever makes the tunnels.
 */

#include "http/tunnel.h"
#include "net/timeout.h"

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

/* `idle` ends a pump through which nothing went for its length, by http_pump_timed_out; so does
 * `half_closed`, if it is shorter, once one side has sent its FIN: it may be gone altogether, and
 * the other may never care. The kinds need not outlive the first `closed` of a tunnel. */
void http_pump_init(struct http_pump *p, struct timeout_kind *idle,
                    struct timeout_kind *half_closed, http_pump_ended_fn *ended);
void http_pump_timed_out(struct timeout *t);

#endif
