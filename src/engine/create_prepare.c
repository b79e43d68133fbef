/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/create.h"
#include "engine/names.h"
#include "engine/volumes.h"
#include "http/url.h"
#include "model/text.h"

static void prepare_volumes(struct job *j);

/* --- the network --- */

static void network_made(struct job *j)
{
        if (!api_call_ok(&j->api) && (j->api.result < 0 || j->api.status != 409))
                return create__undo(j, api_call_error(&j->api, &j->err, "create the network"));
        j->worker->network_made = true;
        if (create__was_canceled(j))
                return;
        return create__make(j);
}

static void network_seen(struct job *j)
{
        struct engine_worker *w = j->worker;

        if (create__was_canceled(j))
                return;
        if (api_call_ok(&j->api)) {
                w->network_made = true;
                return create__make(j);
        }
        if (j->api.result < 0 || j->api.status != 404)
                return create__undo(j, api_call_error(&j->api, &j->err, "inspect the network"));
        api_call_reset(&j->api);
        api_call_target(&j->api, "/networks/create");
        network_write(&j->api.body, w->settings);
        return job_call(j, "POST", network_made);
}

/* --- named volumes --- */

/* An engine that is to create a volume which exists by now responds with that one, so the response is checked
 * in both cases. */
static void take_volume(struct job *j)
{
        struct create *c = j->impl;
        const struct volume_query q = { .settings = j->worker->settings,
                                        .record = c->record,
                                        .volume = c->volume,
                                        .can_subpath = c->can_subpath };
        int r = volume_resolve(buf_str(&j->api.response), &q,
                               volume_source_of(&c->sources, c->record, c->volume), &j->api.arena,
                               &j->err);

        return r < 0 ? create__undo(j, r) : prepare_volumes(j);
}

static void volume_made(struct job *j)
{
        if (!api_call_ok(&j->api))
                return create__undo(j, api_call_error(&j->api, &j->err, "create the volume"));
        if (create__was_canceled(j))
                return;
        return take_volume(j);
}

static void volume_seen(struct job *j)
{
        struct create *c = j->impl;

        if (create__was_canceled(j))
                return;
        if (api_call_ok(&j->api))
                return take_volume(j);
        if (j->api.result < 0 || j->api.status != 404)
                return create__undo(j, api_call_error(&j->api, &j->err, "inspect the volume"));
        if (!c->volume->pvc->create_if_not_exists)
                return create__undo(j, err_set(&j->err, ERR_NOT_FOUND, "there is no volume %s",
                                               QUOTED(c->volume->pvc->claim_name)));
        api_call_reset(&j->api);
        api_call_target(&j->api, "/volumes/create");
        volume_write(&j->api.body, c->volume, j->worker->settings, c->record);
        return job_call(j, "POST", volume_made);
}

static void version_seen(struct job *j)
{
        struct create *c = j->impl;
        struct engine_info info = { 0 };
        int r = 0;

        if (create__was_canceled(j))
                return;
        if (!api_call_ok(&j->api))
                r = api_call_error(&j->api, &j->err, "get its version");
        if (r == 0)
                r = engine_version_decode(buf_str(&j->api.response), &j->api.arena, &info, &j->err);
        if (r < 0)
                return create__undo(j, r);
        c->version_seen = true;
        c->can_subpath = engine_api_is(info.api_version, API_MINOR_SUBPATH);
        return prepare_volumes(j);
}

/* One after the other, then the network. The version of Podman's copy of the API does not say what it can do. */
static void prepare_volumes(struct job *j)
{
        struct engine_worker *w = j->worker;
        struct create *c = j->impl;
        char name[ENGINE_NAME_MAX];

        if (volumes_have_subpaths(c->record) && !c->version_seen
            && w->settings->kind == ENGINE_DOCKER)
                return job_request(j, "GET", version_seen, "/version");
        c->volume = volumes_next_named(c->record, &c->next_volume);
        if (c->volume) {
                api_call_reset(&j->api);
                api_call_target(&j->api, "/volumes/");
                url_encode(&j->api.target, c->volume->pvc->claim_name);
                return job_call(j, "GET", volume_seen);
        }
        if (!container_needs_network(w->settings) || w->network_made)
                return create__make(j);
        engine_network_name(w->settings->installation, name);
        return job_request(j, "GET", network_seen, "/networks/%s", name);
}

/* --- the image --- */

static void pull_done(struct pull_wait *p, int code)
{
        struct create *c = container_of(p, struct create, pull);
        struct job *j = c->job;

        c->stage = STAGE_CHECKING;
        if (create__was_canceled(j))
                return;
        if (code < 0) {
                j->err = p->err;
                return create__undo(j, code);
        }
        c->pulled = true;
        return create__prepare(j);
}

static int no_snapshot(struct job *j)
{
        return err_set(&j->err, ERR_NOT_FOUND, "there is no such snapshot any more");
}

/* hutchd has decided who may use which snapshot. That it belongs to the tenant is checked here again: a tag is
 * only a name. */
static bool snapshot_is_for(const struct engine_image *image, const struct job *j)
{
        const struct sandbox *record = ((const struct create *) j->impl)->record;
        const struct json_map *labels = &image->labels;

        return str_eq(engine_label(labels, LABEL_SNAPSHOT_INSTALLATION),
                      j->worker->settings->installation)
               && str_eq(engine_label(labels, LABEL_SNAPSHOT), record->snapshot_id)
               && str_eq(engine_label(labels, LABEL_SNAPSHOT_TENANT), record->tenant);
}

static void image_seen(struct job *j)
{
        struct create *c = j->impl;
        char dir[PATH_MAX_TEXT];
        struct container_params params;
        int r;

        if (create__was_canceled(j))
                return;
        if (j->api.result == 0 && j->api.status == 404 && c->record->snapshot_id.p)
                return create__undo(j, no_snapshot(j));
        if (j->api.result == 0 && j->api.status == 404 && !c->pulled) {
                c->stage = STAGE_PULLING;
                c->pull.done = pull_done;
                return pull_start(j->worker, &c->pull, c->record->image, j->q.auth);
        }
        if (!api_call_ok(&j->api))
                return create__undo(j, api_call_error(&j->api, &j->err, "inspect the image"));
        r = engine_image_decode(buf_str(&j->api.response), &c->arena, &c->image, &j->err);
        if (r == 0 && c->record->snapshot_id.p && !snapshot_is_for(&c->image, j))
                r = no_snapshot(j);
        if (r == 0) {
                params = create__params(j, dir, sizeof(dir));
                r = container_check(&params, &j->err);
        }
        if (r < 0)
                return create__undo(j, r);
        return prepare_volumes(j);
}

void create__prepare(struct job *j)
{
        struct create *c = j->impl;
        char name[ENGINE_NAME_MAX];

        api_call_reset(&j->api);
        api_call_target(&j->api, "/images/");
        if (c->record->snapshot_id.p) {
                engine_snapshot_name(c->record->snapshot_id, j->worker->settings->installation,
                                     name);
                api_call_target(&j->api, "%s", name);
        } else {
                url_encode_path(&j->api.target, c->record->image);
        }
        api_call_target(&j->api, "/json");
        job_call(j, "GET", image_seen);
}
