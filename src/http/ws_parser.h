/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_PARSER_H
#define HUTCH_HTTP_WS_PARSER_H

/*
 * From the bytes of a WebSocket connection to messages and control frames (RFC 6455).
 *
 * Bytes are fed as they come from the socket, cut anywhere, in memory that may be written to: it
 * is unmasked in place, and `data` points into it. A message is streamed, never collected; only
 * the payload of a control frame is, in WS_CONTROL_MAX bytes of the struct. So a parser's memory
 * does not depend on what the other side sends.
 *
 * Enforced: the rules of a frame's head (http/ws_frame.h); continuation frames within a message
 * and nowhere else, no second message inside; text and close reasons in UTF-8; a maximum size of
 * messages, refused at the head of the frame that would pass it. Control frames between the
 * fragments of a message are given as they come. Behind a close frame everything is ignored.
 *
 * An error is a negative errno and the code to close with, in close_code: -EPROTO (1002), -EILSEQ
 * (1007), -EMSGSIZE (1009). A negative errno of a callback stops the parser in the same way, but
 * then close_code is 0 and the choice is the caller's. Later calls return the same error.
 * What came before the offending byte has been delivered, so a message can end in an error after
 * some of its data.
 *
 * The storage is the caller's; callbacks find it with container_of, and may not feed the parser.
 * Nothing is to be freed.
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

/* A piece of a message: opcode is WS_TEXT or WS_BINARY for all of them. A message has exactly one
 * piece with WS_FIRST and one with WS_LAST, perhaps the same. n is 0 only in a last piece. A text
 * piece may end inside a character. */
typedef int ws_data_fn(struct ws_parser *w, enum ws_opcode opcode, unsigned flags, char *p,
                       size_t n);
/* The payload is valid during the call. A ping wants a pong with the same payload. */
typedef int ws_control_fn(struct ws_parser *w, struct str payload);
/* Valid, or WS_CLOSE_NO_CODE. */
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
        const char *reason;  /* after an error of the parser's own: static text */

        const struct ws_parser_ops *_ops;
        uint64_t _message_max;
        uint64_t _message_n; /* bytes of the message by the heads seen so far */
        uint64_t _at;        /* bytes of the frame's payload seen so far */
        struct ws_head _head;
        struct ws_head_decoder _decoder;
        struct utf8_check _utf8;
        enum ws_opcode _opcode; /* of the message, WS_CONTINUATION outside of one */
        int _error;
        bool _in_payload;
        bool _first;  /* no piece of the message was given yet */
        bool _closed; /* close frame seen */
        char _control[WS_CONTROL_MAX];
};

/* message_max: bytes, UINT64_MAX for no limit. */
void ws_parser_init(struct ws_parser *w, enum ws_role role, uint64_t message_max,
                    const struct ws_parser_ops *ops);

int ws_parser_feed(struct ws_parser *w, char *p, size_t n) must_check;

/* Has the other side sent its close frame? */
static inline bool ws_parser_closed(const struct ws_parser *w)
{
        return w->_closed;
}

#endif
