/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Quoting for JSON and for logs by one writer, so that both are equally safe. Runs of plain ASCII are
 * copied at once; everything else goes character by character.
 */

#include "base/buf.h"

#include "base/banned.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */

/* Printable ASCII except the quote and the backslash. */
static const bool plain[256] = {
        [0x20 ... 0x21] = true,
        [0x23 ... 0x5b] = true,
        [0x5d ... 0x7e] = true,
};

/* Characters beyond ASCII that control a terminal, end a line or change the direction of writing. */
static bool is_unprintable(uint32_t c)
{
        return (c >= 0x80 && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f
               || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff
               || (c >= 0xfff9 && c <= 0xfffb);
}

static size_t escape_code(char out[static 6], uint32_t c)
{
        static const char digits[] = "0123456789abcdef";

        out[0] = '\\';
        out[1] = 'u';
        out[2] = digits[c >> 12 & 15];
        out[3] = digits[c >> 8 & 15];
        out[4] = digits[c >> 4 & 15];
        out[5] = digits[c & 15];
        return 6;
}

static size_t escape_ascii(char out[static 6], unsigned char c)
{
        static const char names[128] = {
                ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
        };

        if (!names[c])
                return escape_code(out, c);
        out[0] = '\\';
        out[1] = names[c];
        return 2;
}

/* Removes one character from *s and writes its quoted form. Returns the form's length. */
static size_t quote_char(struct str *s, char out[static 6])
{
        unsigned char c = (unsigned char) s->p[0];
        uint32_t code;
        size_t n;

        if (c < 0x80) {
                *s = str_skip(*s, 1);
                if (!plain[c])
                        return escape_ascii(out, c);
                out[0] = (char) c;
                return 1;
        }
        n = str_utf8_char(*s, &code);
        if (n == 0) {
                *s = str_skip(*s, 1);
                memcpy(out, REPLACEMENT, 3);
                return 3;
        }
        if (is_unprintable(code)) {
                *s = str_skip(*s, n);
                return escape_code(out, code);
        }
        memcpy(out, s->p, n);
        *s = str_skip(*s, n);
        return n;
}

/* Without branches, so that the compiler vectorises it. */
#define BLOCK 16
static inline bool block_is_plain(const char *p)
{
        unsigned char odd = 0;

        for (size_t i = 0; i < BLOCK; i++) {
                unsigned char c = (unsigned char) p[i];

                odd |= (unsigned char) ((c < 0x20) | (c > 0x7e) | (c == '"') | (c == '\\'));
        }
        return !odd;
}

static size_t plain_run(struct str s)
{
        size_t i = 0;

        while (s.n - i >= BLOCK && block_is_plain(s.p + i))
                i += BLOCK;
        while (i < s.n && plain[(unsigned char) s.p[i]])
                i++;
        return i;
}

void buf_add_quoted(struct buf *b, struct str s)
{
        size_t before = b->n;
        char out[6];

        buf_add_char(b, '"');
        while (s.n > 0 && !b->failed) {
                size_t run = plain_run(s);

                buf_add(b, s.p, run);
                s = str_skip(s, run);
                if (s.n > 0) {
                        size_t n = quote_char(&s, out);

                        buf_add(b, out, n);
                }
        }
        buf_add_char(b, '"');
        if (b->failed)
                buf_truncate(b, before);
}

bool buf_add_quoted_cut(struct buf *b, struct str s, size_t max)
{
        size_t before = b->n;
        size_t fits = b->n + 1; /* the content's length up to which "…" and a quote still fit */
        bool cut = false;
        char out[6];

        ASSERT(max >= BUF_QUOTED_MIN);
        buf_add_char(b, '"');
        while (s.n > 0 && !b->failed && !cut) {
                size_t n = quote_char(&s, out);

                if (b->n - before + n + 1 > max) {
                        cut = true;
                        break;
                }
                buf_add(b, out, n);
                if (b->n - before + 4 <= max)
                        fits = b->n;
        }
        if (cut && !b->failed) {
                buf_truncate(b, fits);
                buf_add(b, ELLIPSIS, 3);
        }
        buf_add_char(b, '"');
        if (b->failed)
                buf_truncate(b, before);
        return cut;
}
