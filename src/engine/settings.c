/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/settings.h"

#include "base/base.h"
#include "base/id.h"
#include "model/text.h"

#define NO_PATH "expected an absolute path without . and .."

static const char *set_path(struct str value, const char **ret)
{
        if (!text_is_plain_path(value))
                return NO_PATH;
        *ret = value.p; /* of argv: ends in NUL */
        return NULL;
}

static const char *set_kind(void *target, struct str value)
{
        int kind = engine_kind_from_string(value);

        ((struct engine_settings *) target)->kind = (enum engine_kind) kind;
        return kind < 0 ? "expected docker or podman" : NULL;
}

static const char *set_socket(void *target, struct str value)
{
        return set_path(value, &((struct engine_settings *) target)->socket);
}

static const char *set_dir(void *target, struct str value)
{
        return set_path(value, &((struct engine_settings *) target)->dir);
}

static const char *set_agent(void *target, struct str value)
{
        return set_path(value, &((struct engine_settings *) target)->agent);
}

static const char *set_installation(void *target, struct str value)
{
        if (!id_is_hex(value))
                return "expected 32 hexadecimal digits";
        ((struct engine_settings *) target)->installation = value;
        return NULL;
}

static const char *set_reach(void *target, struct str value)
{
        struct engine_settings *s = target;

        s->reach = engine_reach_from_string(value);
        return s->reach < 0 ? "expected socket or exec" : NULL;
}

static const char *set_network(void *target, struct str value)
{
        struct engine_settings *s = target;

        s->network = engine_network_from_string(value);
        return s->network < 0 ? "expected bridge or none" : NULL;
}

static const char *add_host_dir(void *target, struct str value)
{
        struct engine_settings *s = target;

        if (!text_is_plain_path(value))
                return NO_PATH;
        if (s->n_host_dirs == SETTINGS_DIRS_MAX)
                return "too many directories";
        s->host_dirs[s->n_host_dirs++] = value;
        return NULL;
}

static const char *set_log_level(void *target, struct str value)
{
        return options_log_level(value, &((struct engine_settings *) target)->log_level);
}

static const char *set_log_format(void *target, struct str value)
{
        return options_log_format(value, &((struct engine_settings *) target)->log_format);
}

static const struct option options[] = {
        { "engine", "KIND", "docker or podman", set_kind },
        { "socket", "PATH", "the engine's socket", set_socket },
        { "directory", "PATH", "private directory for the sockets of sandboxes", set_dir },
        { "agent", "PATH", "hutch-execd", set_agent },
        { "installation", "ID", "serve this installation only (default: the one that connects)",
          set_installation },
        { "reach", "HOW", "how agents are reached: socket or exec (default socket)", set_reach },
        { "network", "WHICH", "network of sandboxes: bridge or none (default bridge)",
          set_network },
        { "host-directory", "PATH", "volumes may mount directories below it; may be repeated",
          add_host_dir },
        { "log-level", "LEVEL", "debug, info, warn or error (default info)", set_log_level },
        { "log-format", "FORMAT", "logfmt or json (default logfmt)", set_log_format },
};

static const struct option_table table = {
        .program = "hutch-engine",
        .usage = "[OPTION]...",
        .summary = "Talks to a container engine on behalf of hutchd, which starts it.",
        .manual = "hutch-engine(8)",
        .options = options,
        .n = ARRAY_SIZE(options),
};

enum options_result engine_settings_parse(int argc, char **argv, struct engine_settings *ret,
                                          struct buf *text)
{
        enum options_result r;

        *ret = (struct engine_settings){ .log_level = LOG_INFO, .log_format = LOG_LOGFMT };
        r = options_parse(&table, argc, argv, ret, NULL, text);
        if (r != OPTIONS_RUN)
                return r;
        if (!ret->socket)
                ret->socket = engine_default_socket(ret->kind);
        if (ret->dir && ret->agent)
                return OPTIONS_RUN;
        buf_add_str(
                text,
                STR("hutch-engine: --directory and --agent are needed; it is started by hutchd or "
                    "by a service manager, not by people\n"));
        return OPTIONS_EXIT_USAGE;
}
