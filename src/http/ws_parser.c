/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_parser.h"

#include "base/base.h"

/*
 * Two states: in a head and in a payload. A frame without payload passes through the second state with
 * zero bytes, so that every frame ends there. _in_payload and _at already count the bytes that
 * data_payload and control_payload get.
 */

void ws_parser_init(struct ws_parser *w, enum ws_role role, uint64_t message_max,
                    const struct ws_parser_ops *ops)
{
        *w = (struct ws_parser){
                ._ops = ops,
                ._message_max = message_max,
                ._opcode = WS_CONTINUATION,
        };
        ws_head_decoder_init(&w->_decoder, role, /* rsv_allowed= */ 0);
}

/* --- failure --- */

static int fail(struct ws_parser *w, int error, uint16_t close_code, const char *reason)
{
        w->_error = error;
        w->close_code = close_code;
        w->reason = reason;
        return error;
}

static int returned(struct ws_parser *w, int r)
{
        if (r >= 0)
                return 0;
        w->_error = r;
        return r;
}

/* --- heads --- */

static int feed_head(struct ws_parser *w, const char *p, size_t n, size_t *ret_used)
{
        const struct ws_head *h = &w->_head;
        bool inside = w->_opcode != WS_CONTINUATION;
        int r = ws_head_feed(&w->_decoder, p, n, ret_used, &w->_head);

        if (r < 0)
                return fail(w, r, WS_CLOSE_PROTOCOL, w->_decoder.reason);
        if (r == 0)
                return 0;
        w->_in_payload = true;
        w->_at = 0;
        if (ws_is_control(h->opcode))
                return 0;

        if (h->opcode == WS_CONTINUATION && !inside)
                return fail(w, -EPROTO, WS_CLOSE_PROTOCOL, "continuation of nothing");
        if (h->opcode != WS_CONTINUATION) {
                if (inside)
                        return fail(w, -EPROTO, WS_CLOSE_PROTOCOL, "message inside a message");
                w->_opcode = h->opcode;
                w->_message_n = 0;
                w->_first = true;
                utf8_check_init(&w->_utf8);
        }
        if (h->length > w->_message_max - w->_message_n)
                return fail(w, -EMSGSIZE, WS_CLOSE_TOO_BIG, "message too big");
        w->_message_n += h->length;
        return 0;
}

/* --- data --- */

static int emit(struct ws_parser *w, char *p, size_t n, bool last)
{
        unsigned flags = (w->_first ? WS_FIRST : 0U) | (last ? WS_LAST : 0U);

        if (n == 0 && !last)
                return 0;
        w->_first = false;
        return returned(w, w->_ops->data(w, w->_opcode, flags, p, n));
}

static int data_payload(struct ws_parser *w, char *p, size_t n)
{
        bool last = !w->_in_payload && w->_head.fin;
        size_t bad_at = n;
        int r = 0;

        if (w->_opcode == WS_TEXT) {
                r = utf8_check_feed(&w->_utf8, p, n, &bad_at);
                if (r == 0 && last)
                        r = utf8_check_finish(&w->_utf8);
        }
        if (r < 0) {
                /* Delivers the valid part of a text before the error, so that the result does not
                 * depend on how the input was split. */
                r = emit(w, p, bad_at, /* last= */ false);
                return r < 0 ? r : fail(w, -EILSEQ, WS_CLOSE_BAD_TEXT, "text is not UTF-8");
        }
        r = emit(w, p, n, last);
        if (r == 0 && last)
                w->_opcode = WS_CONTINUATION;
        return r;
}

/* --- control frames --- */

static int control_payload(struct ws_parser *w, const char *p, size_t n)
{
        struct str payload = str_of(w->_control, (size_t) w->_head.length), reason;
        uint16_t code;
        int r;

        if (n > 0)
                memcpy(w->_control + (w->_at - n), p, n);
        if (w->_in_payload)
                return 0;
        if (w->_head.opcode == WS_PING)
                return returned(w, w->_ops->ping(w, payload));
        if (w->_head.opcode == WS_PONG)
                return returned(w, w->_ops->pong(w, payload));
        w->_closed = true;
        r = ws_close_parse(payload, &code, &reason);
        if (r == -EILSEQ)
                return fail(w, r, WS_CLOSE_BAD_TEXT, "reason of a close is not UTF-8");
        if (r < 0)
                return fail(w, r, WS_CLOSE_PROTOCOL, "malformed close frame");
        return returned(w, w->_ops->close(w, code, reason));
}

/* --- feeding --- */

int ws_parser_feed(struct ws_parser *w, char *p, size_t n)
{
        const struct ws_head *h = &w->_head;

        if (w->_error < 0)
                return w->_error;
        /* An empty payload is complete without further bytes. */
        while (!w->_closed && (n > 0 || (w->_in_payload && w->_at == h->length))) {
                size_t used = 0;
                int r;

                if (w->_in_payload) {
                        used = (size_t) MIN_OF((uint64_t) n, h->length - w->_at);
                        if (h->masked)
                                ws_mask(p, used, h->mask, w->_at);
                        w->_at += used;
                        w->_in_payload = w->_at < h->length;
                        r = ws_is_control(h->opcode) ? control_payload(w, p, used)
                                                     : data_payload(w, p, used);
                } else {
                        r = feed_head(w, p, n, &used);
                }
                if (r < 0)
                        return r;
                p += used;
                n -= used;
        }
        return 0;
}
