/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_RESPONSE_STREAM_H
#define HUTCH_EXECD_RESPONSE_STREAM_H

/*
 * An answer of unknown length, made as fast as the client takes it and in slices of a few
 * milliseconds, so that neither its size nor its making is felt by anybody else.
 *
 *         f->flow = …;
 *         response_stream_start(&f->flow, req, STR("application/json"), &ops);
 *
 * `produce` is called again and again, and appends a little to the buffer, or nothing. Before it is
 * asked for more, what it gave was handed to the connection if it is RESPONSE_STREAM_PIECE bytes or more.
 * Exactly once, and last, `release` is called: when the end was sent, when the answer had to be
 * broken off, or when the client is gone; it frees what embeds the flow.
 */

#include "base/buf.h"
#include "http/req.h"
#include "net/loop.h"

#define RESPONSE_STREAM_PIECE (32 * KiB)
#define RESPONSE_STREAM_MAX   (128 * KiB) /* what produce may add to less than a piece */

struct response_stream;

struct response_stream_ops {
        /* 1: there is more; 0: that was all; negative: the answer must be broken off, so that the
         * client can't take it for complete. */
        int (*produce)(struct response_stream *f, struct buf *out);
        void (*release)(struct response_stream *f);
};

struct response_stream {
        struct http_req *req;
        const struct response_stream_ops *ops;
        struct net_task _task;
        struct buf _out;
};

/* Begins the answer with status 200. May have come to its end, `release` included, when it
 * returns. */
void response_stream_start(struct response_stream *f, struct http_req *req, struct str type,
                           const struct response_stream_ops *ops);

#endif
