/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/banned.h"

static unsigned char lower(char c)
{
        return (unsigned char) (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool str_caseeq(struct str a, struct str b)
{
        if (a.n != b.n)
                return false;
        for (size_t i = 0; i < a.n; i++)
                if (lower(a.p[i]) != lower(b.p[i]))
                        return false;
        return true;
}

int str_cmp(struct str a, struct str b)
{
        size_t n = MIN_OF(a.n, b.n);
        int r = n > 0 ? memcmp(a.p, b.p, n) : 0;

        return r != 0 ? r : (a.n > b.n) - (a.n < b.n);
}

bool str_starts_with(struct str s, struct str prefix)
{
        return s.n >= prefix.n && str_eq(str_of(s.p, prefix.n), prefix);
}

bool str_ends_with(struct str s, struct str suffix)
{
        return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

bool str_eq_secret(struct str a, struct str b)
{
        volatile unsigned char differ = 0;

        if (a.n != b.n)
                return false;
        for (size_t i = 0; i < a.n; i++)
                differ = (unsigned char) (differ | (a.p[i] ^ b.p[i]));
        return differ == 0;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

struct str str_trim(struct str s)
{
        while (s.n > 0 && is_blank(s.p[0]))
                s = str_skip(s, 1);
        while (s.n > 0 && is_blank(s.p[s.n - 1]))
                s.n--;
        return s;
}

ssize_t str_find(struct str s, char c)
{
        const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

        return at ? at - s.p : -1;
}

struct str str_skip(struct str s, size_t from)
{
        if (!s.p)
                return s;
        from = MIN_OF(from, s.n);
        return str_of(s.p + from, s.n - from);
}

bool str_split(struct str *rest, char sep, struct str *ret_part)
{
        ssize_t at;

        if (!rest->p)
                return false;
        at = str_find(*rest, sep);
        if (at < 0) {
                *ret_part = *rest;
                *rest = STR_NULL;
                return true;
        }
        *ret_part = str_of(rest->p, (size_t) at);
        *rest = str_skip(*rest, (size_t) at + 1);
        return true;
}

/* --- UTF-8 --- */

static bool is_continuation(char c)
{
        return ((unsigned char) c & 0xc0) == 0x80;
}

size_t str_utf8_char(struct str s, uint32_t *ret_code_point)
{
        /* By length: the least code point that needs it. Less is an overlong form. */
        static const uint32_t least[] = { [2] = 0x80, [3] = 0x800, [4] = 0x10000 };
        unsigned char c = s.n ? (unsigned char) s.p[0] : 0x80;
        uint32_t code;
        size_t n;

        if (c < 0x80) {
                *ret_code_point = c;
                return 1;
        }
        n = c >= 0xf0 && c <= 0xf4 ? 4 : (c & 0xf0) == 0xe0 ? 3 : (c & 0xe0) == 0xc0 ? 2 : 0;
        if (n == 0 || s.n < n)
                return 0;
        code = c & (0x7fu >> n);
        for (size_t i = 1; i < n; i++) {
                if (!is_continuation(s.p[i]))
                        return 0;
                code = code << 6 | ((unsigned char) s.p[i] & 0x3f);
        }
        if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
                return 0;
        *ret_code_point = code;
        return n;
}

bool str_is_utf8(struct str s)
{
        uint32_t code;

        while (s.n > 0) {
                size_t n = str_utf8_char(s, &code);

                if (n == 0)
                        return false;
                s = str_skip(s, n);
        }
        return true;
}

struct str str_utf8_cut(struct str s, size_t max)
{
        size_t n = max;

        if (s.n <= max)
                return s;
        /* Back over at most three continuation bytes to the start of the character that is cut. */
        while (n > 0 && max - n < 3 && is_continuation(s.p[n]))
                n--;
        return str_of(s.p, is_continuation(s.p[n]) ? max : n);
}

/* --- hexadecimal --- */

void hex_encode(char *ret, const void *p, size_t n)
{
        static const char digits[] = "0123456789abcdef";
        const unsigned char *bytes = p;

        for (size_t i = 0; i < n; i++) {
                ret[2 * i] = digits[bytes[i] >> 4];
                ret[2 * i + 1] = digits[bytes[i] & 15];
        }
}
