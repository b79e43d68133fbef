/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_RELAY_H
#define HUTCH_ENGINE_RELAY_H

/*
 * A connection to an agent through the engine, for engines that mount none of our directories: the engine starts
 * the agent's program in the container once more, as a relay (hutch-execd --relay), and passes its standard input and
 * output to us; we pass them on to one end of a socket pair, whose other end hutchd gets.
 *
 *         hutchd ═ pair ═ relay ── HTTP, upgraded ── engine ── hutch-execd --relay ── agent.sock
 *
 * The engine sends frames: a head of eight bytes (which output, length), then bytes. In both directions a slow
 * receiver slows the sender.
 */

#include "base/err.h"
#include "base/str.h"

struct relay;
struct engine_worker;

struct relay_wait {
        /* 0 and a descriptor, which is the receiver's; or a code with err. Once, from the loop. */
        void (*done)(struct relay_wait *x, int code, int fd);
        struct err err;
        struct relay *_relay;
};

/* `container` is a name. ERR_NOT_FOUND if there is none, ERR_UNAVAILABLE if it does not run. */
void relay_open(struct engine_worker *w, struct relay_wait *x, const char *container);

/* `done` is not called any more. */
void relay_detach(struct relay_wait *x);

/* Closes all. */
void relays_close(struct engine_worker *w);

/* --- the frames; for tests --- */

struct demux {
        unsigned char head[8];
        size_t n; /* of the head */
        uint32_t left;
};

/* Takes the next piece off *bytes: true, and *ret is output, perhaps empty. False when all is used; *ret_error is
 * -EBADMSG if it is not a frame. */
bool demux_next(struct demux *d, struct str *bytes, struct str *ret, int *ret_error);

#endif
