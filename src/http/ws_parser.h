/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_PARSER_H
#define HUTCH_HTTP_WS_PARSER_H

/*
 * Parses the bytes of a WebSocket connection into messages and control frames (RFC 6455).
 *
 * Input may be split anywhere and must be writable: it is unmasked in place, and `data` points into it.
 * Messages are streamed, never collected; only the payload of a control frame is stored, in the struct.
 * So the memory of a parser does not depend on the peer.
 *
 * The parser enforces the rules of a frame's head (http/ws_frame.h); continuation frames inside a
 * message only, and no second message inside; UTF-8 in text and close reasons; and a maximum size of
 * messages, checked at the head of the frame that exceeds it. Control frames between the fragments of a
 * message are delivered as they arrive. Everything after a close frame is ignored.
 *
 * An error is a negative errno, and close_code the code to close with: -EPROTO (1002), -EILSEQ (1007),
 * -EMSGSIZE (1009). A negative errno from a callback stops the parser too, with close_code 0. Later
 * calls return the same error. Data before the offending byte has been delivered, so a message can end
 * in an error after some of its data.
 *
 * The caller owns the storage. Callbacks find it with container_of and must not feed the parser. There
 * is nothing to free.
 */

#include "base/compiler.h"
#include "base/str.h"
#include "base/utf8.h"
#include "http/ws_frame.h"

struct ws_parser;

enum ws_data_flags {
        WS_FIRST = 1 << 0, /* a message begins */
        WS_LAST = 1 << 1,  /* and ends, with these bytes */
};

/* A piece of a message; opcode is WS_TEXT or WS_BINARY for all of its pieces. A message has exactly one
 * piece with WS_FIRST and one with WS_LAST, possibly the same. n is 0 only in a last piece. A piece of
 * text may end inside a character. */
typedef int ws_data_fn(struct ws_parser *w, enum ws_opcode opcode, unsigned flags, char *p,
                       size_t n);
/* The payload is valid during the call. A ping requires a pong with the same payload. */
typedef int ws_control_fn(struct ws_parser *w, struct str payload);
/* The code is valid, or WS_CLOSE_NO_CODE. */
typedef int ws_close_fn(struct ws_parser *w, uint16_t code, struct str reason);

/* All are set. */
struct ws_parser_ops {
        ws_data_fn *data;
        ws_control_fn *ping;
        ws_control_fn *pong;
        ws_close_fn *close;
};

struct ws_parser {
        uint16_t close_code; /* after an error: what to send */
        const char *reason;  /* after an error of the parser: static text */

        const struct ws_parser_ops *_ops;
        uint64_t _message_max;
        uint64_t _message_n; /* length of the message according to the heads so far */
        uint64_t _at;        /* position in the payload of the frame */
        struct ws_head _head;
        struct ws_head_decoder _decoder;
        struct utf8_check _utf8;
        enum ws_opcode _opcode; /* of the message, WS_CONTINUATION outside of one */
        int _error;
        bool _in_payload;
        bool _first;  /* no piece of the message was delivered yet */
        bool _closed; /* close frame seen */
        char _control[WS_CONTROL_MAX];
};

/* message_max: bytes, UINT64_MAX for no limit. */
void ws_parser_init(struct ws_parser *w, enum ws_role role, uint64_t message_max,
                    const struct ws_parser_ops *ops);

int ws_parser_feed(struct ws_parser *w, char *p, size_t n) must_check;

/* Whether the peer has sent its close frame. */
static inline bool ws_parser_closed(const struct ws_parser *w)
{
        return w->_closed;
}

#endif
