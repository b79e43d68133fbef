/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/volumes.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/api.h"
#include "engine/names.h"
#include "model/text.h"
#include "os/fd.h"
#include "os/in_root.h"

/* --- sources --- */

static void volume_source_clear(struct volume_source *p)
{
        (void) fd_close(p->fd);
        free((char *) p->source.p);
        *p = (struct volume_source){ .kind = SOURCE_VOLUME, .fd = -EBADF };
}

void volume_sources_init(struct volume_sources *p, const struct sandbox *record)
{
        *p = (struct volume_sources){ .items = xcalloc(record->volumes.n + 1,
                                                       sizeof(struct volume_source)),
                                      .n = record->volumes.n };
        for (size_t i = 0; i < p->n; i++)
                p->items[i].fd = -EBADF;
}

void volume_sources_done(struct volume_sources *p)
{
        for (size_t i = 0; i < p->n; i++)
                volume_source_clear(&p->items[i]);
        free(p->items);
        *p = (struct volume_sources){ 0 };
}

bool volume_sources_have_bind(const struct volume_sources *p)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->items[i].kind == SOURCE_BIND)
                        return true;
        return false;
}

/* --- binding --- */

/* Takes fd. */
static int bind_to(struct volume_source *p, const struct volume *v, int fd, const char *source,
                   struct err *e)
{
        int r;

        volume_source_clear(p);
        p->fd = fd;
        r = mount_identity_of(fd, &p->mount_identity);
        if (r < 0)
                return err_errno(e, r, "volume %s: identify it", QUOTED(v->name));
        p->kind = SOURCE_BIND;
        p->source = str_from(xstrndup_str(str_from(source)));
        return 0;
}

static int not_opened(const struct volume *v, int r, struct err *e)
{
        if (r == -ELOOP)
                return err_set(e, ERR_INVALID, "volume %s: there is a symbolic link in its path",
                               QUOTED(v->name));
        if (r == -ENOENT || r == -ENOTDIR)
                return err_set(e, ERR_NOT_FOUND, "volume %s: no such directory", QUOTED(v->name));
        return err_errno(e, r, "volume %s: open its path", QUOTED(v->name));
}

/* What is checked here must be what the engine mounts. */
static int engine_is_remote(const struct volume *v, const char *what, struct err *e)
{
        return err_set(e, ERR_UNSUPPORTED,
                       "volume %s: with reach: exec the engine may be on another host, and %s",
                       QUOTED(v->name), what);
}

/* --- host directories --- */

static bool joined(char *ret, size_t size, struct str path, struct str sub)
{
        return snprintf(ret, size, "%.*s%s%.*s", STR_ARG(path), sub.n ? "/" : "", STR_ARG(sub))
               < (int) size;
}

static int resolve_host(struct volume_source *p, const struct engine_settings *s,
                        const struct volume *v, struct err *e)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        const struct str *allowed = NULL;
        char path[PATH_MAX_TEXT + 1], top[PATH_MAX_TEXT + 1];
        int r;

        if (s->reach == ENGINE_REACH_EXEC)
                return engine_is_remote(v, "host directories cannot be mounted", e);
        for (size_t i = 0; i < s->n_host_dirs && !allowed; i++)
                if (path_is_in(v->host->path, s->host_dirs[i]))
                        allowed = &s->host_dirs[i];
        if (!allowed || !joined(path, sizeof(path), v->host->path, v->sub_path))
                return err_set(e, ERR_INVALID, "volume %s: its path is not allowed",
                               QUOTED(v->name));
        (void) snprintf(top, sizeof(top), "%.*s", STR_ARG(*allowed));
        root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_errno(e, -errno, "volume %s: open %s", QUOTED(v->name), top);
        r = in_root_open(root, path[allowed->n] ? path + allowed->n : "/",
                         &(struct in_root_how){ .flags = O_PATH, .no_symlinks = true }, &fd);
        return r < 0 ? not_opened(v, r, e) : bind_to(p, v, TAKE_FD(fd), path, e);
}

/* --- parts of named volumes --- */

static int bind_part(struct volume_source *p, const struct volume *v, struct str mountpoint,
                     struct err *e)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        char path[PATH_MAX_TEXT + 1], top[PATH_MAX_TEXT + 1], sub[PATH_MAX_TEXT + 1];
        mode_t mask;
        int r;

        if (!text_is_plain_path(mountpoint) || !joined(top, sizeof(top), mountpoint, STR_NULL)
            || !joined(path, sizeof(path), mountpoint, v->sub_path))
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: the engine does not report where it is",
                               QUOTED(v->name));
        root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: a subPath needs a worker that can open the engine's "
                               "directory %s (%s), or an engine with API 1.45",
                               QUOTED(v->name), QUOTED(mountpoint), err_text(-errno));
        (void) snprintf(sub, sizeof(sub), "%.*s", STR_ARG(v->sub_path));
        r = in_root_open(root, sub, &(struct in_root_how){ .flags = O_PATH, .no_symlinks = true },
                         &fd);
        if (r == -ENOENT && v->pvc->create_if_not_exists) {
                /* For any user of the image, as the volume's own directory; our umask is for our own
                 * files. */
                mask = umask(022);
                r = in_root_mkdirs(root, sub, geteuid(), &fd);
                (void) umask(mask);
        }
        return r < 0 ? not_opened(v, r, e) : bind_to(p, v, TAKE_FD(fd), path, e);
}

/* --- named volumes --- */

const struct volume *volumes_next_named(const struct sandbox *record, size_t *at)
{
        const struct volume *v = record->volumes.items;

        for (; *at < record->volumes.n; ++*at)
                if (v[*at].pvc)
                        return &v[(*at)++];
        return NULL;
}

bool volumes_have_subpaths(const struct sandbox *record)
{
        const struct volume *v = record->volumes.items;

        for (size_t i = 0; i < record->volumes.n; i++)
                if (v[i].pvc && v[i].sub_path.n)
                        return true;
        return false;
}

struct raw_volume {
        struct json_map labels, options;
        struct str driver, mountpoint;
};

static const struct json_field raw_volume_fields[] = {
        JSON_MAP(struct raw_volume, labels, "Labels", JSON_NULL_OK),
        JSON_MAP(struct raw_volume, options, "Options", JSON_NULL_OK),
        JSON_STR(struct raw_volume, driver, "Driver", JSON_NULL_OK),
        JSON_STR(struct raw_volume, mountpoint, "Mountpoint", JSON_NULL_OK),
        JSON_END,
};

/* The driver `local` with options mounts something over the directory when a container starts: what is in
 * the directory before is not it. */
static bool is_plain_directory(const struct raw_volume *raw)
{
        return str_eq(raw->driver, STR("local")) && raw->options.n == 0 && raw->mountpoint.n > 0;
}

static int resolve_subpath(const struct raw_volume *raw, const struct volume_query *q,
                           struct volume_source *ret, struct err *e)
{
        const struct volume *v = q->volume;
        struct err ignored;

        if (q->can_subpath) {
                /* Creates a missing part, if we can: the engine only looks for it. */
                if (q->settings->reach == ENGINE_REACH_SOCKET && is_plain_directory(raw))
                        (void) bind_part(ret, v, raw->mountpoint, &ignored);
                volume_source_clear(ret);
                ret->kind = SOURCE_SUBPATH;
                return 0;
        }
        if (q->settings->reach == ENGINE_REACH_EXEC)
                return engine_is_remote(v, "a subPath needs one with API 1.45", e);
        if (!is_plain_directory(raw))
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: a subPath needs a volume of the driver local without "
                               "options, or an engine with API 1.45",
                               QUOTED(v->name));
        return bind_part(ret, v, raw->mountpoint, e);
}

int volume_resolve(struct str text, const struct volume_query *q, struct volume_source *ret,
                   struct arena *a, struct err *e)
{
        struct raw_volume raw = { 0 };
        struct str tenant, installation;
        struct json_error wrong;

        if (json_decode(text, raw_volume_fields, 0, a, &raw, &wrong) < 0)
                return err_set(e, ERR_UNAVAILABLE, "the engine's response cannot be read: %s",
                               wrong.message);
        tenant = engine_label(&raw.labels, LABEL_TENANT);
        installation = engine_label(&raw.labels, LABEL_INSTALLATION);
        if ((installation.p && !str_eq(installation, q->settings->installation))
            || (!str_eq(tenant, STR("*")) && !str_eq(tenant, q->record->tenant)))
                return err_set(
                        e, ERR_NOT_FOUND,
                        "there is no such volume for this tenant; an operator may label one with " LABEL_TENANT);
        return q->volume->sub_path.n ? resolve_subpath(&raw, q, ret, e) : 0;
}

bool volume_is_ours(struct str text, const struct engine_settings *s, const struct sandbox *record,
                    struct arena *a)
{
        struct raw_volume raw = { 0 };
        struct json_error wrong;

        return json_decode(text, raw_volume_fields, 0, a, &raw, &wrong) == 0
               && str_eq(engine_label(&raw.labels, LABEL_INSTALLATION), s->installation)
               && str_eq(engine_label(&raw.labels, LABEL_TENANT), record->tenant);
}

void volume_write(struct buf *b, const struct volume *v, const struct engine_settings *s,
                  const struct sandbox *record)
{
        buf_add_str(b, STR("{\"Name\":"));
        buf_add_quoted(b, v->pvc->claim_name);
        buf_add_str(b, STR(",\"Labels\":{\"" LABEL_INSTALLATION "\":"));
        buf_add_quoted(b, s->installation);
        buf_add_str(b, STR(",\"" LABEL_TENANT "\":"));
        buf_add_quoted(b, record->tenant);
        buf_add_str(b, STR("}}"));
}

/* --- all --- */

/* What may become a bind mount. */
static bool may_be_bound(const struct volume *v)
{
        return v->host || (v->pvc && v->sub_path.n);
}

/* The agent checks a bind mount by looking at its mount path, unless others can change what leads there: the
 * directories of a volume around it. Inside a whole named volume, which has no mounts in it, the agent can
 * still tell (os/mount_identity.h). */
static int check_nesting(const struct volume *v, size_t n, size_t i, struct err *e)
{
        if (path_is_in(v[i].mount_path, STR(INSIDE_DIR)))
                return err_set(e, ERR_INVALID, "volume %s: " INSIDE_DIR " is the agent's",
                               QUOTED(v[i].name));
        for (size_t k = 0; k < n; k++)
                if (k != i && may_be_bound(&v[i]) && may_be_bound(&v[k])
                    && path_is_in(v[i].mount_path, v[k].mount_path))
                        return err_set(
                                e, ERR_UNSUPPORTED,
                                "volume %s is mounted inside of %s: this driver supports that "
                                "with whole named volumes only",
                                QUOTED(v[i].name), QUOTED(v[k].name));
        return 0;
}

int volumes_resolve(const struct engine_settings *s, const struct sandbox *record,
                    struct volume_sources *sources, struct err *e)
{
        const struct volume *v = record->volumes.items;
        struct json_strs allowed = { (struct str *) s->host_dirs, s->n_host_dirs };
        struct volume_problem wrong;
        int r = 0;

        if (record->volumes.n == 0)
                return 0;
        if (volumes_check(&record->volumes, /* with_secrets= */ false, &wrong) < 0
            || volumes_check_allowed(&record->volumes, &allowed, &wrong) < 0)
                return err_set(e, ERR_INVALID, "%s", wrong.message);
        for (size_t i = 0; i < record->volumes.n && r == 0; i++) {
                r = check_nesting(v, record->volumes.n, i, e);
                if (r < 0)
                        return r;
                if (v[i].host)
                        r = resolve_host(&sources->items[i], s, &v[i], e);
                else if (v[i].pvc && (v[i].pvc->storage.n || v[i].pvc->storage_class.n))
                        r = err_set(e, ERR_UNSUPPORTED,
                                    "volume %s: this driver supports neither sizes nor storage "
                                    "classes",
                                    QUOTED(v[i].name));
                else if (!v[i].pvc)
                        r = err_set(e, ERR_UNSUPPORTED,
                                    "volume %s: this driver cannot mount buckets",
                                    QUOTED(v[i].name));
        }
        return r;
}
