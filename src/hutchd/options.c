/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/options.h"

#include "base/base.h"
#include "http/server.h"

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

static const char *set_log_level(void *target, struct str value)
{
        return options_log_level(value, &((struct options *) target)->log_level);
}

static const char *set_log_format(void *target, struct str value)
{
        return options_log_format(value, &((struct options *) target)->log_format);
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
        return parse_duration(value, &o->drain_timeout) < 0 ? "not a duration; try 10s or 500ms"
                                                            : NULL;
}

static const char *set_access_log(void *target, struct str value)
{
        struct options *o = target;
        (void) value;
        o->access_log = true;
        return NULL;
}

static const struct option options[] = {
        { "listen", "ADDRESS",
          "where to serve: HOST:PORT, [IPv6]:PORT or unix:PATH; may be given\n"
          "up to 8 times (default 127.0.0.1:8080)",
          set_listen },
        { "log-level", "LEVEL", "debug, info, warn or error (default info)", set_log_level },
        { "log-format", "FORMAT", "logfmt or json (default logfmt)", set_log_format },
        { "access-log", NULL, "log a line for each request", set_access_log },
        { "max-connections", "N", "connections served at once (default 16384)",
          set_max_connections },
        { "drain-timeout", "TIME", "time for running requests to end on SIGTERM (default 10s)",
          set_drain_timeout },
};

static const struct option_table table = {
        .program = "hutchd",
        .usage = "[OPTION]...",
        .summary = "Serves sandboxes over HTTP.",
        .manual = "hutchd(8)",
        .options = options,
        .n = ARRAY_SIZE(options),
};

enum options_result hutchd_options_parse(int argc, char **argv, struct options *ret,
                                         struct buf *text)
{
        enum options_result r;

        *ret = (struct options){
                .log_level = LOG_INFO,
                .log_format = LOG_LOGFMT,
                .drain_timeout = http_server_defaults.drain_timeout,
        };
        r = options_parse(&table, argc, argv, ret, NULL, text);
        if (ret->n_listen == 0)
                (void) set_listen(ret, STR("127.0.0.1:8080"));
        return r;
}
