/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats_url.h"

#include "base/base.h"
#include "base/parse.h"

#define EXPECTED "expected URLs such as nats://127.0.0.1:4222 or tls://nats.example.org"

static bool take(struct str *text, struct str prefix)
{
        if (!str_starts_with(*text, prefix))
                return false;
        *text = str_skip(*text, prefix.n);
        return true;
}

static bool is_host(struct str host)
{
        for (size_t i = 0; i < host.n; i++) {
                unsigned char c = (unsigned char) host.p[i];

                if (c <= ' ' || c >= 0x7f || strchr("/?#[]\\\"'<>", c))
                        return false;
        }
        return host.n > 0 && host.n <= NATS_HOST_MAX;
}

/* "host", "host:1", "[::1]", "[::1]:1" */
static bool parse_authority(struct str text, struct nats_url *ret)
{
        ssize_t end;

        ret->bracketed = take(&text, STR("["));
        end = str_find(text, ret->bracketed ? ']' : ':');
        if (ret->bracketed && end < 0)
                return false;
        ret->host = end < 0 ? text : str_of(text.p, (size_t) end);
        text = end < 0 ? STR("") : str_skip(text, (size_t) end + ret->bracketed);
        ret->port = NATS_PORT;
        if (text.n > 0 && (!take(&text, STR(":")) || parse_port(text, &ret->port) < 0))
                return false;
        return is_host(ret->host);
}

const char *nats_url_take(struct str *urls, struct nats_url *ret)
{
        ssize_t comma = str_find(*urls, ',');
        struct str url = comma < 0 ? *urls : str_of(urls->p, (size_t) comma);
        struct nats_url u = { 0 };

        if (str_find(url, '@') >= 0)
                return "a URL must not hold a name or password; use user and password_file, token_file "
                       "or credentials_file";
        u.tls = take(&url, STR("tls://"));
        if ((!u.tls && !take(&url, STR("nats://"))) || !parse_authority(url, &u))
                return EXPECTED;
        *ret = u;
        *urls = comma < 0 ? STR("") : str_skip(*urls, (size_t) comma + 1);
        return comma >= 0 && urls->n == 0 ? EXPECTED : NULL;
}

bool nats_is_bucket(struct str name)
{
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
                    && c != '-' && c != '_')
                        return false;
        }
        return name.n > 0 && name.n <= NATS_BUCKET_MAX;
}
