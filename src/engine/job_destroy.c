/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/volumes.h"
#include "engine/worker.h"
#include "http/url.h"

/*
 *         inspect ─ remove the container ─ its volumes with deleteOnTermination ─ its run directory
 *
 * A destroy that finds half of a sandbox does the remainder. The container's record says which volumes these are;
 * without a container they are unknown, and stay.
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
                return job_fail(j, err_errno(&j->err, r, "remove the run directory"));
        return job_done(j);
}

/* --- volumes --- */

static void next_volume(struct job *j);

/* A volume that others have mounted stays; the last of them removes it. */
static void volume_removed(struct job *j)
{
        if (j->api.result < 0)
                return job_fail(j, api_call_error(&j->api, &j->err, "remove a volume"));
        return next_volume(j);
}

/* The engine knows which containers have mounted a volume, but not which have bound a part of it. */
static void users_listed(struct job *j)
{
        struct destroy *d = j->impl;
        struct str text;

        if (j->api.result < 0)
                return job_fail(j, api_call_error(&j->api, &j->err, "list the users of a volume"));
        text = buf_str(&j->api.response);
        if (!api_call_ok(&j->api)
            || (!str_eq(text, STR("[]")) && !str_eq(text, STR("[]\n")))) /* Podman ends the line */
                return next_volume(j);
        api_call_reset(&j->api);
        api_call_target(&j->api, "/volumes/");
        url_encode(&j->api.target, d->volume->pvc->claim_name);
        return job_call(j, "DELETE", volume_removed);
}

static void volume_seen(struct job *j)
{
        struct destroy *d = j->impl;
        char filter[256 + DNS_NAME_MAX];

        if (j->api.result < 0)
                return job_fail(j, api_call_error(&j->api, &j->err, "inspect a volume"));
        if (!api_call_ok(&j->api)
            || !volume_is_ours(buf_str(&j->api.response), j->worker->settings, d->record,
                               &j->api.arena))
                return next_volume(j);
        api_call_reset(&j->api);
        api_call_target(&j->api, "/containers/json?all=true&limit=1&filters=");
        (void) snprintf(filter, sizeof(filter),
                        "{\"label\":[\"" LABEL_INSTALLATION "=%.*s\",\"" LABEL_VOLUME "%.*s\"]}",
                        STR_ARG(j->worker->settings->installation),
                        STR_ARG(d->volume->pvc->claim_name));
        url_encode(&j->api.target, str_from(filter));
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
        api_call_reset(&j->api);
        api_call_target(&j->api, "/volumes/");
        url_encode(&j->api.target, d->volume->pvc->claim_name);
        return job_call(j, "GET", volume_seen);
}

/* --- the container --- */

static void waited(struct job *j)
{
        if (!api_call_ok(&j->api) && j->api.status != 404)
                return job_fail(j,
                                api_call_error(&j->api, &j->err, "wait for the container's end"));
        return next_volume(j);
}

/* 409: it is being removed already. Done means gone, so that is waited for. */
static void removed(struct job *j)
{
        if (api_call_ok(&j->api) || (j->api.result == 0 && j->api.status == 404))
                return next_volume(j);
        if (j->api.result == 0 && j->api.status == 409) {
                return job_request(j, "POST", waited, "/containers/%s/wait?condition=removed",
                                   j->name);
        }
        return job_fail(j, api_call_error(&j->api, &j->err, "remove the container"));
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
        /* By name: the response that has its id is dropped by the next call. */
        return job_request(j, "DELETE", removed, "/containers/%s?force=true&v=true", j->name);
}

void job__destroy(struct job *j)
{
        j->impl = xnew(struct destroy);
        j->impl_free = destroy_free;
        job_request(j, "GET", seen, "/containers/%s/json", j->name);
}
