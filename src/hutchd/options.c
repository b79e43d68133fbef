/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/options.h"

#include "base/base.h"
#include "model/text.h"

/* An option without a value, and one whose value is a text that is not empty. */
#define FLAG(m)                                                    \
        static const char *set_##m(void *target, struct str value) \
        {                                                          \
                (void) value;                                      \
                ((struct options *) target)->m = true;             \
                return NULL;                                       \
        }
#define TEXT(m, wrong)                                             \
        static const char *set_##m(void *target, struct str value) \
        {                                                          \
                ((struct options *) target)->m = value.p;          \
                return value.n == 0 ? (wrong) : NULL;              \
        }

FLAG(check_config)
FLAG(print_reference)
FLAG(insecure)
FLAG(access_log)
TEXT(config, "not a file")
TEXT(data, "not a directory")
TEXT(user, "not a user")

static const char *set_listen(void *target, struct str value)
{
        struct options *o = target;

        if (o->n_listen == LISTEN_MAX)
                return "too many addresses (at most 8)";
        if (sock_addr_from_string(value, &o->listen[o->n_listen]) < 0)
                return "not an address; try 127.0.0.1:8080, [::1]:8080 or unix:/run/hutchd.sock";
        o->n_listen++;
        return NULL;
}

static const char *set_warden(void *target, struct str value)
{
        struct options *o = target;
        uint64_t fd;

        if (parse_u64_max(value, INT32_MAX, &fd) < 0)
                return "not a descriptor";
        o->warden = (int) fd;
        return NULL;
}

static const char *set_driver(void *target, struct str value)
{
        struct options *o = target;

        if (o->n_drivers == DRIVERS_MAX)
                return "too many drivers (at most 8)";
        if (!text_is_dns_label(value))
                return "not the name of a driver";
        for (size_t i = 0; i < o->n_drivers; i++)
                if (str_eq(value, str_from(o->drivers[i])))
                        return "is given twice";
        o->drivers[o->n_drivers++] = value.p;
        return NULL;
}

static const char *set_log_level(void *target, struct str value)
{
        struct options *o = target;

        o->has_log_level = true;
        return options_log_level(value, &o->log_level);
}

static const char *set_log_format(void *target, struct str value)
{
        struct options *o = target;

        o->has_log_format = true;
        return options_log_format(value, &o->log_format);
}

static const char *set_max_connections(void *target, struct str value)
{
        struct options *o = target;

        if (parse_u64_max(value, 1000000, &o->max_connections) < 0 || o->max_connections == 0)
                return "not a number from 1 to 1000000";
        return NULL;
}

static const char *set_drain_timeout(void *target, struct str value)
{
        struct options *o = target;

        o->has_drain_timeout = true;
        return parse_duration(value, &o->drain_timeout) < 0 ? "not a duration; try 10s or 500ms"
                                                            : NULL;
}

static const struct option options[] = {
        { "listen", "ADDRESS",
          "address to serve: HOST:PORT, [IPv6]:PORT or unix:PATH; may be given\n"
          "up to 8 times (default 127.0.0.1:8080)",
          set_listen },
        { "data", "DIR",
          "data directory (default /var/lib/hutch for root, else\n"
          "$XDG_STATE_HOME/hutch or ~/.local/state/hutch)",
          set_data },
        { "driver", "NAME",
          "driver of sandboxes; may be given up to 8 times, the first is the\n"
          "default: \"native\" (needs root), \"docker\", \"podman\", or \"fake\",\n"
          "which runs nothing and is for tests",
          set_driver },
        { "user", "USER",
          "if started as root, become this user, a name or a uid; with the\n"
          "driver native the default is \"hutch\", or an unused uid",
          set_user },
        { "config", "FILE", "read hutchd.yaml(5); the command line wins", set_config },
        { "check-config", NULL, "check the configuration and exit", set_check_config },
        { "print-config-reference", NULL,
          "print the reference section of hutchd.yaml(5) as roff and exit", set_print_reference },
        { "insecure", NULL,
          "without any API key, serve on addresses that others can reach,\n"
          "not only on loopback and unix sockets",
          set_insecure },
        { "log-level", "LEVEL", "debug, info, warn or error (default info)", set_log_level },
        { "log-format", "FORMAT", "logfmt or json (default logfmt)", set_log_format },
        { "access-log", NULL, "log a line for each request", set_access_log },
        { "max-connections", "N", "connections served at once (default 16384)",
          set_max_connections },
        { "drain-timeout", "TIME", "time for running requests to end on SIGTERM (default 10s)",
          set_drain_timeout },
        { "warden-fd", "N", "socket to hutch-warden, from hutch-launcher(8)", set_warden },
};

static const struct option_table table = {
        .program = "hutchd",
        .usage = "[OPTION]...",
        .summary = "Serves sandboxes over HTTP.",
        .manual = "hutchd(8), hutchd.yaml(5)",
        .options = options,
        .n = ARRAY_SIZE(options),
};

enum options_result hutchd_options_parse(int argc, char **argv, struct options *ret,
                                         struct buf *text)
{
        *ret = (struct options){ .warden = -EBADF };
        return options_parse(&table, argc, argv, ret, NULL, text);
}
