/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_RELAY_H
#define HUTCH_ENGINE_RELAY_H

/*
 * A connection to an agent through the engine, for engines that see no folder of ours: the engine starts
 * the agent's program in the container once more, as a relay (execd/relay.h), and passes its standard
 * input and output on to us; we pass them on to one end of a pair of sockets, whose other end is what
 * hutchd gets.
 *
 *         hutchd ═ pair ═ relay ── HTTP, upgraded ── engine ── hutch-execd --relay ── agent.sock
 *
 * What comes from the engine is in frames: eight bytes of head (which of the two outputs, length), then
 * bytes. Both directions hold back the sender when the receiver does not keep up.
 */

#include "base/err.h"
#include "base/str.h"

struct relay;
struct worker;

struct relay_wait {
        /* 0 and a descriptor, which is the receiver's; or a code with err. From the loop, once. */
        void (*done)(struct relay_wait *x, int code, int fd);
        struct err err;
        struct relay *_relay;
};

/* `container` is its name. ERR_NOT_FOUND if there is none, ERR_UNAVAILABLE if it does not run. */
void relay_open(struct worker *w, struct relay_wait *x, const char *container);

/* `done` does not come. Fine if it has come. */
void relay_detach(struct relay_wait *x);

/* Ends all that there are. */
void relays_close(struct worker *w);

/* --- the frames; for tests --- */

struct demux {
        unsigned char head[8];
        size_t n; /* of the head */
        uint32_t left;
};

/* Takes the next piece off *bytes: true, and *ret is output (empty: nothing yet of it). False when all is
 * used. -EBADMSG by *ret_error if it is no frame. */
bool demux_next(struct demux *d, struct str *bytes, struct str *ret, int *ret_error);

#endif
