/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bridge/settings_told.h"
#include "bridge/transport.h"

static const char *keep(struct settings *s, struct str v, const char **ret)
{
        *ret = arena_dup(&s->memory, v);
        if (v.n == 0)
                return "is empty";
        return *ret ? NULL : "is too long";
}

/* --- brokers --- */

static const struct transport_ops *find_transport(const char *name)
{
        for (size_t i = 0; transports[i]; i++)
                if (strcmp(transports[i]->name, name) == 0)
                        return transports[i];
        return NULL;
}

static bool take_scheme(struct settings *s, struct str *url)
{
        for (size_t i = 0; i < 2; i++) {
                struct str scheme = str_from(s->transport->schemes[i]);
                struct str rest = str_skip(*url, scheme.n);

                if (!str_starts_with(*url, scheme) || !str_starts_with(rest, STR("://")))
                        continue;
                s->tls = i == 1;
                *url = str_skip(rest, strlen("://"));
                return true;
        }
        return false;
}

/* "host", "host:1", "[::1]:1" */
static const char *take_authority(struct settings *s, struct str authority)
{
        struct str host = authority;
        size_t from = authority.n > 0 && authority.p[0] == '['
                              ? (size_t) MAX_OF(str_find(authority, ']'), 0)
                              : 0;
        ssize_t colon = str_find(str_skip(authority, from), ':');
        uint64_t port = (uint64_t) (s->tls ? s->transport->tls_port : s->transport->port);

        if (str_find(authority, '@') >= 0)
                return "holds a name or a password; use user, password_file or the like";
        if (colon >= 0) {
                host.n = from + (size_t) colon;
                if (parse_u64_max(str_skip(authority, host.n + 1), 65535, &port) < 0 || port == 0)
                        return "has no right port";
        }
        for (size_t i = 0; i < host.n; i++)
                if ((unsigned char) host.p[i] <= ' ' || (unsigned char) host.p[i] >= 0x7f)
                        return "is no URL";
        s->port = (int) port;
        return host.n == 0 ? "names no host" : keep(s, host, &s->host);
}

static int hex_digit(char c)
{
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *p = c ? strchr(digits, c) : NULL;

        return p ? (int) ((p - digits) % 16) : -1;
}

/* "%2F" */
static const char *take_path(struct settings *s, struct str path)
{
        char *to = arena_dup(&s->memory, path);
        size_t n = 0;

        if (!to)
                return "is too long";
        for (size_t i = 0; i < path.n; i++) {
                int high, low;

                to[n++] = path.p[i];
                if (path.p[i] != '%')
                        continue;
                high = path.n - i > 2 ? hex_digit(path.p[i + 1]) : -1;
                low = path.n - i > 2 ? hex_digit(path.p[i + 2]) : -1;
                if (high < 0 || low < 0 || high + low == 0)
                        return "has a path that is not escaped rightly";
                to[n - 1] = (char) (high * 16 + low);
                i += 2;
        }
        to[n] = '\0';
        s->path = to;
        return NULL;
}

static const char *apply_url(struct settings *s, struct str v, const char *transport)
{
        struct str rest = v, authority;
        ssize_t slash;
        const char *what;

        if (s->url)
                return "is one broker too many";
        s->transport = find_transport(transport);
        if (!s->transport)
                return "is not supported: this program was built without that broker's library";
        if (!take_scheme(s, &rest))
                return "is no URL of such a broker; hutch-bridge(8) shows their form";
        slash = str_find(rest, '/');
        authority = slash < 0 ? rest : str_of(rest.p, (size_t) slash);
        rest = slash < 0 ? STR_NULL : str_skip(rest, (size_t) slash + 1);
        what = take_authority(s, authority);
        if (!what && rest.n > 0)
                what = s->transport->has_path ? take_path(s, rest) : "has a path";
        return what ? what : keep(s, v, &s->url);
}

const char *apply_nats(void *settings, struct str v)
{
        return apply_url(settings, v, "nats");
}

const char *apply_mqtt(void *settings, struct str v)
{
        return apply_url(settings, v, "mqtt");
}

const char *apply_amqp(void *settings, struct str v)
{
        return apply_url(settings, v, "amqp");
}

/* --- files and names --- */

#define APPLY_TEXT(id)                                       \
        const char *apply_##id(void *settings, struct str v) \
        {                                                    \
                struct settings *s = settings;               \
                                                             \
                return keep(s, v, &s->id);                   \
        }

APPLY_TEXT(user)
APPLY_TEXT(password_file)
APPLY_TEXT(token_file)
APPLY_TEXT(credentials)
APPLY_TEXT(ca)
APPLY_TEXT(cert)
APPLY_TEXT(cert_key)
APPLY_TEXT(hutchd_ca)
APPLY_TEXT(key_file)

static bool is_name(struct str v, const char *more)
{
        for (size_t i = 0; i < v.n; i++) {
                char c = v.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
                    && !strchr(more, c))
                        return false;
        }
        return v.n > 0;
}

const char *apply_prefix(void *settings, struct str v)
{
        struct settings *s = settings;
        const char *text;

        if (!is_name(v, "_-") || v.n > 64)
                return "is no name of letters, digits, \"_\" and \"-\"";
        (void) keep(s, v, &text);
        s->prefix = str_from(text);
        return NULL;
}

const char *apply_instance(void *settings, struct str v)
{
        struct settings *s = settings;

        return is_name(v, "_-") && v.n <= 32
                       ? keep(s, v, &s->instance)
                       : "is no name of at most 32 letters, digits, \"_\" and \"-\"";
}

/* --- hutchd --- */

const char *apply_hutchd(void *settings, struct str v)
{
        struct settings *s = settings;
        static const struct str unix_scheme = STR("unix:");

        if (str_starts_with(v, unix_scheme)) {
                s->hutchd_url = "http://localhost";
                return keep(s, str_skip(v, unix_scheme.n), &s->hutchd_socket);
        }
        s->hutchd_socket = NULL;
        if (!str_starts_with(v, STR("https://")) && !str_starts_with(v, STR("http://")))
                return "is no address; try unix:/run/hutch/hutchd.sock or https://HOST";
        return keep(s, v, &s->hutchd_url);
}

/* --- numbers --- */

static const char *apply_number(struct str v, uint64_t max, unsigned *ret)
{
        uint64_t n;

        if (parse_u64_max(v, max, &n) < 0 || n == 0)
                return "is no number, or too large";
        *ret = (unsigned) n;
        return NULL;
}

const char *apply_in_flight(void *settings, struct str v)
{
        return apply_number(v, 65535, &((struct settings *) settings)->in_flight);
}

const char *apply_waiting(void *settings, struct str v)
{
        return apply_number(v, 1000000, &((struct settings *) settings)->waiting);
}

const char *apply_drain_timeout(void *settings, struct str v)
{
        struct settings *s = settings;

        return parse_duration(v, &s->drain_timeout) < 0 ? "is no duration; try 60s or 500ms" : NULL;
}

const char *apply_log_level(void *settings, struct str v)
{
        return options_log_level(v, &((struct settings *) settings)->log_level);
}

const char *apply_log_format(void *settings, struct str v)
{
        return options_log_format(v, &((struct settings *) settings)->log_format);
}
