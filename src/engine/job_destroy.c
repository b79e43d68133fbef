/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/volumes.h"
#include "engine/worker.h"
#include "http/url.h"

/*
 *         look ─ remove the container ─ its volumes that were to go with it ─ its folder
 *
 * Whoever finds half of it begins anew. The container's record says which volumes these are; without a
 * container nobody knows, and they stay.
 */

struct destroy {
        struct sandbox *record; /* NULL: it could not be read */
        const struct volume *volume;
        size_t next_volume;
};

static void destroy_free(void *impl)
{
        struct destroy *d = impl;

        sandbox_free(d->record);
        free(d);
}

static void run_dir_removed(void *data, int r)
{
        struct job *j = data;

        if (r < 0)
                return job_fail(j, err_errno(&j->err, r, "remove the folder of the sandbox"));
        return job_done(j);
}

/* --- volumes --- */

static void next_volume(struct job *j);

/* One that others have mounted stays; the last of them takes it along. */
static void volume_removed(struct job *j)
{
        if (j->ask.result < 0)
                return job_fail(j, api_call_error(&j->ask, &j->err, "remove a volume"));
        return next_volume(j);
}

static void remove_volume(struct job *j)
{
        struct destroy *d = j->impl;

        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/volumes/");
        url_encode(&j->ask.target, d->volume->pvc->claim_name);
        job_call(j, "DELETE", volume_removed);
}

/* "[]", and Podman ends its line. */
static bool is_empty_list(struct str text)
{
        return str_eq(text, STR("[]")) || str_eq(text, STR("[]\n"));
}

/* The engine knows who has mounted a volume, but not who has bound a part of it. */
static void users_listed(struct job *j)
{
        if (j->ask.result < 0)
                return job_fail(j, api_call_error(&j->ask, &j->err, "look who uses a volume"));
        if (!api_call_ok(&j->ask) || !is_empty_list(buf_str(&j->ask.answer)))
                return next_volume(j);
        return remove_volume(j);
}

static void volume_seen(struct job *j)
{
        struct destroy *d = j->impl;

        if (j->ask.result < 0)
                return job_fail(j, api_call_error(&j->ask, &j->err, "look at a volume"));
        if (!api_call_ok(&j->ask)
            || !volume_is_ours(buf_str(&j->ask.answer), j->worker->settings, d->record,
                               &j->ask.arena))
                return next_volume(j);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/containers/json?all=true&limit=1&filters=");
        engine_worker_add_volume_filter(j->worker, &j->ask.target, d->volume->pvc->claim_name);
        return job_call(j, "GET", users_listed);
}

static void next_volume(struct job *j)
{
        struct destroy *d = j->impl;

        do
                d->volume = d->record ? volumes_next_named(d->record, &d->next_volume) : NULL;
        while (d->volume && !d->volume->pvc->delete_on_termination);
        if (!d->volume)
                return run_dir_remove(&j->worker->run_dirs, j->id, run_dir_removed, j);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/volumes/");
        url_encode(&j->ask.target, d->volume->pvc->claim_name);
        return job_call(j, "GET", volume_seen);
}

/* --- the container --- */

static void waited(struct job *j)
{
        if (!api_call_ok(&j->ask) && j->ask.status != 404)
                return job_fail(j,
                                api_call_error(&j->ask, &j->err, "wait for the container's end"));
        return next_volume(j);
}

/* 409: somebody else is removing it. Done means gone, so we wait for him. */
static void removed(struct job *j)
{
        if (api_call_ok(&j->ask) || (j->ask.result == 0 && j->ask.status == 404))
                return next_volume(j);
        if (j->ask.result == 0 && j->ask.status == 409) {
                api_call_reset(&j->ask);
                api_call_target(&j->ask, "/containers/%s/wait?condition=removed", j->name);
                return job_call(j, "POST", waited);
        }
        return job_fail(j, api_call_error(&j->ask, &j->err, "remove the container"));
}

static void seen(struct job *j)
{
        struct destroy *d = j->impl;
        struct engine_container c;
        struct str record;
        struct err e;
        int r = job_container(j, &c);

        if (r < 0)
                return job_fail(j, r);
        if (r == 0)
                return next_volume(j);
        record = engine_label(&c.labels, LABEL_RECORD);
        if (record.p && sandbox_decode(record, &d->record, &e) < 0)
                d->record = NULL;
        /* By name: the answer that has its id goes with the next question. */
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/containers/%s?force=true&v=true", j->name);
        return job_call(j, "DELETE", removed);
}

void job__destroy(struct job *j)
{
        j->impl = xnew(struct destroy);
        j->impl_free = destroy_free;
        job_inspect_container(j, seen);
}
