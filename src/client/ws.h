/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_WS_H
#define HUTCH_CLIENT_WS_H

/*
 * The client side of WebSocket (RFC 6455) for tunnels: handshake, and frames in both directions. Pure;
 * client/tunnel.c does the I/O. Messages are not assembled: the bytes of a tunnel have no boundaries.
 */

#include "base/buf.h"

#define WS_KEY_TEXT    24
#define WS_ACCEPT_TEXT 28
#define WS_CONTROL_MAX 125

enum ws_op { WS_MORE = 0, WS_TEXT = 1, WS_BYTES = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

/* The Sec-WebSocket-Accept for a key. */
void ws_accept_text(struct str key, char ret[static WS_ACCEPT_TEXT]);

/* Appends a complete, masked frame. */
void ws_add_frame(struct buf *b, enum ws_op op, struct str bytes, const uint8_t mask[static 4]);

struct ws_reader {
        uint8_t head[10];
        unsigned n_head;
        uint64_t left; /* of the payload */
        enum ws_op op; /* of the current frame */
        uint8_t control[WS_CONTROL_MAX];
        unsigned n_control;
        bool in_frame;
};

enum ws_event {
        WS_NEED_MORE, /* all input was consumed */
        WS_PIECE,     /* `ret` is a piece of data */
        WS_FRAME,     /* a control frame is complete: r->op, `ret` its payload */
};

/* Consumes *input up to one event; a piece has at most max bytes. -EPROTO: not a valid WebSocket frame. */
int ws_read(struct ws_reader *r, struct str *input, size_t max, struct str *ret) must_check;

#endif
