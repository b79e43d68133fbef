/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ws.h"

#include "base/base64.h"
#include "base/sha1.h"

#include "base/banned.h"

#define FIN    0x80
#define MASKED 0x80
#define LENGTH 0x7f
#define SHORT  126
#define LONG   127

void ws_accept_text(struct str key, char ret[static WS_ACCEPT_TEXT])
{
        static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        char text[WS_KEY_TEXT + sizeof(guid)];
        uint8_t digest[SHA1_SIZE];
        size_t n = MIN_OF(key.n, (size_t) WS_KEY_TEXT);

        memcpy(text, key.p, n);
        memcpy(text + n, guid, sizeof(guid) - 1);
        sha1(text, n + sizeof(guid) - 1, digest);
        (void) base64_encode(digest, sizeof(digest), ret);
}

/* --- out --- */

void ws_add_frame(struct buf *b, enum ws_op op, struct str bytes, const uint8_t mask[static 4])
{
        unsigned extra = bytes.n < SHORT ? 0 : bytes.n <= UINT16_MAX ? 2 : 8;
        char *p;

        buf_add_char(b, (char) (FIN | op));
        buf_add_char(b, (char) (MASKED | (extra == 0 ? bytes.n : extra == 2 ? SHORT : LONG)));
        for (unsigned i = extra; i > 0; i--)
                buf_add_char(b, (char) (bytes.n >> (8 * (i - 1)) & 0xff));
        buf_add(b, mask, 4);
        p = buf_reserve(b, bytes.n);
        for (size_t i = 0; p && i < bytes.n; i++)
                p[i] = (char) (bytes.p[i] ^ mask[i & 3]);
        if (p)
                buf_advance(b, bytes.n);
}

/* --- in --- */

static unsigned head_size(const struct ws_reader *r)
{
        unsigned length = r->n_head > 1 ? r->head[1] & LENGTH : 0;

        return 2 + (length == SHORT ? 2 : length == LONG ? 8 : 0);
}

/* Servers do not mask; control frames are short and not fragmented. */
static int read_head(struct ws_reader *r, struct str *input)
{
        unsigned length, opcode;

        while (input->n > 0 && (r->n_head < 2 || r->n_head < head_size(r))) {
                r->head[r->n_head++] = (uint8_t) input->p[0];
                *input = str_skip(*input, 1);
        }
        if (r->n_head < 2 || r->n_head < head_size(r))
                return 0;
        length = r->head[1] & LENGTH;
        opcode = r->head[0] & 0x0f;
        if ((r->head[0] & 0x70) || (r->head[1] & MASKED) || opcode > WS_PONG
            || (opcode > WS_BYTES && opcode < WS_CLOSE)
            || (opcode >= WS_CLOSE && (!(r->head[0] & FIN) || length > WS_CONTROL_MAX)))
                return -EPROTO;
        r->left = length;
        if (length >= SHORT) {
                r->left = 0;
                for (unsigned i = 2; i < r->n_head; i++)
                        r->left = r->left << 8 | r->head[i];
        }
        if (r->left > INT64_MAX)
                return -EPROTO;
        r->op = (enum ws_op) opcode;
        r->in_frame = true;
        r->n_control = 0;
        r->n_head = 0;
        return 0;
}

static int read_control(struct ws_reader *r, struct str *input, struct str *ret)
{
        size_t n = (size_t) MIN_OF((uint64_t) input->n, r->left);

        memcpy(r->control + r->n_control, input->p ? input->p : "", n);
        r->n_control += (unsigned) n;
        r->left -= n;
        *input = str_skip(*input, n);
        if (r->left > 0)
                return WS_NEED_MORE;
        r->in_frame = false;
        *ret = str_of((const char *) r->control, r->n_control);
        return WS_FRAME;
}

int ws_read(struct ws_reader *r, struct str *input, size_t max, struct str *ret)
{
        for (;;) {
                size_t n;

                if (!r->in_frame) {
                        int code = read_head(r, input);

                        if (code < 0)
                                return code;
                        if (!r->in_frame)
                                return WS_NEED_MORE;
                }
                if (r->op >= WS_CLOSE)
                        return read_control(r, input, ret);
                if (r->left == 0) {
                        r->in_frame = false;
                        continue;
                }
                n = (size_t) MIN_OF(MIN_OF((uint64_t) input->n, r->left), (uint64_t) max);
                if (n == 0)
                        return WS_NEED_MORE;
                *ret = str_of(input->p, n);
                *input = str_skip(*input, n);
                r->left -= n;
                return WS_PIECE;
        }
}
