/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "model/text.h"
#include "os/fd.h"
#include "os/in_root.h"

/* --- life --- */

static void volume_source_clear(struct place *p)
{
        (void) fd_close(p->fd);
        free((char *) p->source.p);
        *p = (struct place){ .how = SOURCE_VOLUME, .fd = -EBADF };
}

void volume_sources_init(struct places *p, const struct sandbox *record)
{
        *p = (struct places){ .items = xcalloc(record->volumes.n + 1, sizeof(struct place)),
                              .n = record->volumes.n };
        for (size_t i = 0; i < p->n; i++)
                p->items[i].fd = -EBADF;
}

void volume_sources_done(struct places *p)
{
        for (size_t i = 0; i < p->n; i++)
                volume_source_clear(&p->items[i]);
        free(p->items);
        *p = (struct places){ 0 };
}

bool volume_sources_have_bind(const struct places *p)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->items[i].how == SOURCE_BIND)
                        return true;
        return false;
}

/* --- binding --- */

/* Takes fd. */
static int bind_to(struct place *p, const struct volume *v, int fd, const char *source,
                   struct err *e)
{
        int r;

        volume_source_clear(p);
        p->fd = fd;
        r = mount_identity_of(fd, &p->mount_identity);
        if (r < 0)
                return err_errno(e, r, "volume %s: look at it", QUOTED(v->name));
        p->how = SOURCE_BIND;
        p->source = str_from(xstrndup_str(str_from(source)));
        return 0;
}

static int not_opened(const struct volume *v, int r, struct err *e)
{
        if (r == -ELOOP)
                return err_set(e, ERR_INVALID, "volume %s: there is a link in its path",
                               QUOTED(v->name));
        if (r == -ENOENT || r == -ENOTDIR)
                return err_set(e, ERR_NOT_FOUND, "volume %s: there is no such folder",
                               QUOTED(v->name));
        return err_errno(e, r, "volume %s: open its path", QUOTED(v->name));
}

/* What is looked at here must be what the engine mounts. */
static int far_away(const struct volume *v, const char *what, struct err *e)
{
        return err_set(e, ERR_UNSUPPORTED,
                       "volume %s: with reach: exec the engine may be on another machine, and %s",
                       QUOTED(v->name), what);
}

/* --- folders of the host --- */

static const struct str *folder_of(const struct engine_settings *s, struct str path)
{
        for (size_t i = 0; i < s->n_host_dirs; i++)
                if (path_is_in(path, s->host_dirs[i]))
                        return &s->host_dirs[i];
        return NULL;
}

static bool joined(char *ret, size_t size, struct str path, struct str sub)
{
        return snprintf(ret, size, "%.*s%s%.*s", STR_ARG(path), sub.n ? "/" : "", STR_ARG(sub))
               < (int) size;
}

int volume_source_host(struct place *p, const struct engine_settings *s, const struct volume *v,
                       struct err *e)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        const struct str *folder = folder_of(s, v->host->path);
        char path[PATH_MAX_TEXT + 1], top[PATH_MAX_TEXT + 1];
        int r;

        if (s->reach == ENGINE_REACH_EXEC)
                return far_away(v, "folders of the host can't be mounted", e);
        if (!folder || !joined(path, sizeof(path), v->host->path, v->sub_path))
                return err_set(e, ERR_INVALID, "volume %s: its path is not allowed",
                               QUOTED(v->name));
        (void) snprintf(top, sizeof(top), "%.*s", STR_ARG(*folder));
        root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_errno(e, -errno, "volume %s: open %s", QUOTED(v->name), top);
        r = in_root_open(root, path[folder->n] ? path + folder->n : "/",
                         &(struct in_root_how){ .flags = O_PATH, .no_symlinks = true }, &fd);
        return r < 0 ? not_opened(v, r, e) : bind_to(p, v, TAKE_FD(fd), path, e);
}

/* --- parts of named volumes --- */

static int open_part(int root, const struct volume *v, int *ret_fd)
{
        char sub[PATH_MAX_TEXT + 1];
        mode_t mask;
        int r;

        (void) snprintf(sub, sizeof(sub), "%.*s", STR_ARG(v->sub_path));
        r = in_root_open(root, sub, &(struct in_root_how){ .flags = O_PATH, .no_symlinks = true },
                         ret_fd);
        if (r != -ENOENT || !v->pvc->create_if_not_exists)
                return r;
        /* For whoever the image's user is, as the volume's own folder; our umask is for what is ours. */
        mask = umask(022);
        r = in_root_mkdirs(root, sub, geteuid(), ret_fd);
        (void) umask(mask);
        return r;
}

static int bind_part(struct place *p, const struct volume *v, struct str mountpoint, struct err *e)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        char path[PATH_MAX_TEXT + 1], top[PATH_MAX_TEXT + 1];
        int r;

        if (!text_is_plain_path(mountpoint) || !joined(top, sizeof(top), mountpoint, STR_NULL)
            || !joined(path, sizeof(path), mountpoint, v->sub_path))
                return err_set(e, ERR_UNSUPPORTED, "volume %s: the engine does not say where it is",
                               QUOTED(v->name));
        root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: a subPath needs a worker that can open the engine's "
                               "folder %s (%s), or an engine with API 1.45",
                               QUOTED(v->name), QUOTED(mountpoint), err_text(-errno));
        r = open_part(root, v, &fd);
        return r < 0 ? not_opened(v, r, e) : bind_to(p, v, TAKE_FD(fd), path, e);
}

/* The driver `local` with options mounts something upon the folder when a container starts: what is in the
 * folder before is not it. */
static bool is_folder(const struct volume_facts *f)
{
        return str_eq(f->driver, STR("local")) && !f->has_options && f->mountpoint.n > 0;
}

int volume_source_subpath(struct place *p, const struct engine_settings *s, const struct volume *v,
                          const struct volume_facts *facts, struct err *e)
{
        struct err ignored;

        if (facts->can_subpath) {
                /* So that a part that is missing is made, if we can; an engine only looks for it. */
                if (s->reach == ENGINE_REACH_SOCKET && is_folder(facts))
                        (void) bind_part(p, v, facts->mountpoint, &ignored);
                volume_source_clear(p);
                p->how = SOURCE_SUBPATH;
                return 0;
        }
        if (s->reach == ENGINE_REACH_EXEC)
                return far_away(v, "a subPath needs one with API 1.45", e);
        if (!is_folder(facts))
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: a subPath needs a volume of the driver local without "
                               "options, or an engine with API 1.45",
                               QUOTED(v->name));
        return bind_part(p, v, facts->mountpoint, e);
}
