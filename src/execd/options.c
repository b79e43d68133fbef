/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/options.h"

#include "base/base.h"

static const char *set_listen(void *target, struct str value)
{
        struct execd_options *o = target;

        if (o->n_listen == EXECD_LISTEN_MAX)
                return "too many addresses (at most 4)";
        if (sock_addr_from_string(value, &o->listen[o->n_listen]) < 0)
                return "not an address; try 0.0.0.0:44772, [::1]:44772 or unix:/run/execd.sock";
        o->n_listen++;
        return NULL;
}

static const char *set_fd(struct str value, int *ret)
{
        uint64_t v;

        if (parse_u64_max(value, INT32_MAX, &v) < 0)
                return "not a descriptor number";
        *ret = (int) v;
        return NULL;
}

static const char *set_listen_fd(void *target, struct str value)
{
        return set_fd(value, &((struct execd_options *) target)->listen_fd);
}

static const char *set_socket_mode(void *target, struct str value)
{
        int mode = 0;

        if (value.n == 0 || value.n > 4)
                return "not a mode; try 0700";
        for (size_t i = 0; i < value.n; i++) {
                if (value.p[i] < '0' || value.p[i] > '7')
                        return "not a mode; try 0700";
                mode = mode * 8 + (value.p[i] - '0');
        }
        ((struct execd_options *) target)->socket_mode = mode & 0777;
        return NULL;
}

static const char *set_token_fd(void *target, struct str value)
{
        return set_fd(value, &((struct execd_options *) target)->token_fd);
}

static const char *set_dir(struct str value, struct str *ret)
{
        if (!str_starts_with(value, STR("/")))
                return "not an absolute path";
        *ret = value;
        return NULL;
}

static const char *set_workspace(void *target, struct str value)
{
        return set_dir(value, &((struct execd_options *) target)->workspace);
}

static const char *set_state_dir(void *target, struct str value)
{
        return set_dir(value, &((struct execd_options *) target)->state_dir);
}

static const char *set_size(struct str value, uint64_t *ret)
{
        uint64_t v;

        if (parse_bytes(value, &v) < 0 || v < 4096 || v > INT64_MAX)
                return "not a size of at least 4096 bytes; try 256Mi";
        *ret = v;
        return NULL;
}

static const char *set_output_max(void *target, struct str value)
{
        return set_size(value, &((struct execd_options *) target)->output_max);
}

static const char *set_entrypoint_max(void *target, struct str value)
{
        return set_size(value, &((struct execd_options *) target)->entrypoint_max);
}

static const char *set_relay(void *target, struct str value)
{
        if (!str_starts_with(value, STR("/")) || value.n > 100)
                return "not the path of a socket";
        ((struct execd_options *) target)->relay = value.p;
        return NULL;
}

static const char *add_mounted(void *target, struct str value)
{
        struct execd_options *o = target;

        if (o->n_mounted == EXECD_MOUNTS_MAX)
                return "too many mounts (at most 64)";
        o->mounted[o->n_mounted++] = value;
        return NULL;
}

static const char *set_log_level(void *target, struct str value)
{
        return options_log_level(value, &((struct execd_options *) target)->log_level);
}

static const char *set_log_format(void *target, struct str value)
{
        return options_log_format(value, &((struct execd_options *) target)->log_format);
}

static const char *set_access_log(void *target, struct str value)
{
        (void) value;
        ((struct execd_options *) target)->access_log = true;
        return NULL;
}

static const char *set_stay(void *target, struct str value)
{
        (void) value;
        ((struct execd_options *) target)->stay = true;
        return NULL;
}

static const char *set_ignore_signals(void *target, struct str value)
{
        (void) value;
        ((struct execd_options *) target)->ignore_signals = true;
        return NULL;
}

static const char *set_seal(void *target, struct str value)
{
        (void) value;
        ((struct execd_options *) target)->seal = true;
        return NULL;
}

static const struct option options[] = {
        { "listen", "ADDRESS",
          "where to serve: HOST:PORT, [IPv6]:PORT or unix:PATH; up to 4\n"
          "times (default 0.0.0.0:44772, or none with --listen-fd)",
          set_listen },
        { "listen-fd", "N", "serve on this inherited listening socket", set_listen_fd },
        { "socket-mode", "MODE", "mode of unix sockets, set once they accept connections",
          set_socket_mode },
        { "access-token-fd", "N",
          "read the access token from this descriptor (default: variable\n"
          "EXECD_ACCESS_TOKEN; without a token there is no authentication)",
          set_token_fd },
        { "workspace", "DIR", "base of relative paths (default /workspace)", set_workspace },
        { "state-dir", "DIR", "where output is kept (default TMPDIR or /tmp)", set_state_dir },
        { "output-max", "SIZE",
          "bytes kept of the output of a background command; then the\n"
          "oldest are dropped (default 256Mi)",
          set_output_max },
        { "entrypoint-output-max", "SIZE", "bytes kept of the entrypoint's output (default 16Mi)",
          set_entrypoint_max },
        { "stay", NULL, "keep running when the entrypoint has ended", set_stay },
        { "ignore-signals", NULL,
          "as PID 1, take no signals: the sandbox is ended from outside,\n"
          "and no process inside can stop the agent",
          set_ignore_signals },
        { "seal", NULL, "run from a sealed copy of the program in memory", set_seal },
        { "mounted", "DEV:INO:PATH",
          "exit with status 94 at once unless this file is mounted there;\n"
          "up to 64 times",
          add_mounted },
        { "relay", "PATH",
          "serve nothing; copy between standard input and output and the\n"
          "socket of an agent that runs already",
          set_relay },
        { "log-level", "LEVEL", "debug, info, warn or error (default warn)", set_log_level },
        { "log-format", "FORMAT", "logfmt or json (default logfmt)", set_log_format },
        { "access-log", NULL, "log each request", set_access_log },
};

static const struct option_table table = {
        .program = "hutch-execd",
        .usage = "[OPTION]... [-- ENTRYPOINT [ARGUMENT]...]",
        .summary = "Runs commands and serves files inside a sandbox.",
        .manual = "hutch-execd(8)",
        .options = options,
        .n = ARRAY_SIZE(options),
        .takes_args = true,
};

enum options_result execd_options_parse(int argc, char **argv, struct execd_options *ret,
                                        struct buf *text)
{
        const char *tmp = getenv("TMPDIR");
        enum options_result r;
        int rest = argc;

        *ret = (struct execd_options){
                .listen_fd = -EBADF,
                .socket_mode = -EINVAL,
                .token_fd = -EBADF,
                .workspace = STR("/workspace"),
                .state_dir = tmp && tmp[0] == '/' ? str_from(tmp) : STR("/tmp"),
                .output_max = 256 * MiB,
                .entrypoint_max = 16 * MiB,
                .log_level = LOG_WARN,
                .log_format = LOG_LOGFMT,
        };
        r = options_parse(&table, argc, argv, ret, &rest, text);
        if (ret->n_listen == 0 && ret->listen_fd < 0)
                (void) set_listen(ret, STR("0.0.0.0:44772"));
        ret->entrypoint = rest < argc ? argv + rest : NULL;
        return r;
}
