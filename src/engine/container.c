/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/container.h"

#include <stdio.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/base.h"
#include "engine/names.h"
#include "engine/volumes.h"
#include "model/create.h"
#include "model/text.h"
#include "plan/plan.h"
#include "os/fd.h"

/* --- writing JSON --- */

static void comma(struct buf *b)
{
        struct str s = buf_str(b);

        if (s.n > 0 && !strchr("{[:", s.p[s.n - 1]))
                buf_add_char(b, ',');
}

static void add_key(struct buf *b, const char *key)
{
        comma(b);
        buf_add_quoted(b, str_from(key));
        buf_add_char(b, ':');
}

static void add_text(struct buf *b, struct str value)
{
        comma(b);
        buf_add_quoted(b, value);
}

static void add_pair(struct buf *b, const char *key, struct str value)
{
        add_key(b, key);
        buf_add_quoted(b, value);
}

static void add_raw(struct buf *b, const char *key, const char *json)
{
        add_key(b, key);
        buf_add_str(b, str_from(json));
}

static void add_number(struct buf *b, const char *key, int64_t v)
{
        add_key(b, key);
        buf_addf(b, "%lld", (long long) v);
}

static void open_list(struct buf *b, const char *key)
{
        add_key(b, key);
        buf_add_char(b, '[');
}

static void open_object(struct buf *b, const char *key)
{
        if (key)
                add_key(b, key);
        else
                comma(b);
        buf_add_char(b, '{');
}

/* --- labels --- */

static bool is_bound_part(const struct container_params *f, size_t i)
{
        const struct volume *v = f->record->volumes.items;

        return v[i].pvc && f->sources->items[i].kind == SOURCE_BIND;
}

/* One label per claim. */
static void add_volume_labels(struct buf *b, const struct container_params *f)
{
        const struct volume *v = f->record->volumes.items;
        char name[sizeof(LABEL_VOLUME) + DNS_NAME_MAX];

        for (size_t i = 0; i < f->sources->n; i++) {
                bool again = false;

                for (size_t k = 0; k < i && is_bound_part(f, i); k++)
                        again |= is_bound_part(f, k)
                                 && str_eq(v[k].pvc->claim_name, v[i].pvc->claim_name);
                if (again || !is_bound_part(f, i))
                        continue;
                (void) snprintf(name, sizeof(name), LABEL_VOLUME "%.*s",
                                STR_ARG(v[i].pvc->claim_name));
                add_pair(b, name, STR("bound"));
        }
}

static void add_labels(struct buf *b, const struct container_params *f)
{
        const struct sandbox *s = f->record;
        char ms[32];

        open_object(b, "Labels");
        add_pair(b, LABEL_INSTALLATION, f->settings->installation);
        add_pair(b, LABEL_SANDBOX, s->id);
        add_pair(b, LABEL_TENANT, s->tenant);
        add_pair(b, "hutch.organization", s->owner.organization_id);
        add_pair(b, "hutch.project", s->owner.project_id);
        add_pair(b, "hutch.user", s->owner.user_id);
        add_pair(b, "hutch.scope", str_from(scope_kind_to_string(s->owner.scope.kind)));
        if (s->owner.scope.key.p)
                add_pair(b, "hutch.scope.key", s->owner.scope.key);
        if (s->expiry) {
                (void) snprintf(ms, sizeof(ms), "%lld", (long long) s->expiry->wall_ms);
                add_pair(b, "hutch.expires", str_from(ms));
        }
        if (s->image.p)
                add_pair(b, "hutch.image", s->image);
        add_pair(b, LABEL_RECORD, f->record_text);
        add_volume_labels(b, f);
        buf_add_char(b, '}');
}

/* --- the command --- */

static void add_env(struct buf *b, const struct container_params *f)
{
        /* A snapshot taken by Podman keeps HOSTNAME of its sandbox. */
        bool set_host = f->record->snapshot_id.p && f->settings->kind == ENGINE_PODMAN;
        scoped(buf_done) struct buf pair;

        buf_init(&pair, CONTAINER_CONFIG_MAX);
        buf_mark_secret(&pair);
        open_list(b, "Env");
        for (size_t i = 0; i < f->secret_env->n; i++) {
                const struct json_pair *v = &f->secret_env->items[i];

                set_host &= !str_eq(v->key, STR("HOSTNAME"));
                if (env_is_for_egress(v->key) || !v->value.p)
                        continue;
                buf_reset(&pair);
                buf_add_str(&pair, v->key);
                buf_add_char(&pair, '=');
                buf_add_str(&pair, v->value);
                add_text(b, buf_str(&pair));
        }
        if (set_host) {
                buf_reset(&pair);
                buf_addf(&pair, "HOSTNAME=%.*s", STR_ARG(f->record->id));
                add_text(b, buf_str(&pair));
        }
        buf_add_char(b, ']');
}

static struct str workspace_of(const struct container_params *f)
{
        return f->image->workspace.p ? f->image->workspace : STR(DEFAULT_WORKSPACE);
}

/* The agent first compares what was mounted with what was found here: see engine/volumes.h. */
static void add_marks(struct buf *b, const struct container_params *f)
{
        const struct volume *v = f->record->volumes.items;
        scoped(buf_done) struct buf text;

        buf_init(&text, 2 * PATH_MAX_TEXT);
        for (size_t i = 0; i < f->sources->n; i++) {
                if (f->sources->items[i].kind != SOURCE_BIND)
                        continue;
                buf_reset(&text);
                buf_add_str(&text, STR("--mounted="));
                mount_identity_write(&text, &f->sources->items[i].mount_identity, v[i].mount_path);
                add_text(b, buf_str(&text));
        }
}

static void add_command(struct buf *b, const struct container_params *f)
{
        const struct json_strs *parts[] = { &f->record->entrypoint, NULL };
        const struct json_strs *image[] = { &f->image->entrypoint, &f->image->cmd };
        char text[PATH_MAX_TEXT + 32];
        bool first = true;

        open_list(b, "Entrypoint");
        add_text(b, STR(INSIDE_AGENT));
        add_text(b, STR("--listen=unix:" INSIDE_SOCKET));
        /* The worker connects: as root, or as a user that is not the agent's on the host. */
        add_text(b, geteuid() == 0 ? STR("--socket-mode=0700") : STR("--socket-mode=0777"));
        (void) snprintf(text, sizeof(text), "--workspace=%.*s", STR_ARG(workspace_of(f)));
        add_text(b, str_from(text));
        if (!f->run_dir.p) /* the program is a file in the sandbox then */
                add_text(b, STR("--seal"));
        add_marks(b, f);
        for (size_t i = 0; i < 2; i++) {
                const struct json_strs *v = f->record->entrypoint.n > 0 ? parts[i] : image[i];

                for (size_t k = 0; v && k < v->n; k++) {
                        if (first)
                                add_text(b, STR("--"));
                        first = false;
                        add_text(b, v->items[k]);
                }
        }
        buf_add_char(b, ']');
        add_raw(b, "Cmd", "[]");
        add_pair(b, "WorkingDir", workspace_of(f));
}

/* --- isolation --- */

struct mounted {
        const char *type;
        struct str source, target;
        bool read_only;
        struct str below; /* or null: all of it */
};

static void add_mount(struct buf *b, const struct mounted *m)
{
        open_object(b, NULL);
        add_pair(b, "Type", str_from(m->type));
        add_pair(b, "Source", m->source);
        add_pair(b, "Target", m->target);
        add_raw(b, "ReadOnly", m->read_only ? "true" : "false");
        if (m->below.p) {
                open_object(b, "VolumeOptions");
                add_pair(b, "Subpath", m->below);
                buf_add_char(b, '}');
        }
        buf_add_char(b, '}');
}

static void add_mounts(struct buf *b, const struct container_params *f)
{
        const struct volume *v = f->record->volumes.items;

        open_list(b, "Mounts");
        if (f->run_dir.p) {
                add_mount(b, &(struct mounted){ .type = "bind",
                                                .source = str_from(f->settings->agent),
                                                .target = STR(INSIDE_AGENT),
                                                .read_only = true });
                add_mount(b, &(struct mounted){ .type = "bind",
                                                .source = f->run_dir,
                                                .target = STR(INSIDE_RUN) });
        }
        for (size_t i = 0; i < f->sources->n; i++) {
                const struct volume_source *p = &f->sources->items[i];
                bool bound = p->kind == SOURCE_BIND;

                add_mount(b, &(struct mounted){ .type = bound ? "bind" : "volume",
                                                .source = bound ? p->source : v[i].pvc->claim_name,
                                                .target = v[i].mount_path,
                                                .read_only = v[i].read_only,
                                                .below = p->kind == SOURCE_SUBPATH ? v[i].sub_path
                                                                                   : STR_NULL });
        }
        buf_add_char(b, ']');
}

/* Engines write capabilities in upper case. */
static void add_capability(struct buf *b, const char *name)
{
        char text[32];
        size_t n = 0;

        for (; n < sizeof(text) - 1 && name[n]; n++)
                text[n] = (char) (name[n] >= 'a' && name[n] <= 'z' ? name[n] - 'a' + 'A' : name[n]);
        add_text(b, str_of(text, n));
}

/* Podman's bridges cannot isolate their containers from each other, only from other bridges. So each container
 * has a network stack of its own there, as with rootless Podman, without the host's loopback. */
static void add_network(struct buf *b, const struct engine_settings *s)
{
        char name[ENGINE_NAME_MAX] = "none";

        if (container_needs_network(s))
                engine_network_name(s->installation, name);
        else if (s->network != ENGINE_NETWORK_NONE)
                (void) snprintf(name, sizeof(name), "slirp4netns");
        add_pair(b, "NetworkMode", str_from(name));
}

static void add_host_config(struct buf *b, const struct container_params *f)
{
        const struct resources *limits = &f->record->limits;

        open_object(b, "HostConfig");
        add_mounts(b, f);
        add_raw(b, "CapDrop", "[\"ALL\"]");
        open_list(b, "CapAdd");
        for (size_t i = 0; i < ARRAY_SIZE(plan_caps); i++)
                add_capability(b, plan_caps[i].name);
        buf_add_char(b, ']');
        open_list(b, "SecurityOpt");
        add_text(b, STR("no-new-privileges"));
        if (f->seccomp.p)
                add_text(b, f->seccomp);
        buf_add_char(b, ']');
        add_number(b, "PidsLimit", limits->pids > 0 ? limits->pids : CONTAINER_PIDS_DEFAULT);
        if (limits->memory_bytes > 0) {
                add_number(b, "Memory", limits->memory_bytes);
                add_number(b, "MemorySwap", limits->memory_bytes);
        }
        if (limits->cpu_milli > 0)
                add_number(b, "NanoCpus", limits->cpu_milli * 1000000);
        /* The host's core_pattern may be a program that runs as its root. With Podman, limits of ours would replace those
         * that it was configured with. */
        if (f->settings->kind == ENGINE_DOCKER)
                add_raw(b, "Ulimits", "[{\"Name\":\"core\",\"Soft\":0,\"Hard\":0}]");
        add_network(b, f->settings);
        add_raw(b, "RestartPolicy", "{\"Name\":\"no\"}");
        add_raw(b, "Privileged", "false");
        add_pair(b, "IpcMode", STR("private"));
        /* The agent keeps the output of the entrypoint. */
        add_raw(b, "LogConfig", "{\"Type\":\"none\"}");
        buf_add_char(b, '}');
}

void container_write(struct buf *b, const struct container_params *f)
{
        buf_add_char(b, '{');
        add_pair(b, "Image", f->image->id);
        add_pair(b, "Hostname", f->record->id);
        add_labels(b, f);
        add_env(b, f);
        add_command(b, f);
        add_host_config(b, f);
        buf_add_char(b, '}');
}

bool container_needs_network(const struct engine_settings *s)
{
        return s->network == ENGINE_NETWORK_BRIDGE && s->kind == ENGINE_DOCKER;
}

void network_write(struct buf *b, const struct engine_settings *s)
{
        char name[ENGINE_NAME_MAX];

        engine_network_name(s->installation, name);
        buf_add_char(b, '{');
        add_pair(b, "Name", str_from(name));
        add_raw(b, "CheckDuplicate", "true");
        add_pair(b, "Driver", STR("bridge"));
        open_object(b, "Labels");
        add_pair(b, LABEL_INSTALLATION, s->installation);
        buf_add_char(b, '}');
        open_object(b, "Options");
        add_pair(b, "com.docker.network.bridge.enable_icc", STR("false"));
        buf_add_char(b, '}');
        buf_add_char(b, '}');
}

/* --- checks --- */

int container_check(const struct container_params *f, struct err *e)
{
        const struct json_map *limits = &f->record->limits.texts;
        const struct platform *p = f->record->platform;
        const struct engine_image *image = f->image;
        int r;

        if (f->record->limits.gpus)
                return err_set(e, ERR_UNSUPPORTED, "this driver does not provide gpus");
        for (size_t i = 0; i < limits->n; i++)
                if (!str_eq(limits->items[i].key, STR("cpu"))
                    && !str_eq(limits->items[i].key, STR("memory"))
                    && !str_eq(limits->items[i].key, STR("pids")))
                        return err_set(
                                e, ERR_UNSUPPORTED,
                                "resource limits: this driver supports cpu, memory and pids, not %s",
                                QUOTED(limits->items[i].key));
        if (p
            && ((p->os.n && image->os.n && !str_eq(p->os, image->os))
                || (p->arch.n && image->arch.n && !str_eq(p->arch, image->arch))))
                return err_set(e, ERR_UNSUPPORTED,
                               "the image is for %.*s/%.*s, and another platform was requested",
                               STR_ARG(image->os), STR_ARG(image->arch));
        r = volumes_resolve(f->settings, f->record, f->sources, e);
        if (r < 0)
                return r;
        if (f->record->network_policy)
                return err_set(e, ERR_UNSUPPORTED, "this driver cannot enforce a network policy");
        for (size_t i = 0; i < f->secret_env->n; i++)
                if (str_eq(f->secret_env->items[i].key, STR("EXECD_ACCESS_TOKEN")))
                        return err_set(e, ERR_INVALID,
                                       "the variable EXECD_ACCESS_TOKEN is reserved");
        return 0;
}

/* --- the seccomp filter --- */

/* Written aside and renamed: an engine that starts a container meanwhile reads the old file or the new one. */
static int write_file(const char *path)
{
        struct str text = str_from(engine_seccomp_profile);
        char temp[PATH_MAX_TEXT + 8];
        scoped(fd_closep) int fd = -EBADF;

        (void) snprintf(temp, sizeof(temp), "%s.new", path);
        fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        if (write(fd, text.p, text.n) != (ssize_t) text.n)
                return -EIO;
        return rename(temp, path) < 0 ? -errno : 0;
}

int engine_seccomp_option(enum engine_kind kind, const char *dir, struct str *ret, struct err *e)
{
        static char option[256 * KiB];
        char path[PATH_MAX_TEXT];
        int n, r;

        if (kind == ENGINE_DOCKER) {
                n = snprintf(option, sizeof(option), "seccomp=%s", engine_seccomp_profile);
        } else {
                (void) snprintf(path, sizeof(path), "%s/seccomp.json", dir);
                r = write_file(path);
                if (r < 0)
                        return err_errno(e, r, "write %s", path);
                n = snprintf(option, sizeof(option), "seccomp=%s", path);
        }
        if (n >= (int) sizeof(option))
                return err_set(e, ERR_INTERNAL, "the seccomp profile is too long");
        *ret = str_from(option);
        return 0;
}
