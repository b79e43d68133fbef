/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_RESPONSE_STREAM_H
#define HUTCH_EXECD_RESPONSE_STREAM_H

/*
 * A response of unknown length, produced as fast as the client reads it and in slices of a few
 * milliseconds, so that other requests are served in between.
 *
 * `produce` is called repeatedly and appends to the buffer. What it appended is passed to the connection
 * before the next call once it is RESPONSE_STREAM_PIECE bytes or more. `release` is called exactly once
 * and last: after the end was sent, after the response was aborted, or when the client is gone. It frees
 * the struct that embeds the stream.
 */

#include "base/buf.h"
#include "http/req.h"
#include "net/loop.h"

#define RESPONSE_STREAM_PIECE (32 * KiB)
#define RESPONSE_STREAM_MAX   (128 * KiB) /* what produce may append to less than a piece */

struct response_stream;

struct response_stream_ops {
        /* 1: there is more; 0: complete; negative: the response must be aborted, so that the client
         * cannot take it for complete. */
        int (*produce)(struct response_stream *s, struct buf *out);
        void (*release)(struct response_stream *s);
};

struct response_stream {
        struct http_req *req;
        const struct response_stream_ops *ops;
        struct net_task _task;
        struct buf _out;
};

/* Begins the response with status 200. It may have ended, `release` included, on return. */
void response_stream_start(struct response_stream *s, struct http_req *req, struct str type,
                           const struct response_stream_ops *ops);

#endif
