/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_TUNNEL_H
#define HUTCH_CLIENT_TUNNEL_H

/*
 * A tunnel: a WebSocket to the agent's /tunnel/{port}, over a connection that curl has made (and speaks
 * TLS on, or goes through a proxy for) and that we speak on ourselves.
 *
 * The easy handle stays in the multi handle it was made with, which is how curl keeps such a connection;
 * so a tunnel that was opened by a blocking call keeps that call's loop.
 */

#include "client/loop.h"
#include "client/ws.h"

#define TUNNEL_PIECE (64 * KiB) /* most that is read, or framed, at once */

struct hutch_tunnel {
        struct hutch_loop *loop; /* ours to free, or NULL */
        CURLM *multi;
        CURL *easy;
        int fd;
        struct buf in;  /* as it came */
        struct buf out; /* frames that were not sent yet */
        struct ws_reader reader;
        uint64_t masks; /* state of a generator: masks must differ, but hide nothing */
        bool peer_closed, closed;
        int failure; /* HUTCH_BROKEN …: nothing more will come or go */
};

/* Reads into t->in what is there. 1, 0 at the end, or HUTCH_AGAIN, HUTCH_BROKEN. */
int tunnel__receive(struct hutch_tunnel *t);

/* Sends what is in t->out. 0, HUTCH_AGAIN or HUTCH_BROKEN. */
int tunnel__flush(struct hutch_tunnel *t);

#endif
