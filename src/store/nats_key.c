/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats_key.h"

#include "base/base.h"

#define ESCAPE '='

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
               || c == '-' || c == '_' || c == '/';
}

static void encode_word(struct buf *b, struct str word)
{
        static const char digits[] = "0123456789ABCDEF";

        if (word.n == 0)
                buf_add_char(b, ESCAPE);
        for (size_t i = 0; i < word.n; i++) {
                uint8_t c = (uint8_t) word.p[i];
                char escaped[] = { ESCAPE, digits[c >> 4], digits[c & 15] };

                if (is_plain(word.p[i]))
                        buf_add_char(b, word.p[i]);
                else
                        buf_add(b, escaped, sizeof(escaped));
        }
}

void nats_key_encode(struct buf *b, struct str key)
{
        for (;;) {
                const char *colon = key.n > 0 ? memchr(key.p, ':', key.n) : NULL;
                size_t n = colon ? (size_t) (colon - key.p) : key.n;

                encode_word(b, str_of(key.p, n));
                if (!colon)
                        return;
                buf_add_char(b, '.');
                key = str_of(key.p + n + 1, key.n - n - 1);
        }
}

void nats_key_wildcard(struct buf *b, struct str prefix)
{
        const char *colon = prefix.n > 0 ? memrchr(prefix.p, ':', prefix.n) : NULL;

        if (colon) {
                nats_key_encode(b, str_of(prefix.p, (size_t) (colon - prefix.p)));
                buf_add_char(b, '.');
        }
        buf_add_char(b, '>');
}

/* --- decoding --- */

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Only bytes that have to be escaped, so that each key has one form. */
static int decode_escaped(struct str text, char *ret)
{
        int high = text.n > 2 ? hex_digit(text.p[1]) : -1,
            low = text.n > 2 ? hex_digit(text.p[2]) : -1;
        char c;

        if (high < 0 || low < 0)
                return -EINVAL;
        c = (char) (high << 4 | low);
        if (is_plain(c) || c == ':')
                return -EINVAL;
        *ret = c;
        return 0;
}

/* The number of bytes, or -EINVAL. */
static ssize_t decode_word(struct str word, char *ret)
{
        size_t n = 0;

        if (word.n == 0)
                return -EINVAL;
        if (word.n == 1 && word.p[0] == ESCAPE)
                return 0;
        for (size_t i = 0; i < word.n; i++) {
                if (is_plain(word.p[i])) {
                        ret[n++] = word.p[i];
                        continue;
                }
                if (word.p[i] != ESCAPE
                    || decode_escaped(str_of(word.p + i, word.n - i), &ret[n]) < 0)
                        return -EINVAL;
                n++;
                i += 2;
        }
        return (ssize_t) n;
}

int nats_key_decode(struct str text, char *ret, size_t *ret_n)
{
        size_t n = 0;

        for (;;) {
                const char *point = text.n > 0 ? memchr(text.p, '.', text.n) : NULL;
                size_t word = point ? (size_t) (point - text.p) : text.n;
                ssize_t r = decode_word(str_of(text.p, word), ret + n);

                if (r < 0)
                        return (int) r;
                n += (size_t) r;
                if (!point)
                        break;
                ret[n++] = ':';
                text = str_of(text.p + word + 1, text.n - word - 1);
        }
        if (n == 0)
                return -EINVAL; /* "=" alone would be the empty key */
        *ret_n = n;
        return 0;
}
