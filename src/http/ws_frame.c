/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_frame.h"

#include <endian.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/sha1.h"

#define FIN    0x80
#define MASKED 0x80
#define LEN16  126
#define LEN64  127

/* --- decoding heads --- */

void ws_head_decoder_init(struct ws_head_decoder *d, enum ws_role role, uint8_t rsv_allowed)
{
        *d = (struct ws_head_decoder){ ._role = role, ._rsv_allowed = rsv_allowed, ._need = 2 };
}

/* Checks the first two bytes, which decide nearly everything. NULL, or a description of the error. */
static const char *check_start(const struct ws_head_decoder *d)
{
        unsigned opcode = d->_bytes[0] & 0x0f;
        uint8_t rsv = d->_bytes[0] >> 4 & 7;
        bool masked = d->_bytes[1] & MASKED;

        if (rsv & ~d->_rsv_allowed)
                return "reserved bit set";
        if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG)
                return "unknown opcode";
        if (masked != (d->_role == WS_SERVER))
                return masked ? "frame of a server is masked" : "frame of a client is not masked";
        if (ws_is_control(opcode) && !(d->_bytes[0] & FIN))
                return "fragmented control frame";
        if (ws_is_control(opcode) && (d->_bytes[1] & 0x7f) > WS_CONTROL_MAX)
                return "control frame too long";
        return NULL;
}

static size_t length_bytes(uint8_t second)
{
        switch (second & 0x7f) {
        case LEN16:
                return 2;
        case LEN64:
                return 8;
        default:
                return 0;
        }
}

/* NULL, or a description of the error. */
static const char *read_head(const struct ws_head_decoder *d, struct ws_head *ret)
{
        const uint8_t *b = d->_bytes;
        size_t n = length_bytes(b[1]);
        uint16_t v16;
        uint64_t v64;

        *ret = (struct ws_head){
                .opcode = b[0] & 0x0f,
                .fin = b[0] & FIN,
                .masked = b[1] & MASKED,
                .rsv = b[0] >> 4 & 7,
                .length = b[1] & 0x7f,
        };
        if (ret->masked)
                memcpy(ret->mask, b + 2 + n, sizeof(ret->mask));
        if (n == 2) {
                memcpy(&v16, b + 2, sizeof(v16));
                ret->length = be16toh(v16);
                return ret->length < LEN16 ? "length not in its shortest form" : NULL;
        }
        if (n == 8) {
                memcpy(&v64, b + 2, sizeof(v64));
                ret->length = be64toh(v64);
                if (ret->length > INT64_MAX)
                        return "length beyond 63 bits";
                return ret->length <= UINT16_MAX ? "length not in its shortest form" : NULL;
        }
        return NULL;
}

int ws_head_feed(struct ws_head_decoder *d, const void *p, size_t n, size_t *ret_used,
                 struct ws_head *ret)
{
        size_t used = 0;
        struct ws_head head;

        while (d->_have < d->_need) {
                size_t take = MIN_OF(n - used, (size_t) (d->_need - d->_have));

                if (take == 0) {
                        *ret_used = used;
                        return 0;
                }
                memcpy(d->_bytes + d->_have, (const uint8_t *) p + used, take);
                d->_have += (uint8_t) take;
                used += take;
                if (d->_have != 2)
                        continue;
                d->reason = check_start(d);
                if (d->reason)
                        return -EPROTO;
                d->_need += (uint8_t) (length_bytes(d->_bytes[1])
                                       + (d->_bytes[1] & MASKED ? sizeof(head.mask) : 0));
        }
        d->reason = read_head(d, &head);
        if (d->reason)
                return -EPROTO;
        d->_have = 0;
        d->_need = 2;
        *ret_used = used;
        *ret = head;
        return 1;
}

/* --- encoding heads --- */

size_t ws_head_encode(const struct ws_head *h, uint8_t ret[static WS_HEAD_MAX])
{
        size_t n = 2;

        ASSERT(h->length <= INT64_MAX);
        ret[0] = (uint8_t) ((h->fin ? FIN : 0) | (h->rsv & 7) << 4 | h->opcode);
        ret[1] = h->masked ? MASKED : 0;
        if (h->length < LEN16) {
                ret[1] |= (uint8_t) h->length;
        } else if (h->length <= UINT16_MAX) {
                uint16_t v = htobe16((uint16_t) h->length);

                ret[1] |= LEN16;
                memcpy(ret + n, &v, sizeof(v));
                n += sizeof(v);
        } else {
                uint64_t v = htobe64(h->length);

                ret[1] |= LEN64;
                memcpy(ret + n, &v, sizeof(v));
                n += sizeof(v);
        }
        if (h->masked) {
                memcpy(ret + n, h->mask, sizeof(h->mask));
                n += sizeof(h->mask);
        }
        return n;
}

/* --- masks --- */

/* gcc vectorizes the first loop at -O2 or -O3; even where it does not, four words at a time keep the loads
 * ahead of the stores. */
void ws_mask(void *p, size_t n, const uint8_t mask[static 4], uint64_t offset)
{
        uint8_t *b = p;
        uint8_t m[8];
        uint64_t wide;
        size_t i = 0;

        for (size_t k = 0; k < sizeof(m); k++)
                m[k] = mask[(offset + k) & 3];
        memcpy(&wide, m, sizeof(wide));

        for (; n - i >= 32; i += 32) {
                uint64_t v[4];

                memcpy(v, b + i, sizeof(v));
                for (size_t k = 0; k < 4; k++)
                        v[k] ^= wide;
                memcpy(b + i, v, sizeof(v));
        }
        for (; n - i >= 8; i += 8) {
                uint64_t v;

                memcpy(&v, b + i, sizeof(v));
                v ^= wide;
                memcpy(b + i, &v, sizeof(v));
        }
        for (; i < n; i++)
                b[i] ^= m[i & 7];
}

/* --- close --- */

bool ws_close_code_is_valid(uint16_t code)
{
        return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
               || (code >= 3000 && code <= 4999);
}

size_t ws_close_encode(uint16_t code, struct str reason, uint8_t ret[static WS_CONTROL_MAX])
{
        struct str fits = str_utf8_cut(reason, WS_CONTROL_MAX - 2);

        if (code == WS_CLOSE_NO_CODE)
                return 0;
        ASSERT(ws_close_code_is_valid(code));
        ret[0] = (uint8_t) (code >> 8);
        ret[1] = (uint8_t) code;
        if (fits.n > 0)
                memcpy(ret + 2, fits.p, fits.n);
        return 2 + fits.n;
}

int ws_close_parse(struct str payload, uint16_t *ret_code, struct str *ret_reason)
{
        struct str reason = str_skip(payload, 2);
        uint16_t code;

        if (payload.n == 0) {
                *ret_code = WS_CLOSE_NO_CODE;
                *ret_reason = STR("");
                return 0;
        }
        if (payload.n == 1)
                return -EPROTO;
        code = (uint16_t) ((uint8_t) payload.p[0] << 8 | (uint8_t) payload.p[1]);
        if (!ws_close_code_is_valid(code))
                return -EPROTO;
        if (!str_is_utf8(reason))
                return -EILSEQ;
        *ret_code = code;
        *ret_reason = reason;
        return 0;
}

/* --- handshake --- */

#define KEY_BYTES 16

int ws_accept_key(struct str key, char ret[static WS_ACCEPT_SIZE])
{
        static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        char text[BASE64_ENCODED(KEY_BYTES) + sizeof(guid) - 1];
        uint8_t nonce[BASE64_DECODED_MAX(BASE64_ENCODED(KEY_BYTES))];
        uint8_t digest[SHA1_SIZE];
        size_t n;

        static_assert(BASE64_ENCODED(SHA1_SIZE) == WS_ACCEPT_SIZE, "accept of the handshake");
        if (key.n != BASE64_ENCODED(KEY_BYTES) || base64_decode(key, nonce, &n) < 0
            || n != KEY_BYTES)
                return -EINVAL;
        memcpy(text, key.p, key.n);
        memcpy(text + key.n, guid, sizeof(guid) - 1);
        sha1(text, sizeof(text), digest);
        (void) base64_encode(digest, sizeof(digest), ret);
        return 0;
}
