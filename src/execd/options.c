/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/options.h"

#include "base/base.h"

/* --- values --- */

static const char *parse_fd(struct str value, int *ret)
{
        uint64_t v;

        if (parse_u64_max(value, INT32_MAX, &v) < 0)
                return "not a descriptor number";
        *ret = (int) v;
        return NULL;
}

static const char *parse_dir(struct str value, struct str *ret)
{
        *ret = value;
        return str_starts_with(value, STR("/")) ? NULL : "not an absolute path";
}

static const char *parse_size(struct str value, uint64_t *ret)
{
        if (parse_bytes(value, ret) < 0 || *ret < 4096 || *ret > INT64_MAX)
                return "not a size of at least 4096 bytes; try 256Mi";
        return NULL;
}

static const char *parse_mode(struct str value, int *ret)
{
        *ret = 0;
        for (size_t i = 0; i < value.n; i++) {
                if (value.p[i] < '0' || value.p[i] > '7' || value.n > 4)
                        return "not a mode; try 0700";
                *ret = *ret * 8 + (value.p[i] - '0');
        }
        *ret &= 0777;
        return value.n > 0 ? NULL : "not a mode; try 0700";
}

static const char *parse_socket(struct str value, const char **ret)
{
        *ret = value.p;
        return str_starts_with(value, STR("/")) && value.n <= 100 ? NULL
                                                                  : "not the path of a socket";
}

static const char *parse_flag(struct str value, bool *ret)
{
        (void) value;
        *ret = true;
        return NULL;
}

/* --- setters --- */

#define SETTER(member, parse)                                                    \
        static const char *set_##member(void *target, struct str value)          \
        {                                                                        \
                return parse(value, &((struct execd_options *) target)->member); \
        }

SETTER(listen_fd, parse_fd)
SETTER(socket_mode, parse_mode)
SETTER(ready_fd, parse_fd)
SETTER(token_fd, parse_fd)
SETTER(cgroup_fds, parse_fd)
SETTER(workspace, parse_dir)
SETTER(state_dir, parse_dir)
SETTER(output_max, parse_size)
SETTER(entrypoint_max, parse_size)
SETTER(relay, parse_socket)
SETTER(log_level, options_log_level)
SETTER(log_format, options_log_format)
SETTER(access_log, parse_flag)
SETTER(stay, parse_flag)
SETTER(ignore_signals, parse_flag)
SETTER(seal, parse_flag)

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

static const char *add_mounted(void *target, struct str value)
{
        struct execd_options *o = target;

        if (o->n_mounted == EXECD_MOUNTS_MAX)
                return "too many mounts (at most 64)";
        o->mounted[o->n_mounted++] = value;
        return NULL;
}

static const struct option options[] = {
        { "listen", "ADDRESS",
          "where to serve: HOST:PORT, [IPv6]:PORT or unix:PATH; up to 4\n"
          "times (default 0.0.0.0:44772, or none with --listen-fd)",
          set_listen },
        { "listen-fd", "N", "serve on this inherited listening socket", set_listen_fd },
        { "ready-fd", "N",
          "write a byte to this descriptor and close it once the agent\n"
          "accepts connections and the entrypoint has started",
          set_ready_fd },
        { "socket-mode", "MODE", "mode of unix sockets, set once they accept connections",
          set_socket_mode },
        { "access-token-fd", "N",
          "read the access token from this descriptor (default: variable\n"
          "EXECD_ACCESS_TOKEN; without a token there is no authentication)",
          set_token_fd },
        { "cgroup-fds", "N",
          "put commands into cgroups by these five inherited descriptors:\n"
          "the directory, tasks of memory, cpu and pids, an OOM eventfd",
          set_cgroup_fds },
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
                .ready_fd = -EBADF,
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
