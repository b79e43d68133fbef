/* SPDX-License-Identifier: Apache-2.0 */
#include "http/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/base.h"

/* --- character classes --- */

#define HOST_MAX 255 /* longest name of the DNS */

enum class {
        UNRESERVED = 1 << 0, /* RFC 3986: ALPHA DIGIT - . _ ~ */
        SUB_DELIM = 1 << 1,  /* RFC 3986: ! $ & ' ( ) * + , ; = */
        TOKEN = 1 << 2,      /* RFC 9110 */
};

#define ALNUM (UNRESERVED | TOKEN)
#define BOTH  (SUB_DELIM | TOKEN)

static const uint8_t classes[256] = {
        ['0' ... '9'] = ALNUM, ['A' ... 'Z'] = ALNUM, ['a' ... 'z'] = ALNUM, ['-'] = ALNUM,
        ['.'] = ALNUM,         ['_'] = ALNUM,         ['~'] = ALNUM,         ['!'] = BOTH,
        ['$'] = BOTH,          ['&'] = BOTH,          ['\''] = BOTH,         ['*'] = BOTH,
        ['+'] = BOTH,          ['('] = SUB_DELIM,     [')'] = SUB_DELIM,     [','] = SUB_DELIM,
        [';'] = SUB_DELIM,     ['='] = SUB_DELIM,     ['#'] = TOKEN,         ['%'] = TOKEN,
        ['^'] = TOKEN,         ['`'] = TOKEN,         ['|'] = TOKEN,
};

static bool is(char c, unsigned class)
{
        return (classes[(unsigned char) c] & class) != 0;
}

/* 0 to 15, or -1. */
static int hex_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* --- targets --- */

/* The length of "http://" or "https://" at the start, or 0. */
static size_t scheme_length(struct str s)
{
        static const struct str schemes[] = { { "http://", 7 }, { "https://", 8 } };

        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
                if (s.n >= schemes[i].n && str_caseeq(str_of(s.p, schemes[i].n), schemes[i]))
                        return schemes[i].n;
        return 0;
}

static void split_query(struct str s, struct url_target *t)
{
        ssize_t mark = str_find(s, '?');

        t->path = mark < 0 ? s : str_of(s.p, (size_t) mark);
        t->query = mark < 0 ? STR_NULL : str_skip(s, (size_t) mark + 1);
        if (t->path.n == 0)
                t->path = STR("/");
}

int url_split(struct str target, struct url_target *ret)
{
        struct url_target t = { .form = URL_ORIGIN };
        size_t n;

        if (target.n == 0)
                return -EINVAL;
        for (size_t i = 0; i < target.n; i++)
                if (target.p[i] <= ' ' || target.p[i] == 0x7f || target.p[i] == '#'
                    || (target.p[i] & 0x80))
                        return -EINVAL;
        if (str_eq(target, STR("*"))) {
                t.form = URL_ASTERISK;
                t.path = target;
        } else if (target.p[0] == '/') {
                split_query(target, &t);
        } else {
                n = scheme_length(target);
                if (n == 0)
                        return -EINVAL;
                target = str_skip(target, n);
                n = 0;
                while (n < target.n && target.p[n] != '/' && target.p[n] != '?')
                        n++;
                t.form = URL_ABSOLUTE;
                t.authority = str_of(target.p, n);
                if (!http_host_is_valid(t.authority))
                        return -EINVAL;
                split_query(str_skip(target, n), &t);
        }
        *ret = t;
        return 0;
}

/* --- percent-encoding --- */

/* Decodes the character at s.p[*at] and advances *at. Negative for a bad escape or a NUL. */
static int next_char(struct str s, unsigned flags, size_t *at)
{
        char c = s.p[(*at)++];
        int hi, lo;

        if (c == '+' && (flags & URL_PLUS_IS_SPACE))
                return ' ';
        if (c == '\0')
                return -EINVAL;
        if (c != '%')
                return (unsigned char) c;
        if (s.n - *at < 2)
                return -EINVAL;
        hi = hex_value(s.p[(*at)++]);
        lo = hex_value(s.p[(*at)++]);
        if (hi < 0 || lo < 0 || hi + lo == 0)
                return -EINVAL;
        return hi * 16 + lo;
}

/* `to` may be s.p itself: writing never overtakes reading. */
static int decode_to(char *to, struct str s, unsigned flags, size_t *ret_n)
{
        size_t n = 0;

        for (size_t at = 0; at < s.n;) {
                int c = next_char(s, flags, &at);

                if (c < 0)
                        return c;
                to[n++] = (char) c;
        }
        *ret_n = n;
        return 0;
}

int url_decode_in_place(char *p, size_t n, unsigned flags, size_t *ret_n)
{
        return decode_to(p, str_of(p, n), flags, ret_n);
}

int url_decode(struct arena *a, struct str s, unsigned flags, struct str *ret)
{
        size_t n = 0;
        char *p;
        int r;

        while (n < s.n && s.p[n] != '%' && s.p[n] != '\0'
               && (s.p[n] != '+' || !(flags & URL_PLUS_IS_SPACE)))
                n++;
        if (n == s.n) {
                *ret = s.p ? s : STR(""); /* nothing to decode */
                return 0;
        }
        p = arena_alloc(a, s.n);
        if (!p)
                return -ENOMEM;
        r = decode_to(p, s, flags, &n);
        if (r < 0)
                return r;
        *ret = str_of(p, n);
        return 0;
}

static void encode(struct buf *b, struct str s, bool keep_slash)
{
        static const char hex[] = "0123456789ABCDEF";

        for (size_t i = 0; i < s.n;) {
                size_t run = i;
                unsigned char c;

                while (run < s.n && (is(s.p[run], UNRESERVED) || (keep_slash && s.p[run] == '/')))
                        run++;
                buf_add(b, s.p + i, run - i);
                i = run;
                if (i == s.n)
                        break;
                c = (unsigned char) s.p[i++];
                buf_add(b, (const char[]){ '%', hex[c >> 4], hex[c & 15] }, 3);
        }
}

void url_encode(struct buf *b, struct str s)
{
        encode(b, s, /* keep_slash= */ false);
}

void url_encode_path(struct buf *b, struct str s)
{
        encode(b, s, /* keep_slash= */ true);
}

/* --- query parameters --- */

bool url_query_next(struct str *rest, struct str *ret_key, struct str *ret_value)
{
        struct str pair;
        ssize_t eq;

        do {
                if (!str_split(rest, '&', &pair))
                        return false;
        } while (pair.n == 0);

        eq = str_find(pair, '=');
        *ret_key = eq < 0 ? pair : str_of(pair.p, (size_t) eq);
        *ret_value = eq < 0 ? STR_NULL : str_skip(pair, (size_t) eq + 1);
        return true;
}

/* Compares a raw key with a name. Decodes the key to its end, so that a malformed key is found for every
 * name. 1, 0 or -EINVAL. */
static int key_is(struct str key, const char *name)
{
        bool same = true;

        for (size_t at = 0; at < key.n;) {
                int c = next_char(key, URL_PLUS_IS_SPACE, &at);

                if (c < 0)
                        return c;
                same = same && (unsigned char) *name == c;
                if (same)
                        name++;
        }
        return same && *name == '\0';
}

int url_query_each(struct arena *a, struct str *rest, const char *name, struct str *ret_value)
{
        struct str key, value;
        int r;

        while (url_query_next(rest, &key, &value)) {
                r = key_is(key, name);
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                r = url_decode(a, value, URL_PLUS_IS_SPACE, ret_value);
                return r < 0 ? r : 1;
        }
        return 0;
}

/* --- grammar of header fields --- */

static bool reg_name_is_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                if (is(s.p[i], UNRESERVED | SUB_DELIM))
                        continue;
                if (s.p[i] != '%' || s.n - i < 3 || hex_value(s.p[i + 1]) < 0
                    || hex_value(s.p[i + 2]) < 0)
                        return false;
                i += 2;
        }
        return s.n > 0 && s.n <= HOST_MAX;
}

static bool ipv6_is_valid(struct str s)
{
        char text[INET6_ADDRSTRLEN];
        struct in6_addr addr;

        if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        return inet_pton(AF_INET6, text, &addr) == 1;
}

/* Nothing, ":" or ":port"; an empty port is legal (RFC 3986, 3.2.3). */
static bool port_part_is_valid(struct str s)
{
        uint16_t port;

        if (s.n == 0)
                return true;
        if (s.p[0] != ':')
                return false;
        return s.n == 1 || parse_port(str_skip(s, 1), &port) == 0;
}

bool http_host_is_valid(struct str s)
{
        ssize_t end;

        if (s.n > 0 && s.p[0] == '[') {
                end = str_find(s, ']');
                return end > 0 && ipv6_is_valid(str_of(s.p + 1, (size_t) end - 1))
                       && port_part_is_valid(str_skip(s, (size_t) end + 1));
        }
        end = str_find(s, ':');
        if (end < 0)
                return reg_name_is_valid(s);
        return reg_name_is_valid(str_of(s.p, (size_t) end))
               && port_part_is_valid(str_skip(s, (size_t) end));
}

bool http_token_is_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!is(s.p[i], TOKEN))
                        return false;
        return s.n > 0;
}

bool http_field_value_is_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0')
                        return false;
        return true;
}
