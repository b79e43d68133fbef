/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_FRAME_H
#define HUTCH_HTTP_WS_FRAME_H

/*
 * WebSocket frames (RFC 6455, section 5): heads, masks, the payload of a close frame, and the key of the
 * handshake. http/ws_parser.h interprets sequences of frames.
 *
 * Nothing here allocates or keeps views. The role is that of the reader: a server reads masked frames,
 * a client unmasked ones.
 */

#include "base/compiler.h"
#include "base/str.h"

enum ws_role { WS_SERVER, WS_CLIENT };

enum ws_opcode {
        WS_CONTINUATION = 0x0,
        WS_TEXT = 0x1,
        WS_BINARY = 0x2,
        WS_CLOSE = 0x8,
        WS_PING = 0x9,
        WS_PONG = 0xa,
};

/* The codes that we send or check (RFC 6455, 7.4.1). */
enum ws_close_code {
        WS_CLOSE_NORMAL = 1000,
        WS_CLOSE_GOING_AWAY = 1001,
        WS_CLOSE_PROTOCOL = 1002,
        WS_CLOSE_NO_CODE = 1005, /* a close without a code; never sent */
        WS_CLOSE_BAD_TEXT = 1007,
        WS_CLOSE_POLICY = 1008,
        WS_CLOSE_TOO_BIG = 1009,
        WS_CLOSE_INTERNAL = 1011,
};

#define WS_HEAD_MAX    14  /* bytes of the longest head */
#define WS_CONTROL_MAX 125 /* payload of a control frame */

static inline bool ws_is_control(enum ws_opcode opcode)
{
        return opcode >= WS_CLOSE;
}

/* --- heads --- */

struct ws_head {
        enum ws_opcode opcode;
        bool fin;
        bool masked;
        uint8_t rsv;     /* the reserved bits as a number: RSV1 is 4, RSV3 is 1 */
        uint8_t mask[4]; /* if masked */
        uint64_t length; /* of the payload, below 2^63 */
};

/* Collects one head from pieces. Holds at most WS_HEAD_MAX bytes. */
struct ws_head_decoder {
        const char *reason; /* after an error: static text */
        enum ws_role _role;
        uint8_t _rsv_allowed;
        uint8_t _have;
        uint8_t _need;
        uint8_t _bytes[WS_HEAD_MAX];
};

/* rsv_allowed: the reserved bits of negotiated extensions, usually 0. */
void ws_head_decoder_init(struct ws_head_decoder *d, enum ws_role role, uint8_t rsv_allowed);

/* 0: all n bytes were consumed, more are needed. 1: *ret is complete and consumed *ret_used of these
 * bytes; the decoder is ready for the next head. -EPROTO: close with WS_CLOSE_PROTOCOL, for unknown
 * opcodes, reserved bits, a missing or unexpected mask, control frames that are fragmented or longer
 * than WS_CONTROL_MAX, lengths that are not in their shortest form or beyond 63 bits. */
int ws_head_feed(struct ws_head_decoder *d, const void *p, size_t n, size_t *ret_used,
                 struct ws_head *ret) must_check;

/* Writes the head and returns its length. */
size_t ws_head_encode(const struct ws_head *h, uint8_t ret[static WS_HEAD_MAX]);

/* Masks or unmasks in place, which is the same. offset: position of p in the payload of the frame. */
void ws_mask(void *p, size_t n, const uint8_t mask[static 4], uint64_t offset);

/* --- close --- */

/* Whether a close frame may carry this code: 1000-1003, 1007-1014, 3000-4999. */
bool ws_close_code_is_valid(uint16_t code);

/* Writes the payload of a close frame and returns its length. WS_CLOSE_NO_CODE makes an empty one. The
 * reason, which is UTF-8, is truncated to complete characters. */
size_t ws_close_encode(uint16_t code, struct str reason, uint8_t ret[static WS_CONTROL_MAX]);

/* An empty payload gives WS_CLOSE_NO_CODE. *ret_reason is a view into the payload. -EPROTO for one byte
 * or an invalid code, -EILSEQ for a reason that is not UTF-8. */
int ws_close_parse(struct str payload, uint16_t *ret_code, struct str *ret_reason) must_check;

/* --- handshake --- */

#define WS_ACCEPT_SIZE 28 /* characters, no NUL */

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. -EINVAL if the key is not 16 bytes in base64. */
int ws_accept_key(struct str key, char ret[static WS_ACCEPT_SIZE]) must_check;

#endif
