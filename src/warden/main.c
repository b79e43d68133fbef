/* SPDX-License-Identifier: Apache-2.0 */

/* hutch-warden: parses its options and runs. */

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/options.h"
#include "warden/explain.h"
#include "warden/import.h"
#include "warden/netns_pool.h"
#include "warden/warden.h"

#define ZYGOTES_MAX  1024
#define NETWORKS_MAX 4096

struct arguments {
        struct warden_config config;
        struct log_sink sink;
        bool explain;
        const char *import; /* name of an image */
};

static const char *set_socket(void *target, struct str value)
{
        struct arguments *o = target;
        uint64_t fd;

        if (parse_u64_max(value, INT32_MAX, &fd) < 0)
                return "not a descriptor";
        o->config.socket = (int) fd;
        return NULL;
}

static const char *set_data(void *target, struct str value)
{
        ((struct arguments *) target)->config.data = value.p;
        return *value.p == '/' ? NULL : "not an absolute path";
}

static const char *set_agent(void *target, struct str value)
{
        ((struct arguments *) target)->config.agent = value.p;
        return NULL;
}

static const char *set_installation(void *target, struct str value)
{
        ((struct arguments *) target)->config.installation = value.p;
        return plan_spec_is_id(value.p) ? NULL : "not a name of a-z, 0-9 and '-'";
}

/* Neither root's, nor the last uid, which is invalid. */
static const char *set_uids(void *target, struct str value)
{
        struct arguments *o = target;
        struct str base;
        uint64_t first, count;

        if (!str_split(&value, ':', &base) || !value.p
            || parse_u64_max(base, UINT32_MAX - 1, &first) < 0
            || parse_u64_max(value, UINT32_MAX, &count) < 0)
                return "not of the form BASE:COUNT";
        if (first < PLAN_UIDS || count < PLAN_UIDS || count % PLAN_UIDS != 0
            || first + count > UINT32_MAX)
                return "the base must be 65536 or more, and the count a multiple of 65536";
        o->config.uids = (struct plan_uids){ (uint32_t) first, (uint32_t) (count / PLAN_UIDS) };
        return NULL;
}

static const char *set_zygotes(void *target, struct str value)
{
        struct arguments *o = target;
        uint64_t n;

        if (parse_u64_max(value, ZYGOTES_MAX, &n) < 0)
                return "not a number up to 1024";
        o->config.zygotes = (unsigned) n;
        return NULL;
}

static const char *set_memory_reserve(void *target, struct str value)
{
        struct arguments *o = target;

        return parse_u64(value, &o->config.memory_reserve) < 0 ? "not a number of bytes" : NULL;
}

static const char *set_networks(void *target, struct str value)
{
        struct arguments *o = target;
        uint64_t n;

        if (parse_u64_max(value, NETWORKS_MAX, &n) < 0 || n == 0)
                return "not a number from 1 to 4096";
        o->config.networks = (unsigned) n;
        return NULL;
}

static const char *set_no_private(void *target, struct str value)
{
        (void) value;
        ((struct arguments *) target)->config.no_private = true;
        return NULL;
}

static const char *check_subnet(struct str v4, struct str v6)
{
        const struct addr_plan_config c = { STR("any"), v4, v6 };
        struct addr_plan s;

        return addr_plan_init(&s, &c) < 0 ? "not a private subnet" : NULL;
}

static const char *set_subnet4(void *target, struct str value)
{
        ((struct arguments *) target)->config.subnet4 = value;
        return check_subnet(value, STR_NULL);
}

static const char *set_subnet6(void *target, struct str value)
{
        ((struct arguments *) target)->config.subnet6 = value;
        return check_subnet(STR_NULL, value);
}

static const char *set_dns(void *target, struct str value)
{
        struct arguments *o = target;

        return resolvers_parse(value, &o->config.dns) < 0 ? "not a list of addresses" : NULL;
}

static const char *set_log_level(void *target, struct str value)
{
        return options_log_level(value, &((struct arguments *) target)->sink.level);
}

static const char *set_log_format(void *target, struct str value)
{
        return options_log_format(value, &((struct arguments *) target)->sink.format);
}

static const char *set_import(void *target, struct str value)
{
        ((struct arguments *) target)->import = value.p;
        return plan_spec_is_layer(value.p) ? NULL : "not a name of a-z, 0-9, '-', '_' and '.'";
}

static const char *set_explain(void *target, struct str value)
{
        (void) value;
        ((struct arguments *) target)->explain = true;
        return NULL;
}

static const struct option options[] = {
        { "socket-fd", "N", "the socket to hutchd, an open descriptor", set_socket },
        { "data", "DIR", "the data directory", set_data },
        { "agent", "FILE", "the program hutch-execd", set_agent },
        { "installation", "NAME", "the name of this installation, unique on the host",
          set_installation },
        { "uids", "BASE:COUNT", "uids of sandboxes, 65536 for each (default 268435456:655360000)",
          set_uids },
        { "zygotes", "N",
          "how many zygotes, processes that become sandboxes, are kept ready\n(default 4)",
          set_zygotes },
        { "memory-reserve", "BYTES",
          "memory that all sandboxes together leave to the host\n"
          "(default: 512 MiB or 5 %, whichever is more)",
          set_memory_reserve },
        { "networks", "N", "how many network namespaces of each kind are kept ready (default 128)",
          set_networks },
        { "no-private", NULL, "no private networks, and no change to the host's packet rules",
          set_no_private },
        { "subnet4", "ADDRESS/BITS", "of private networks (default: a free /16, chosen once)",
          set_subnet4 },
        { "subnet6", "ADDRESS/64", "the same for IPv6 (default: derived from the installation)",
          set_subnet6 },
        { "dns", "ADDRESS,...", "resolvers of sandboxes (default: the host's)", set_dns },
        { "log-level", "LEVEL", "debug, info, warn or error (default info)", set_log_level },
        { "log-format", "FORMAT", "logfmt or json (default logfmt)", set_log_format },
        { "import", "NAME",
          "make an image of the rootfs in a tar archive, read from\n"
          "standard input; with --data, and alone",
          set_import },
        { "explain", NULL,
          "print the plan of a sandbox, which is given behind -- as words KEY=VALUE:\n"
          "id, hostname, workspace, image, network, memory, cpu-millis, pids, layer, env, arg",
          set_explain },
};

static const struct option_table table = {
        .program = "hutch-warden",
        .usage = "--socket-fd N --data DIR --agent FILE --installation NAME [OPTION]...",
        .summary = "Creates, watches and removes native sandboxes for hutchd.",
        .manual = "hutch-warden(8)",
        .options = options,
        .n = ARRAY_SIZE(options),
        .takes_args = true,
};

static int run_explain(const struct arguments *o, char **words, int n)
{
        scoped(buf_done) struct buf text;
        struct err e;

        buf_init(&text, MiB);
        if (explain(words, (size_t) n, &o->config.uids, &text, &e) < 0) {
                (void) fprintf(stderr, "hutch-warden: %s\n", e.message);
                return 2;
        }
        (void) fwrite(buf_str(&text).p, 1, text.n, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
}

/* The last range: sandboxes use it only when all others are in use. */
static int run_import(const struct arguments *o)
{
        const struct plan_uids *u = &o->config.uids;
        struct err e;

        if (!o->config.data) {
                (void) fputs("hutch-warden: --import needs --data\n", stderr);
                return 2;
        }
        if (import_image(&(struct import){ o->config.data, o->import, STDIN_FILENO,
                                           u->base + (u->ranges - 1) * PLAN_UIDS },
                         &e)
            == 0)
                return 0;
        (void) fprintf(stderr, "hutch-warden: %s\n", e.message);
        return 1;
}

static int run(const struct arguments *o)
{
        struct warden_config c = o->config;
        struct log_ctx log;
        struct err e;

        if (c.socket < 0 || !c.data || !c.agent || !c.installation) {
                (void) fputs("hutch-warden: --socket-fd, --data, --agent and --installation are "
                             "required\n",
                             stderr);
                return 2;
        }
        log_ctx_init_root(&log, &o->sink);
        c.log = &log;
        if (warden_run(&c, &e) == 0)
                return 0;
        (void) log_err(ERR_RETURN(e.code), &log, "%s", e.message);
        return 1;
}

int main(int argc, char **argv)
{
        scoped(buf_done) struct buf text;
        struct arguments o = {
                .config = { .socket = -EBADF,
                            .uids = { 268435456, 10000 },
                            .zygotes = 4,
                            .networks = NETNS_POOL_DEPTH_DEFAULT },
                .sink = { .fd = STDERR_FILENO, .level = LOG_INFO, .clock = &clock_system },
        };
        enum options_result parsed;
        int rest = argc;

        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = options_parse(&table, argc, argv, &o, &rest, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        if (o.import)
                return run_import(&o);
        return o.explain ? run_explain(&o, argv + rest, argc - rest) : run(&o);
}
