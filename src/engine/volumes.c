/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/volumes.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/answers.h"
#include "engine/names.h"
#include "model/text.h"
#include "os/fd.h"
#include "os/inside.h"

/* --- folders of the host --- */

bool volume_host_path(const struct volume *v, char *ret, size_t size)
{
        return snprintf(ret, size, "%.*s%s%.*s", STR_ARG(v->host->path), v->sub_path.n ? "/" : "",
                        STR_ARG(v->sub_path))
               < (int) size;
}

static const struct str *folder_of(const struct engine_settings *s, struct str path)
{
        for (size_t i = 0; i < s->n_host_folders; i++)
                if (path_is_in(path, s->host_folders[i]))
                        return &s->host_folders[i];
        return NULL;
}

static int look_at_host(const struct engine_settings *s, const struct volume *v, struct err *e)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        const struct str *folder = folder_of(s, v->host->path);
        char path[2 * PATH_MAX_TEXT], top[PATH_MAX_TEXT];
        int r;

        if (!folder || !volume_host_path(v, path, sizeof(path)))
                return err_set(e, ERR_INVALID, "volume %s: its path is not allowed",
                               QUOTED(v->name));
        (void) snprintf(top, sizeof(top), "%.*s", STR_ARG(*folder));
        root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_errno(e, -errno, "volume %s: open %s", QUOTED(v->name), top);
        r = inside_open(root, path[folder->n] ? path + folder->n : "/",
                        &(struct inside_how){ .flags = O_PATH, .no_links = true }, &fd);
        if (r == -ELOOP)
                return err_set(e, ERR_INVALID, "volume %s: there is a link in its path",
                               QUOTED(v->name));
        return r < 0 ? err_errno(e, r, "volume %s: open its path", QUOTED(v->name)) : 0;
}

/* --- named ones --- */

static int look_at_named(const struct volume *v, struct err *e)
{
        if (v->sub_path.n)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "volume %s: this driver mounts named volumes as a whole, without subPath",
                        QUOTED(v->name));
        if (v->pvc->storage.n || v->pvc->storage_class.n)
                return err_set(e, ERR_UNSUPPORTED,
                               "volume %s: this driver knows neither sizes nor classes of volumes",
                               QUOTED(v->name));
        return 0;
}

const struct volume *volumes_next_named(const struct sandbox *record, size_t *at)
{
        const struct volume *v = record->volumes.items;

        for (; *at < record->volumes.n; ++*at)
                if (v[*at].pvc)
                        return &v[(*at)++];
        return NULL;
}

struct raw_volume {
        struct json_map labels;
};

static const struct json_field raw_volume_fields[] = {
        JSON_MAP(struct raw_volume, labels, "Labels", JSON_NULL_OK),
        JSON_END,
};

int volume_check_owner(struct str text, const struct engine_settings *s,
                       const struct sandbox *record, struct arena *a, struct err *e)
{
        struct raw_volume raw = { 0 };
        struct json_error wrong;
        struct str tenant, installation;

        if (json_decode(text, raw_volume_fields, 0, a, &raw, &wrong) < 0)
                return err_set(e, ERR_UNAVAILABLE, "the engine's answer can't be read: %s",
                               wrong.message);
        tenant = engine_label(&raw.labels, LABEL_TENANT);
        installation = engine_label(&raw.labels, LABEL_INSTALLATION);
        if ((installation.p && !str_eq(installation, s->installation))
            || (!str_eq(tenant, STR("*")) && !str_eq(tenant, record->tenant)))
                return err_set(
                        e, ERR_NOT_FOUND,
                        "there is no such volume for this tenant; an operator may label one with " LABEL_TENANT);
        return 0;
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

int volumes_look(const struct engine_settings *s, const struct sandbox *record, struct err *e)
{
        const struct volume *v = record->volumes.items;
        struct json_strs folders = { (struct str *) s->host_folders, s->n_host_folders };
        struct volume_problem wrong;
        int r = 0;

        if (record->volumes.n == 0)
                return 0;
        if (volumes_check(&record->volumes, /* with_secrets= */ false, &wrong) < 0
            || volumes_check_allowed(&record->volumes, &folders, &wrong) < 0)
                return err_set(e, ERR_INVALID, "%s", wrong.message);
        for (size_t i = 0; i < record->volumes.n && r == 0; i++) {
                if (v[i].host)
                        r = look_at_host(s, &v[i], e);
                else if (v[i].pvc)
                        r = look_at_named(&v[i], e);
                else
                        r = err_set(e, ERR_UNSUPPORTED, "volume %s: this driver mounts no buckets",
                                    QUOTED(v[i].name));
        }
        return r;
}
