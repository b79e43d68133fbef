/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/api.h"

#include <signal.h>

#include "base/base.h"
#include "base/parse.h"
#include "model/text.h"

static int decode(struct str text, const struct json_field *fields, struct arena *a, void *ret,
                  struct err *e)
{
        struct json_error wrong;

        if (json_decode(text, fields, 0, a, ret, &wrong) < 0)
                return err_set(e, ERR_UNAVAILABLE, "the engine's response cannot be read: %s",
                               wrong.message);
        return 0;
}

struct str engine_label(const struct json_map *labels, const char *name)
{
        for (size_t i = 0; i < labels->n; i++)
                if (str_eq(labels->items[i].key, str_from(name)))
                        return labels->items[i].value;
        return STR_NULL;
}

/* --- containers --- */

struct raw_state {
        struct str status, error;
        bool oom_killed;
        int64_t exit_code;
};

static const struct json_field raw_state_fields[] = {
        JSON_STR(struct raw_state, status, "Status", JSON_REQUIRED),
        JSON_STR(struct raw_state, error, "Error", JSON_NULL_OK),
        JSON_BOOL(struct raw_state, oom_killed, "OOMKilled", JSON_NULL_OK),
        JSON_I64(struct raw_state, exit_code, "ExitCode", JSON_NULL_OK),
        JSON_END,
};

struct raw_config {
        struct json_map labels;
        struct json_strs secret_env;
};

static const struct json_field raw_config_fields[] = {
        JSON_MAP(struct raw_config, labels, "Labels", JSON_NULL_OK),
        JSON_STRS(struct raw_config, secret_env, "Env", JSON_NULL_OK),
        JSON_END,
};

struct raw_container {
        struct str id, name, image;
        struct raw_state state;
        struct raw_config config;
};

static const struct json_field raw_container_fields[] = {
        JSON_STR(struct raw_container, id, "Id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct raw_container, name, "Name", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct raw_container, image, "Image", JSON_NULL_OK),
        JSON_OBJECT(struct raw_container, state, struct raw_state, "State", JSON_REQUIRED,
                    raw_state_fields),
        JSON_OBJECT(struct raw_container, config, struct raw_config, "Config", JSON_REQUIRED,
                    raw_config_fields),
        JSON_END,
};

/* The engines' words. What is about to end counts as dead. */
static const struct {
        const char *word;
        int status;
} statuses[] = {
        { "running", RUNTIME_RUNNING },  { "restarting", RUNTIME_RUNNING },
        { "stopping", RUNTIME_RUNNING }, { "paused", RUNTIME_PAUSED },
        { "created", RUNTIME_DEAD },     { "configured", RUNTIME_DEAD },
        { "initialized", RUNTIME_DEAD }, { "exited", RUNTIME_DEAD },
        { "stopped", RUNTIME_DEAD },     { "dead", RUNTIME_DEAD },
        { "removing", RUNTIME_DEAD },
};

static void explain_end(const struct raw_state *raw, struct arena *a, struct engine_state *ret)
{
        int64_t code = raw->exit_code;
        char *text = NULL;

        ret->status = RUNTIME_DEAD;
        if (str_eq(raw->status, STR("created")) || str_eq(raw->status, STR("configured"))
            || str_eq(raw->status, STR("initialized"))) {
                ret->reason = ENGINE_NEVER_STARTED;
                text = arena_strdup(a, "it was created and never started");
        } else if (raw->oom_killed && code != 0) {
                /* Engines also say so if only one of its commands was killed, earlier. */
                ret->reason = ENGINE_OOM_KILLED;
                text = arena_strdup(a, "it was killed because it ran out of memory");
        } else if (code > 128 && code < 128 + SIGRTMIN) {
                /* Engines, and our agent, report a signal as 128 plus its number. */
                ret->reason = ENGINE_SIGNALED;
                text = arena_printf(a, "it was terminated by signal %d (%s)", (int) code - 128,
                                    strsignal((int) code - 128));
        } else {
                ret->status = code == 0 && raw->error.n == 0 ? RUNTIME_ENDED : RUNTIME_DEAD;
                ret->reason = ENGINE_EXITED;
                text = raw->error.n ? arena_printf(a, "it ended with status %d: %s", (int) code,
                                                   QUOTED(raw->error))
                                    : arena_printf(a, "it ended with status %d", (int) code);
        }
        ret->message = text ? str_from(text) : STR("it has ended");
}

static int set_state(const struct raw_state *raw, struct arena *a, struct engine_state *ret,
                     struct err *e)
{
        *ret = (struct engine_state){ .status = RUNTIME_STATUS_INVALID_,
                                      .reason = ENGINE_REASON_INVALID_ };
        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
                if (str_eq(raw->status, str_from(statuses[i].word)))
                        ret->status = statuses[i].status;
        if (ret->status < 0)
                return err_set(e, ERR_UNAVAILABLE,
                               "the engine reports a container in the unknown state %s",
                               QUOTED(raw->status));
        if (ret->status == RUNTIME_DEAD)
                explain_end(raw, a, ret);
        return 0;
}

int engine_container_decode(struct str text, struct arena *a, struct engine_container *ret,
                            struct err *e)
{
        struct raw_container raw = { 0 };
        int r = decode(text, raw_container_fields, a, &raw, e);

        if (r < 0)
                return r;
        *ret = (struct engine_container){ .id = raw.id,
                                          .name = raw.name,
                                          .labels = raw.config.labels,
                                          .exit_code = raw.state.exit_code,
                                          .removing = str_eq(raw.state.status, STR("removing")),
                                          .image = raw.image,
                                          .secret_env = raw.config.secret_env };
        return set_state(&raw.state, a, &ret->state, e);
}

/* --- lists --- */

struct raw_listed {
        struct str id, state, status;
        struct json_strs names;
        struct json_map labels;
};

static const struct json_field raw_listed_fields[] = {
        JSON_STR(struct raw_listed, id, "Id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STRS(struct raw_listed, names, "Names", JSON_NULL_OK),
        JSON_STR(struct raw_listed, state, "State", JSON_REQUIRED),
        JSON_STR(struct raw_listed, status, "Status", JSON_NULL_OK),
        JSON_MAP(struct raw_listed, labels, "Labels", JSON_NULL_OK),
        JSON_END,
};

/* "Exited (137) 3 minutes ago": a list has the exit code nowhere else. What cannot be read counts as failed. */
static int64_t code_in(struct str status)
{
        ssize_t from = str_find(status, '('), to = str_find(status, ')');
        uint64_t code;

        if (from < 0 || to < from
            || parse_u64_max(str_of(status.p + from + 1, (size_t) (to - from) - 1), 255, &code) < 0)
                return 255;
        return (int64_t) code;
}

int engine_listed_decode(struct str text, struct arena *a, struct engine_container *ret,
                         struct err *e)
{
        struct raw_listed raw = { 0 };
        struct raw_state state;
        int r = decode(text, raw_listed_fields, a, &raw, e);

        if (r < 0)
                return r;
        *ret = (struct engine_container){ .id = raw.id,
                                          .name = raw.names.n > 0 ? raw.names.items[0] : STR(""),
                                          .labels = raw.labels,
                                          .removing = str_eq(raw.state, STR("removing")) };
        state = (struct raw_state){ .status = raw.state, .exit_code = code_in(raw.status) };
        return set_state(&state, a, &ret->state, e);
}

/* --- images --- */

struct raw_image_config {
        struct json_strs entrypoint, cmd, env;
        struct str workspace, user;
        struct json_map labels;
};

static const struct json_field raw_image_config_fields[] = {
        JSON_STRS(struct raw_image_config, entrypoint, "Entrypoint", JSON_NULL_OK),
        JSON_STRS(struct raw_image_config, cmd, "Cmd", JSON_NULL_OK),
        JSON_STR(struct raw_image_config, workspace, "WorkingDir", JSON_NULL_OK),
        JSON_STRS(struct raw_image_config, env, "Env", JSON_NULL_OK),
        JSON_STR(struct raw_image_config, user, "User", JSON_NULL_OK),
        JSON_MAP(struct raw_image_config, labels, "Labels", JSON_NULL_OK),
        JSON_END,
};

struct raw_root {
        struct json_strs layers;
};

static const struct json_field raw_root_fields[] = {
        JSON_STRS(struct raw_root, layers, "Layers", JSON_NULL_OK),
        JSON_END,
};

struct raw_image {
        struct str id, os, arch, created;
        struct raw_image_config *config;
        struct raw_root root;
};

static const struct json_field raw_image_fields[] = {
        JSON_STR(struct raw_image, id, "Id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct raw_image, os, "Os", JSON_NULL_OK),
        JSON_STR(struct raw_image, arch, "Architecture", JSON_NULL_OK),
        JSON_STR(struct raw_image, created, "Created", JSON_NULL_OK),
        JSON_OPT(struct raw_image, config, struct raw_image_config, "Config", JSON_NULL_OK,
                 raw_image_config_fields),
        JSON_OBJECT(struct raw_image, root, struct raw_root, "RootFS", JSON_NULL_OK,
                    raw_root_fields),
        JSON_END,
};

int engine_image_decode(struct str text, struct arena *a, struct engine_image *ret, struct err *e)
{
        struct raw_image raw = { 0 };
        int r = decode(text, raw_image_fields, a, &raw, e);

        if (r < 0)
                return r;
        *ret = (struct engine_image){
                .id = raw.id,
                .os = raw.os,
                .arch = raw.arch,
                .created = raw.created,
                .layers = raw.root.layers,
        };
        if (!raw.config)
                return 0;
        ret->entrypoint = raw.config->entrypoint;
        ret->cmd = raw.config->cmd;
        ret->working_dir = raw.config->workspace;
        ret->user = raw.config->user;
        ret->env = raw.config->env;
        ret->labels = raw.config->labels;
        if (raw.config->workspace.n > 1 && text_is_plain_path(raw.config->workspace))
                ret->workspace = raw.config->workspace;
        return 0;
}

static const struct json_field listed_image_fields[] = {
        JSON_STR(struct engine_listed_image, id, "Id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STRS(struct engine_listed_image, tags, "RepoTags", JSON_NULL_OK),
        JSON_MAP(struct engine_listed_image, labels, "Labels", JSON_NULL_OK),
        JSON_END,
};

/* "sha256:" and digits, or digits only. */
int engine_image_id_check(struct str id, struct err *e)
{
        struct str digits = id;

        if (str_starts_with(id, STR("sha256:")))
                digits = str_skip(id, strlen("sha256:"));
        if (digits.n == 64 && text_is_label(digits, 64))
                return 0;
        return err_set(e, ERR_UNAVAILABLE, "the engine names an image %s", QUOTED(id));
}

int engine_listed_image_decode(struct str text, struct arena *a, struct engine_listed_image *ret,
                               struct err *e)
{
        struct engine_listed_image raw = { 0 };
        int r = decode(text, listed_image_fields, a, &raw, e);

        if (r == 0)
                r = engine_image_id_check(raw.id, e);
        if (r == 0)
                *ret = raw;
        return r;
}

struct raw_id {
        struct str id;
};

static const struct json_field raw_id_fields[] = {
        JSON_STR(struct raw_id, id, "Id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_END,
};

int engine_commit_decode(struct str text, struct arena *a, struct str *ret, struct err *e)
{
        struct raw_id raw = { 0 };
        int r = decode(text, raw_id_fields, a, &raw, e);

        if (r == 0)
                r = engine_image_id_check(raw.id, e);
        if (r == 0)
                *ret = raw.id;
        return r;
}

/* --- events --- */

struct raw_actor {
        struct json_map attributes;
};

static const struct json_field raw_actor_fields[] = {
        JSON_MAP(struct raw_actor, attributes, "Attributes", JSON_NULL_OK),
        JSON_END,
};

struct raw_event {
        struct str type, action;
        struct raw_actor actor;
};

static const struct json_field raw_event_fields[] = {
        JSON_STR(struct raw_event, type, "Type", JSON_NULL_OK),
        JSON_STR(struct raw_event, action, "Action", JSON_NULL_OK),
        JSON_OBJECT(struct raw_event, actor, struct raw_actor, "Actor", JSON_NULL_OK,
                    raw_actor_fields),
        JSON_END,
};

int engine_event_decode(struct str text, struct arena *a, struct engine_event *ret, struct err *e)
{
        static const char *const ends[] = { "die", "died", "destroy", "remove", "oom" };
        struct raw_event raw = { 0 };
        int r = decode(text, raw_event_fields, a, &raw, e);

        if (r < 0)
                return r;
        *ret = (struct engine_event){
                .name = engine_label(&raw.actor.attributes, "name"),
                .sandbox = engine_label(&raw.actor.attributes, "hutch.sandbox"),
                .installation = engine_label(&raw.actor.attributes, "hutch.installation"),
        };
        for (size_t i = 0; i < ARRAY_SIZE(ends) && str_eq(raw.type, STR("container")); i++)
                ret->is_end |= str_eq(raw.action, str_from(ends[i]));
        return 0;
}

/* --- processes --- */

int engine_exec_decode(struct str text, struct arena *a, struct str *ret, struct err *e)
{
        struct raw_id raw = { 0 };
        int r = decode(text, raw_id_fields, a, &raw, e);

        if (r < 0)
                return r;
        if (!text_is_label(raw.id, 64))
                return err_set(e, ERR_UNAVAILABLE, "the engine names an exec instance %s",
                               QUOTED(raw.id));
        *ret = raw.id;
        return 0;
}

/* --- numbers --- */

struct raw_cpu_usage {
        int64_t total;
};

static const struct json_field raw_cpu_usage_fields[] = {
        JSON_I64(struct raw_cpu_usage, total, "total_usage", JSON_NULL_OK),
        JSON_END,
};

struct raw_cpu {
        struct raw_cpu_usage usage;
};

static const struct json_field raw_cpu_fields[] = {
        JSON_OBJECT(struct raw_cpu, usage, struct raw_cpu_usage, "cpu_usage", JSON_NULL_OK,
                    raw_cpu_usage_fields),
        JSON_END,
};

struct raw_number {
        int64_t memory, pids;
};

static const struct json_field raw_memory_fields[] = {
        JSON_I64(struct raw_number, memory, "usage", JSON_NULL_OK),
        JSON_END,
};

static const struct json_field raw_pids_fields[] = {
        JSON_I64(struct raw_number, pids, "current", JSON_NULL_OK),
        JSON_END,
};

struct raw_stats {
        struct raw_cpu cpu;
        struct raw_number memory, pids;
};

static const struct json_field raw_stats_fields[] = {
        JSON_OBJECT(struct raw_stats, cpu, struct raw_cpu, "cpu_stats", JSON_NULL_OK,
                    raw_cpu_fields),
        JSON_OBJECT(struct raw_stats, memory, struct raw_number, "memory_stats", JSON_NULL_OK,
                    raw_memory_fields),
        JSON_OBJECT(struct raw_stats, pids, struct raw_number, "pids_stats", JSON_NULL_OK,
                    raw_pids_fields),
        JSON_END,
};

int engine_stats_decode(struct str text, struct arena *a, struct engine_usage *ret, struct err *e)
{
        struct raw_stats raw = { 0 };
        int r = decode(text, raw_stats_fields, a, &raw, e);

        if (r < 0)
                return r;
        *ret = (struct engine_usage){
                .cpu_usec = MAX_OF(raw.cpu.usage.total, INT64_C(0)) / 1000,
                .memory_bytes = MAX_OF(raw.memory.memory, INT64_C(0)),
                .processes = MAX_OF(raw.pids.pids, INT64_C(0)),
        };
        return 0;
}

/* --- pulls, errors --- */

static const struct json_field progress_fields[] = {
        JSON_STR(struct engine_progress, status, "status", JSON_NULL_OK),
        JSON_STR(struct engine_progress, error, "error", JSON_NULL_OK),
        JSON_END,
};

int engine_progress_decode(struct str text, struct arena *a, struct engine_progress *ret,
                           struct err *e)
{
        struct engine_progress p = { 0 };
        int r = decode(text, progress_fields, a, &p, e);

        if (r == 0)
                *ret = p;
        return r;
}

struct error_body {
        struct str message;
};

static const struct json_field error_body_fields[] = {
        JSON_STR(struct error_body, message, "message", JSON_REQUIRED),
        JSON_END,
};

struct str engine_error_message(struct str text, struct arena *a)
{
        struct error_body c = { 0 };
        struct json_error wrong;

        if (json_decode(text, error_body_fields, 0, a, &c, &wrong) < 0)
                return STR_NULL;
        return c.message;
}

/* --- the engine itself --- */

static const struct json_field version_fields[] = {
        JSON_STR(struct engine_info, version, "Version", JSON_REQUIRED),
        JSON_STR(struct engine_info, api_version, "ApiVersion", JSON_REQUIRED),
        JSON_END,
};

static const struct json_field info_fields[] = {
        JSON_STR(struct engine_info, storage, "Driver", JSON_NULL_OK),
        JSON_STR(struct engine_info, cgroup_version, "CgroupVersion", JSON_NULL_OK),
        JSON_STR(struct engine_info, host, "Name", JSON_NULL_OK),
        JSON_STR(struct engine_info, kernel, "KernelVersion", JSON_NULL_OK),
        JSON_STRS(struct engine_info, security, "SecurityOptions", JSON_NULL_OK),
        JSON_BOOL(struct engine_info, live_restore, "LiveRestoreEnabled", JSON_NULL_OK),
        JSON_BOOL(struct engine_info, memory_limit, "MemoryLimit", JSON_NULL_OK),
        JSON_BOOL(struct engine_info, pids_limit, "PidsLimit", JSON_NULL_OK),
        JSON_BOOL(struct engine_info, cpu_limit, "CpuCfsQuota", JSON_NULL_OK),
        JSON_END,
};

bool engine_api_is(struct str version, unsigned minor)
{
        struct str major;
        uint64_t first, second;

        return str_split(&version, '.', &major) && version.p && parse_u64(major, &first) == 0
               && parse_u64(version, &second) == 0
               && (first > 1 || (first == 1 && second >= minor));
}

int engine_version_decode(struct str text, struct arena *a, struct engine_info *ret, struct err *e)
{
        return decode(text, version_fields, a, ret, e);
}

int engine_info_decode(struct str text, struct arena *a, struct engine_info *ret, struct err *e)
{
        return decode(text, info_fields, a, ret, e);
}
