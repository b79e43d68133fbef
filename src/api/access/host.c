/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/host.h"

#include <arpa/inet.h>

#include "base/base.h"
#include "model/sandbox.h"

#define HOST_NAME_MAX_ 253 /* a DNS name */

static bool address_from(int family, struct str s, void *ret)
{
        char text[INET6_ADDRSTRLEN];

        if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        return inet_pton(family, text, ret) == 1;
}

static int port_from(struct str s, uint16_t *ret)
{
        if (s.n > 1 && s.p[0] == '0')
                return -EINVAL;
        return parse_port(s, ret);
}

int host_parse(struct str text, struct host *ret)
{
        struct host h = { .is_ipv6 = text.n > 0 && text.p[0] == '[' };
        ssize_t end = str_find(text, h.is_ipv6 ? ']' : ':');
        struct in6_addr address;
        struct str rest;

        if (h.is_ipv6) {
                if (end < 0)
                        return -EINVAL;
                h.name = str_of(text.p + 1, (size_t) end - 1);
                rest = str_skip(text, (size_t) end + 1);
                if (!address_from(AF_INET6, h.name, &address))
                        return -EINVAL;
        } else {
                h.name = end < 0 ? text : str_of(text.p, (size_t) end);
                rest = str_skip(text, h.name.n);
                if (h.name.n == 0 || h.name.n > HOST_NAME_MAX_)
                        return -EINVAL;
        }
        for (size_t i = 0; !h.is_ipv6 && i < h.name.n; i++) {
                char c = h.name.p[i];

                if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
                    && c != '-' && c != '.' && c != '_')
                        return -EINVAL;
        }
        if (rest.n > 0 && (rest.p[0] != ':' || port_from(str_skip(rest, 1), &h.port) < 0))
                return -EINVAL;
        *ret = h;
        return 0;
}

bool host_is_loopback(const struct host *h)
{
        struct in6_addr six;
        struct in_addr four;

        if (h->is_ipv6)
                return address_from(AF_INET6, h->name, &six) && IN6_IS_ADDR_LOOPBACK(&six);
        return str_caseeq(h->name, STR("localhost"))
               || (address_from(AF_INET, h->name, &four) && ntohl(four.s_addr) >> 24 == 127);
}

/* --- origins --- */

static int split_scheme(struct str origin, uint16_t *ret_port, struct str *ret_rest)
{
        static const struct {
                struct str scheme;
                uint16_t port;
        } known[] = { { STR("http://"), 80 }, { STR("https://"), 443 } };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (str_starts_with(origin, known[i].scheme)) {
                        *ret_port = known[i].port;
                        *ret_rest = str_skip(origin, known[i].scheme.n);
                        return 0;
                }
        return -EINVAL;
}

int origin_parse(struct str origin, struct host *ret)
{
        uint16_t port;
        struct str rest;

        return split_scheme(origin, &port, &rest) < 0 ? -EINVAL : host_parse(rest, ret);
}

bool origin_is_of(struct str origin, const struct host *h)
{
        uint16_t usual;
        struct str rest;
        struct host o;

        if (split_scheme(origin, &usual, &rest) < 0 || host_parse(rest, &o) < 0)
                return false;
        return o.is_ipv6 == h->is_ipv6 && str_caseeq(o.name, h->name)
               && (o.port ? o.port : usual) == (h->port ? h->port : usual);
}

/* --- previews --- */

/* "example.com." is the same host as "example.com". */
static struct str without_root(struct str name)
{
        return str_ends_with(name, STR(".")) ? str_of(name.p, name.n - 1) : name;
}

bool host_is_below(const struct host *h, struct str domain)
{
        struct str name = without_root(h->name);
        size_t at;

        if (h->is_ipv6 || !domain.p || name.n < domain.n + 2)
                return false;
        at = name.n - domain.n;
        return name.p[at - 1] == '.' && str_caseeq(str_skip(name, at), domain);
}

int host_parse_preview(const struct host *h, struct str domain, struct str *ret_id,
                       uint16_t *ret_port)
{
        struct str label, id;
        uint16_t port;
        char *dash;

        if (!host_is_below(h, domain))
                return -EINVAL;
        label = str_of(h->name.p, without_root(h->name).n - domain.n - 1);
        dash = memrchr(label.p, '-', label.n);
        if (!dash)
                return -EINVAL;
        id = str_of(label.p, (size_t) (dash - label.p));
        if (!sandbox_id_is_valid(id) || port_from(str_skip(label, id.n + 1), &port) < 0)
                return -EINVAL;
        *ret_id = id;
        *ret_port = port;
        return 0;
}
