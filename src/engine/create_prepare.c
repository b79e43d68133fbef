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
        if (!ask_is_good(&j->ask) && (j->ask.result < 0 || j->ask.status != 409))
                return create__undo(j, ask_error(&j->ask, &j->err, "make the network"));
        j->worker->network_made = true;
        if (create__was_canceled(j))
                return;
        return create__make(j);
}

static void network_seen(struct job *j)
{
        struct worker *w = j->worker;
        char name[ENGINE_NAME_MAX];

        if (create__was_canceled(j))
                return;
        if (ask_is_good(&j->ask)) {
                w->network_made = true;
                return create__make(j);
        }
        if (j->ask.result < 0 || j->ask.status != 404)
                return create__undo(j, ask_error(&j->ask, &j->err, "look for the network"));
        engine_network_name(w->settings->installation, name);
        ask_reset(&j->ask);
        ask_to(&j->ask, "/networks/create");
        body_write_network(&j->ask.body, w->settings);
        return job_ask(j, "POST", network_made);
}

static void prepare_network(struct job *j)
{
        struct worker *w = j->worker;
        char name[ENGINE_NAME_MAX];

        if (!body_needs_network(w->settings) || w->network_made)
                return create__make(j);
        engine_network_name(w->settings->installation, name);
        ask_reset(&j->ask);
        ask_to(&j->ask, "/networks/%s", name);
        return job_ask(j, "GET", network_seen);
}

/* --- named volumes --- */

static void volume_made(struct job *j)
{
        if (!ask_is_good(&j->ask))
                return create__undo(j, ask_error(&j->ask, &j->err, "make the volume"));
        if (create__was_canceled(j))
                return;
        return prepare_volumes(j);
}

static void volume_seen(struct job *j)
{
        struct create *c = j->impl;
        const struct engine_settings *s = j->worker->settings;
        int r;

        if (create__was_canceled(j))
                return;
        if (ask_is_good(&j->ask)) {
                r = volume_check_owner(buf_str(&j->ask.answer), s, c->record, &j->ask.arena,
                                       &j->err);
                return r < 0 ? create__undo(j, r) : prepare_volumes(j);
        }
        if (j->ask.result < 0 || j->ask.status != 404)
                return create__undo(j, ask_error(&j->ask, &j->err, "look at the volume"));
        if (!c->volume->pvc->create_if_not_exists)
                return create__undo(j, err_set(&j->err, ERR_NOT_FOUND, "there is no volume %s",
                                               QUOTED(c->volume->pvc->claim_name)));
        ask_reset(&j->ask);
        ask_to(&j->ask, "/volumes/create");
        volume_write(&j->ask.body, c->volume, s, c->record);
        return job_ask(j, "POST", volume_made);
}

/* One after the other. */
static void prepare_volumes(struct job *j)
{
        struct create *c = j->impl;

        c->volume = volumes_next_named(c->record, &c->next_volume);
        if (!c->volume)
                return prepare_network(j);
        ask_reset(&j->ask);
        ask_to(&j->ask, "/volumes/");
        url_encode(&j->ask.target, c->volume->pvc->claim_name);
        return job_ask(j, "GET", volume_seen);
}

/* --- the image --- */

static void pull_done(struct pull_wait *p, int code)
{
        struct create *c = container_of(p, struct create, pull);
        struct job *j = c->job;

        c->stage = STAGE_ASKING;
        if (create__was_canceled(j))
                return;
        if (code < 0) {
                j->err = p->err;
                return create__undo(j, code);
        }
        c->pulled = true;
        return create__prepare(j);
}

static void image_seen(struct job *j)
{
        struct create *c = j->impl;
        char folder[PATH_MAX_TEXT];
        struct body_facts facts;
        int r;

        if (create__was_canceled(j))
                return;
        if (j->ask.result == 0 && j->ask.status == 404 && !c->pulled) {
                c->stage = STAGE_PULLING;
                c->pull.done = pull_done;
                return pull_start(j->worker, &c->pull, c->record->image, j->q.auth);
        }
        if (!ask_is_good(&j->ask))
                return create__undo(j, ask_error(&j->ask, &j->err, "look at the image"));
        r = engine_image_decode(buf_str(&j->ask.answer), &c->arena, &c->image, &j->err);
        if (r == 0) {
                facts = create__facts(j, folder, sizeof(folder));
                r = body_check(&facts, &j->err);
        }
        if (r < 0)
                return create__undo(j, r);
        return prepare_volumes(j);
}

void create__prepare(struct job *j)
{
        struct create *c = j->impl;

        ask_reset(&j->ask);
        ask_to(&j->ask, "/images/");
        url_encode_path(&j->ask.target, c->record->image);
        ask_to(&j->ask, "/json");
        job_ask(j, "GET", image_seen);
}
