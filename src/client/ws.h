/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_WS_H
#define HUTCH_CLIENT_WS_H

/*
 * The client's side of WebSocket (RFC 6455), as far as a tunnel needs it: the handshake as text, frames
 * out, frames in. Pure: who moves the bytes is client/tunnel.c. Messages are never put together: a
 * tunnel's bytes mean the same wherever they are cut.
 */

#include "base/buf.h"

#define WS_KEY_TEXT    24
#define WS_ACCEPT_TEXT 28
#define WS_CONTROL_MAX 125

enum ws_op { WS_MORE = 0, WS_TEXT = 1, WS_BYTES = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

/* What the server must answer to a key. */
void ws_accept_text(struct str key, char ret[static WS_ACCEPT_TEXT]);

/* One whole frame, masked. */
void ws_add_frame(struct buf *b, enum ws_op op, struct str bytes, const uint8_t mask[static 4]);

struct ws_reader {
        uint8_t head[10];
        unsigned n_head;
        uint64_t left; /* of the payload */
        enum ws_op op; /* of the frame that is being read */
        uint8_t control[WS_CONTROL_MAX];
        unsigned n_control;
        bool in_frame;
};

enum ws_event {
        WS_NEED_MORE, /* the input is used up */
        WS_PIECE,     /* `ret` is a piece of what was sent */
        WS_FRAME,     /* a control frame is whole: r->op, `ret` its payload */
};

/* Takes bytes off *input, at most one event's worth; a piece has at most max bytes. -EPROTO: the server
 * speaks something else. */
int ws_read(struct ws_reader *r, struct str *input, size_t max, struct str *ret) must_check;

#endif
