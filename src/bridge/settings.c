/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/settings.h"

#include <sys/stat.h>

#include "base/base.h"
#include "bridge/transport.h"
#include "config/table.h"

/* --- URLs of brokers --- */

static const char *keep(struct settings *s, struct str v, const char **ret)
{
        *ret = arena_dup(&s->memory, v);
        return *ret ? NULL : "is too long";
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
                return "expected a URL without user and password; use the settings for these";
        if (colon >= 0) {
                host.n = from + (size_t) colon;
                if (parse_u64_max(str_skip(authority, host.n + 1), 65535, &port) < 0 || port == 0)
                        return "expected a port from 1 to 65535";
        }
        for (size_t i = 0; i < host.n; i++)
                if ((unsigned char) host.p[i] <= ' ' || (unsigned char) host.p[i] >= 0x7f)
                        return "expected a host name or an address";
        s->port = (int) port;
        return host.n == 0 ? "expected a host" : keep(s, host, &s->host);
}

static int hex_digit(char c)
{
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *p = c ? strchr(digits, c) : NULL;

        return p ? (int) ((p - digits) % 16) : -1;
}

/* With "%2F" decoded. */
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
                        return "expected a path with %XX escapes";
                to[n - 1] = (char) (high * 16 + low);
                i += 2;
        }
        to[n] = '\0';
        s->path = to;
        return NULL;
}

/* The key is the name of the transport. */
static const char *set_url(struct config_read *r, void *field, struct str v)
{
        struct settings *s = r->target;
        struct str rest = v, authority;
        ssize_t slash;
        const char *wrong;

        (void) field;
        if (s->url)
                return "expected only one broker";
        for (size_t i = 0; transports[i] && !s->transport; i++)
                if (strcmp(transports[i]->name, r->key->path) == 0)
                        s->transport = transports[i];
        if (!s->transport)
                return "this program was built without the library for that broker";
        if (!take_scheme(s, &rest))
                return "expected a URL of such a broker; see hutch-bridge(8)";
        slash = str_find(rest, '/');
        authority = slash < 0 ? rest : str_of(rest.p, (size_t) slash);
        rest = slash < 0 ? STR_NULL : str_skip(rest, (size_t) slash + 1);
        wrong = take_authority(s, authority);
        if (!wrong && rest.n > 0)
                wrong = s->transport->has_path ? take_path(s, rest)
                                               : "expected a URL without a path";
        return wrong ? wrong : keep(s, v, &s->url);
}

/* --- other values --- */

static const char *set_hutchd(struct config_read *r, void *field, struct str v)
{
        static const struct str unix_scheme = STR("unix:");
        struct settings *s = r->target;

        (void) field;
        if (str_starts_with(v, unix_scheme)) {
                s->hutchd_url = "http://localhost";
                return keep(s, str_skip(v, unix_scheme.n), &s->hutchd_socket);
        }
        s->hutchd_socket = NULL;
        if (!str_starts_with(v, STR("https://")) && !str_starts_with(v, STR("http://")))
                return "expected an address such as unix:/run/hutch/hutchd.sock or https://HOST";
        return keep(s, v, &s->hutchd_url);
}

static bool is_name(struct str v)
{
        for (size_t i = 0; i < v.n; i++) {
                char c = v.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
                    && c != '_' && c != '-')
                        return false;
        }
        return v.n > 0 && v.n <= 64;
}

static bool is_instance(struct str v)
{
        return is_name(v) && v.n <= 32;
}

/* --- the table --- */

#define S struct settings

/* clang-format off */
/* key, option, what it takes, help, row */
#define SETTING_MAP(X)                                                                              \
        X(nats, "nats", "URL", "the broker: nats://HOST[:PORT] or tls://HOST[:PORT]",                \
          CONFIG_CUSTOM(S, url, set_url), .hidden = true)                                                           \
        X(mqtt, "mqtt", "URL", "the broker: mqtt://HOST[:PORT] or mqtts://HOST[:PORT]",              \
          CONFIG_CUSTOM(S, url, set_url), .hidden = true)                                                           \
        X(amqp, "amqp", "URL",                                                                       \
          "the broker: amqp://HOST[:PORT][/VHOST] or amqps://HOST[:PORT][/VHOST]",                   \
          CONFIG_CUSTOM(S, url, set_url), .hidden = true)                                                           \
        X(user, "user", "NAME", "user name for the broker", CONFIG_TEXT(S, user))                    \
        X(password_file, "password-file", "FILE", "holds the password of that user",                 \
          CONFIG_TEXT(S, password_file))                                                             \
        X(token_file, "token-file", "FILE", "NATS: holds a token instead",                           \
          CONFIG_TEXT(S, token_file))                                                                \
        X(credentials, "credentials", "FILE", "NATS: a .creds file instead",                         \
          CONFIG_TEXT(S, credentials))                                                               \
        X(ca, "ca", "FILE", "certificate authorities for the broker\n(default: those of the system)", \
          CONFIG_TEXT(S, ca))                                                                        \
        X(cert, "cert", "FILE", "client certificate for the broker", CONFIG_TEXT(S, cert))           \
        X(cert_key, "cert-key", "FILE", "key of that certificate", CONFIG_TEXT(S, cert_key))         \
        X(prefix, "prefix", "NAME", "prefix of all names on the broker", CONFIG_STR(S, prefix),      \
          .check = is_name, .expected = "a name of up to 64 letters, digits, \"_\" and \"-\"",       \
          .value = "purista")                                                                        \
        X(instance, "instance", "ID", "instance id (default: a new one, 32 digits)",                 \
          CONFIG_TEXT(S, instance), .check = is_instance,                                            \
          .expected = "a name of up to 32 letters, digits, \"_\" and \"-\"")                         \
        X(hutchd, "hutchd", "ADDRESS", "hutchd: unix:PATH or https://HOST[:PORT]",                   \
          CONFIG_CUSTOM(S, hutchd_url, set_hutchd), .value = "unix:/run/hutch/hutchd.sock")          \
        X(hutchd_ca, "hutchd-ca", "FILE", "certificate authorities for hutchd",                      \
          CONFIG_TEXT(S, hutchd_ca))                                                                 \
        X(key_file, "key-file", "FILE", "holds the API key for hutchd", CONFIG_TEXT(S, key_file))    \
        X(in_flight, "in-flight", "N", "commands that run at once", CONFIG_UINT(S, in_flight),       \
          .min = 1, .max = 65535, .value = "256")                                                    \
        X(in_flight_per_tenant, "in-flight-per-tenant", "N",                                         \
          "of these, commands of one tenant\n(default: a quarter)",                                  \
          CONFIG_UINT(S, in_flight_per_tenant), .min = 1, .max = 65535,                              \
          .otherwise = "a quarter of in_flight")                                                     \
        X(waiting, "waiting", "N", "commands that may wait besides", CONFIG_UINT(S, waiting),        \
          .min = 1, .max = 1000000, .value = "4096")                                                 \
        X(caller_timeout, "caller-timeout", "TIME",                                                  \
          "how long callers wait whose messages do not say it;\nthen their commands end (0s: not)",  \
          CONFIG_TIME(S, caller_timeout), .max = UINT64_MAX, .zero = "no limit", .value = "0s")      \
        X(drain_timeout, "drain-timeout", "TIME", "time for running commands to end on SIGTERM",     \
          CONFIG_TIME(S, drain_timeout), .max = UINT64_MAX, .value = "60s")                          \
        X(log_level, "log-level", "LEVEL", "debug, info, warn or error",                             \
          CONFIG_ENUM(S, log_level, &log_level_table), .value = "info")                              \
        X(log_format, "log-format", "FORMAT", "logfmt or json",                                      \
          CONFIG_ENUM(S, log_format, &log_format_table), .value = "logfmt")
/* clang-format on */

static const struct config_key keys[] = {
#define X(id, option, arg, help, ...) { #id, __VA_ARGS__ },
        SETTING_MAP(X)
#undef X
};

static const struct config_table table = {
        .keys = keys,
        .n = ARRAY_SIZE(keys),
        .manual = "hutch-bridge(8)",
};

/* --- memory --- */

static struct settings *settings_new(void)
{
        struct settings *s = xnew(struct settings);

        arena_init(&s->memory, SETTINGS_ARENA_MAX);
        config_table_defaults(&table, s, &s->memory);
        return s;
}

void settings_free(struct settings *s)
{
        if (!s)
                return;
        secret_free(s->password);
        secret_free(s->token);
        secret_free(s->key);
        arena_done(&s->memory);
        free(s);
}

static void settings_freep(struct settings **s)
{
        settings_free(*s);
}

/* --- settings that depend on each other --- */

static int complete(struct settings *s, struct err *e)
{
        const struct {
                const char *name, *path;
                struct secret **ret;
        } secrets[] = {
                { "password_file", s->password_file, &s->password },
                { "token_file", s->token_file, &s->token },
                { "key_file", s->key_file, &s->key },
        };
        const struct str url = str_from(s->hutchd_url);
        const bool loopback = str_starts_with(url, STR("http://localhost"))
                              || str_starts_with(url, STR("http://127."))
                              || str_starts_with(url, STR("http://[::1]"));
        const struct {
                bool wrong;
                const char *what;
        } rules[] = {
                { !s->url, "no broker is configured; use --nats, --mqtt or --amqp" },
                { !s->cert != !s->cert_key, "cert and cert_key need each other" },
                { s->password_file && !s->user, "password_file needs user" },
                { (s->ca || s->cert) && !s->tls, "ca and cert need a URL with TLS" },
                { s->in_flight_per_tenant > s->in_flight,
                  "in_flight_per_tenant must not be larger than in_flight" },
                { !s->hutchd_socket && str_starts_with(url, STR("http://")) && !loopback,
                  "hutchd on another host needs https://" },
        };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if (rules[i].wrong)
                        return err_set(e, ERR_INVALID, "%s", rules[i].what);
        if (s->in_flight_per_tenant == 0)
                s->in_flight_per_tenant = MAX_OF(s->in_flight / 4, 1U);
        if (s->caller_timeout == 0)
                s->caller_timeout = USEC_INFINITY;
        for (size_t i = 0; i < ARRAY_SIZE(secrets) && r == 0; i++)
                if (secrets[i].path)
                        r = config_secret_read(secrets[i].name, secrets[i].path, secrets[i].ret, e);
        return r;
}

int settings_from_text(struct str text, const char *name, struct settings **ret, struct err *e)
{
        scoped(settings_freep) struct settings *s = settings_new();
        int r = config_table_read(&table, &(struct config_source){ .text = text, .name = name }, s,
                                  &s->memory, e);

        if (r == 0)
                r = complete(s, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

/* --- the command line --- */

struct line {
        struct settings *settings;
        bool given[ARRAY_SIZE(keys)];
};

/* A broker replaces any broker of the file: their rows have the same field. */
static const char *take(struct line *l, const char *id, struct str v)
{
        const struct config_key *k = keys;

        while (strcmp(k->path, id) != 0)
                k++;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                l->given[i] = l->given[i] || keys[i].offset == k->offset;
        return config_table_set(&table, id, v, l->settings, &l->settings->memory);
}

#define X(id, option, arg, help, ...)                            \
        static const char *take_##id(void *target, struct str v) \
        {                                                        \
                return take(target, #id, v);                     \
        }
SETTING_MAP(X)
#undef X

static const char *take_config(void *target, struct str v)
{
        struct line *l = target;

        l->settings->config = v.p;
        return v.n == 0 ? "expected a file" : NULL;
}

static const char *take_check(void *target, struct str v)
{
        struct line *l = target;

        (void) v;
        l->settings->check_only = true;
        return NULL;
}

static const struct option options[] = {
#define X(id, option, arg, help, ...) { option, arg, help, take_##id },
        SETTING_MAP(X)
#undef X
                { "config", "FILE", "read settings from this file; the command line wins",
                  take_config },
        { "check-config", NULL, "check the settings and exit", take_check },
};

/* Keys that the command line has given are ignored in the file. */
static int read_file(struct settings *s, const bool *given, struct err *e)
{
        scoped(buf_done) struct buf text;
        int r = config_file_read(s->config, SETTINGS_FILE_MAX, S_IWOTH, &text, NULL, e);

        if (r < 0)
                return r;
        return config_table_read(&table,
                                 &(struct config_source){ .text = buf_str(&text),
                                                          .name = s->config,
                                                          .overridden = given },
                                 s, &s->memory, e);
}

enum options_result settings_parse(int argc, char **argv, struct settings **ret, struct buf *text)
{
        scoped(settings_freep) struct settings *s = settings_new();
        struct line line = { .settings = s };
        struct option with_defaults[ARRAY_SIZE(options)];
        const struct option_table option_table = {
                .program = "hutch-bridge",
                .usage = "[OPTION]...",
                .summary = "Serves PURISTA's sandbox commands on a message broker.",
                .manual = "hutch-bridge(8)",
                .options = with_defaults,
                .n = ARRAY_SIZE(options),
        };
        enum options_result parsed;
        struct err e;
        int r;

        /* --help shows the defaults of the table. */
        memcpy(with_defaults, options, sizeof(options));
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (keys[i].value)
                        with_defaults[i].help = arena_printf(&s->memory, "%s\n(default %s)",
                                                             options[i].help, keys[i].value);
        parsed = options_parse(&option_table, argc, argv, &line, NULL, text);
        if (parsed != OPTIONS_RUN)
                return parsed;
        r = s->config ? read_file(s, line.given, &e) : 0;
        if (r == 0)
                r = complete(s, &e);
        if (r < 0) {
                buf_addf(text, "hutch-bridge: %s\n", e.message);
                return OPTIONS_EXIT_USAGE;
        }
        if (s->check_only) {
                buf_add_str(text, STR("hutch-bridge: configuration OK\n"));
                return OPTIONS_EXIT_OK;
        }
        *ret = TAKE_PTR(s);
        return OPTIONS_RUN;
}
