/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/options.h"

#include <stdio.h>

#include "base/base.h"
#include "http/server.h"

/* Returns what is wrong with the value, or NULL. */
typedef const char *option_fn(struct options *o, struct str value);

struct option {
        const char *name;
        const char *value; /* NULL: takes none */
        const char *help;
        option_fn *set;
};

static const char *set_listen(struct options *o, struct str value)
{
        if (o->n_listen == LISTEN_MAX)
                return "too many addresses (at most 8)";
        if (sock_addr_from_string(value, &o->listen[o->n_listen]) < 0)
                return "not an address; try 127.0.0.1:8080, [::1]:8080 or unix:/run/hutchd.sock";
        o->n_listen++;
        return NULL;
}

static const char *set_log_level(struct options *o, struct str value)
{
        int v = log_level_from_string(value);

        if (v < 0)
                return "not a level; try debug, info, warn or error";
        o->log_level = (enum log_level) v;
        return NULL;
}

static const char *set_log_format(struct options *o, struct str value)
{
        int v = log_format_from_string(value);

        if (v < 0)
                return "not a format; try logfmt or json";
        o->log_format = (enum log_format) v;
        return NULL;
}

static const char *set_max_connections(struct options *o, struct str value)
{
        if (parse_u64_max(value, 1000000, &o->max_connections) < 0 || o->max_connections == 0)
                return "not a number from 1 to 1000000";
        return NULL;
}

static const char *set_drain_timeout(struct options *o, struct str value)
{
        return parse_duration(value, &o->drain_timeout) < 0 ? "not a duration; try 10s or 500ms"
                                                            : NULL;
}

static const char *set_access_log(struct options *o, struct str value)
{
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

static void print_help(void)
{
        printf("Usage: hutchd [OPTION]...\n\nServes sandboxes over HTTP.\n\n");
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                struct str rest = str_from(options[i].help), line;
                char left[40];
                const char *sep = options[i].value ? " " : "";

                (void) snprintf(left, sizeof(left), "--%s%s%s", options[i].name, sep,
                                options[i].value ? options[i].value : "");
                for (const char *head = left; str_split(&rest, '\n', &line); head = "")
                        printf("  %-24s %.*s\n", head, STR_ARG(line));
        }
        printf("  %-24s %s\n  %-24s %s\n\nSee hutchd(8).\n", "--help", "show this and exit",
               "--version", "show the version and exit");
}

static const struct option *find_option(struct str name)
{
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                if (str_eq(name, str_from(options[i].name)))
                        return &options[i];
        return NULL;
}

static int complain(struct str arg, const char *what)
{
        fprintf(stderr, "hutchd: %.*s: %s\nTry 'hutchd --help'.\n", STR_ARG(arg), what);
        return -EINVAL;
}

/* One argument "--name", "--name value" or "--name=value"; returns how many words it took. */
static int parse_one(char **argv, int left, struct options *o)
{
        struct str arg = str_from(argv[0]), name = str_skip(arg, 2), value = STR_NULL;
        ssize_t eq = str_find(name, '=');
        const struct option *opt;
        const char *wrong;
        int used = 1;

        if (!str_starts_with(arg, STR("--")))
                return complain(arg, "unexpected argument");
        if (eq >= 0) {
                value = str_skip(name, (size_t) eq + 1);
                name.n = (size_t) eq;
        }
        opt = find_option(name);
        if (!opt)
                return complain(arg, "unknown option");
        if (!opt->value && value.p)
                return complain(arg, "takes no value");
        if (opt->value && !value.p) {
                if (left < 2)
                        return complain(arg, "needs a value");
                value = str_from(argv[1]);
                used = 2;
        }
        wrong = opt->set(o, value);
        return wrong ? complain(arg, wrong) : used;
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
        *ret = (struct options){
                .log_level = LOG_INFO,
                .log_format = LOG_LOGFMT,
                .drain_timeout = http_server_defaults.drain_timeout,
        };
        for (int i = 1, used; i < argc; i += used) {
                if (strcmp(argv[i], "--help") == 0) {
                        print_help();
                        return OPTIONS_EXIT_OK;
                }
                if (strcmp(argv[i], "--version") == 0) {
                        printf("hutchd %s\n", HUTCH_VERSION);
                        return OPTIONS_EXIT_OK;
                }
                used = parse_one(argv + i, argc - i, ret);
                if (used < 0)
                        return OPTIONS_EXIT_USAGE;
        }
        if (ret->n_listen == 0)
                (void) set_listen(ret, STR("127.0.0.1:8080"));
        return OPTIONS_RUN;
}
