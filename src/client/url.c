/* SPDX-License-Identifier: Apache-2.0 */
#include "client/url.h"

#include <stdarg.h>

#include "base/parse.h"

#include "base/banned.h"

static bool is_unreserved(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
               || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Characters of an address; '?', '#' and '@' would begin a query, a fragment or a host. */
static bool is_address(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (c <= ' ' || c >= 0x7f || strchr("?#@\"<>\\^`{|}", c))
                        return false;
        }
        return true;
}

/* --- parsing --- */

static int parse_authority(struct url *u)
{
        struct str rest = u->authority;
        size_t host = 0;
        uint16_t port;

        if (rest.n > 0 && rest.p[0] == '[') {
                ssize_t end = str_find(rest, ']');

                if (end < 2)
                        return -EINVAL;
                host = (size_t) end + 1;
        } else {
                ssize_t colon = str_find(rest, ':');

                host = colon < 0 ? rest.n : (size_t) colon;
        }
        u->host = str_of(rest.p, host);
        rest = str_skip(rest, host);
        if (host == 0 || (rest.n > 0 && rest.p[0] != ':'))
                return -EINVAL;
        if (rest.n == 0)
                return 0;
        if (parse_port(str_skip(rest, 1), &port) < 0)
                return -EINVAL;
        u->port = port;
        return 0;
}

int url_parse(struct str text, struct url *ret)
{
        static const struct {
                struct str prefix;
                int port;
        } schemes[] = { { STR("http://"), 80 }, { STR("https://"), 443 } };
        struct url u = { 0 };
        ssize_t slash;

        if (!is_address(text))
                return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
                struct str prefix = schemes[i].prefix;

                if (text.n <= prefix.n || !str_caseeq(str_of(text.p, prefix.n), prefix))
                        continue;
                u.scheme = str_of(prefix.p, prefix.n - 3);
                u.port = schemes[i].port;
                u.authority = str_skip(text, prefix.n);
        }
        if (!u.scheme.p)
                return -EINVAL;
        slash = str_find(u.authority, '/');
        if (slash >= 0)
                u.authority.n = (size_t) slash;
        while (text.n > 0 && text.p[text.n - 1] == '/')
                text.n--;
        u.text = text;
        if (parse_authority(&u) < 0)
                return -EINVAL;
        *ret = u;
        return 0;
}

/* --- building --- */

void url_add_base(struct buf *b, const struct url *server)
{
        buf_add_str(b, server->text);
        if (!str_ends_with(server->text, STR("/v1")))
                buf_add_str(b, STR("/v1"));
}

void url_add_root(struct buf *b, const struct url *server)
{
        struct str text = server->text;

        if (str_ends_with(text, STR("/v1")))
                text.n -= strlen("/v1");
        while (text.n > 0 && text.p[text.n - 1] == '/')
                text.n--;
        buf_add_str(b, text);
}

void url_add_endpoint(struct buf *b, struct str scheme, struct str endpoint)
{
        struct url u;

        if (url_parse(endpoint, &u) == 0) {
                buf_add_str(b, u.text);
                return;
        }
        while (endpoint.n > 0 && endpoint.p[endpoint.n - 1] == '/')
                endpoint.n--;
        buf_add_str(b, scheme);
        buf_add_str(b, STR("://"));
        buf_add_str(b, endpoint);
}

/* "." and ".." are special as segments, so they are escaped, too. */
void url_add_escaped(struct buf *b, struct str value)
{
        static const char digits[] = "0123456789ABCDEF";
        bool dots = str_eq(value, STR(".")) || str_eq(value, STR(".."));

        for (size_t i = 0; i < value.n; i++) {
                unsigned char c = (unsigned char) value.p[i];

                if (is_unreserved((char) c) && !dots) {
                        buf_add_char(b, (char) c);
                } else {
                        buf_add_char(b, '%');
                        buf_add_char(b, digits[c >> 4]);
                        buf_add_char(b, digits[c & 15]);
                }
        }
}

void url_add(struct buf *b, const char *pattern, ...)
{
        va_list ap;

        va_start(ap, pattern);
        for (const char *p = pattern; *p; p++) {
                if (p[0] == '{' && p[1] == '}') {
                        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): as in error.c */
                        url_add_escaped(b, str_from(va_arg(ap, const char *)));
                        p++;
                } else {
                        buf_add_char(b, *p);
                }
        }
        va_end(ap);
}

bool url_is_header(struct str s, bool name)
{
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char) s.p[i];

                if (c < ' ' || c == 0x7f || (name && (c <= ' ' || c == ':' || c >= 0x7f)))
                        return false;
        }
        return !name || s.n > 0;
}
