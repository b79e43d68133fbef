/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/volumes.h"

#include "base/base.h"
#include "engine/api.h"
#include "engine/names.h"
#include "model/text.h"

/* --- named ones --- */

static int look_at_named(const struct volume *v, struct err *e)
{
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

static int check_owner(const struct raw_volume *raw, const struct volume_query *q, struct err *e)
{
        struct str tenant = engine_label(&raw->labels, LABEL_TENANT);
        struct str installation = engine_label(&raw->labels, LABEL_INSTALLATION);

        if ((installation.p && !str_eq(installation, q->settings->installation))
            || (!str_eq(tenant, STR("*")) && !str_eq(tenant, q->record->tenant)))
                return err_set(
                        e, ERR_NOT_FOUND,
                        "there is no such volume for this tenant; an operator may label one with " LABEL_TENANT);
        return 0;
}

int volume_resolve(struct str text, const struct volume_query *q, struct place *ret,
                   struct arena *a, struct err *e)
{
        struct raw_volume raw = { 0 };
        struct json_error wrong;
        int r;

        if (json_decode(text, raw_volume_fields, 0, a, &raw, &wrong) < 0)
                return err_set(e, ERR_UNAVAILABLE, "the engine's answer can't be read: %s",
                               wrong.message);
        r = check_owner(&raw, q, e);
        if (r < 0 || !q->volume->sub_path.n)
                return r;
        return volume_source_subpath(ret, q->settings, q->volume,
                                     &(struct volume_facts){ .driver = raw.driver,
                                                             .mountpoint = raw.mountpoint,
                                                             .has_options = raw.options.n > 0,
                                                             .can_subpath = q->can_subpath },
                                     e);
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

/* What may be bound by its path: see engine/place.h. */
static bool may_be_bound(const struct volume *v)
{
        return v->host || (v->pvc && v->sub_path.n);
}

/* The agent can tell what was mounted by looking there, unless others can change what leads there: the
 * folders of the volume that it lies in. With a named one around it, which has no mounts in it, the agent
 * can still tell (os/mount_identity.h). */
static int check_nesting(const struct volume *v, size_t n, size_t i, struct err *e)
{
        if (path_is_in(v[i].mount_path, STR(INSIDE_DIR)))
                return err_set(e, ERR_INVALID, "volume %s: " INSIDE_DIR " is the agent's",
                               QUOTED(v[i].name));
        for (size_t k = 0; k < n; k++)
                if (k != i && may_be_bound(&v[i]) && may_be_bound(&v[k])
                    && path_is_in(v[i].mount_path, v[k].mount_path))
                        return err_set(e, ERR_UNSUPPORTED,
                                       "volume %s is mounted inside of %s: this driver does that "
                                       "with whole named volumes only",
                                       QUOTED(v[i].name), QUOTED(v[k].name));
        return 0;
}

int volumes_resolve(const struct engine_settings *s, const struct sandbox *record,
                    struct places *places, struct err *e)
{
        const struct volume *v = record->volumes.items;
        struct json_strs folders = { (struct str *) s->host_dirs, s->n_host_dirs };
        struct volume_problem wrong;
        int r = 0;

        if (record->volumes.n == 0)
                return 0;
        if (volumes_check(&record->volumes, /* with_secrets= */ false, &wrong) < 0
            || volumes_check_allowed(&record->volumes, &folders, &wrong) < 0)
                return err_set(e, ERR_INVALID, "%s", wrong.message);
        for (size_t i = 0; i < record->volumes.n && r == 0; i++) {
                r = check_nesting(v, record->volumes.n, i, e);
                if (r < 0)
                        return r;
                if (v[i].host)
                        r = volume_source_host(&places->items[i], s, &v[i], e);
                else if (v[i].pvc)
                        r = look_at_named(&v[i], e);
                else
                        r = err_set(e, ERR_UNSUPPORTED, "volume %s: this driver mounts no buckets",
                                    QUOTED(v[i].name));
        }
        return r;
}
