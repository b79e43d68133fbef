/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "model/text.h"

/* An image's entry in a list: its labels, and names. */
#define ENTRY_MAX     (4 * MiB)
#define LEFTOVERS_MAX 1024 /* of one list; the next one finds the rest */

/* --- removing one --- */

static void removed(struct job *j)
{
        if (api_call_ok(&j->ask) || (j->ask.result == 0 && j->ask.status == 404))
                return job_done(j);
        if (j->ask.result == 0 && j->ask.status == 409)
                return job_fail(j, err_set(&j->err, ERR_CONFLICT,
                                           "a sandbox that was made of the snapshot needs it; "
                                           "delete that one first"));
        return job_fail(j, api_call_error(&j->ask, &j->err, "remove the snapshot"));
}

static void remove_seen(struct job *j)
{
        struct str ours = j->worker->settings->installation;
        struct engine_image image;
        char name[ENGINE_NAME_MAX];
        int r;

        if (j->ask.result == 0 && j->ask.status == 404)
                return job_done(j);
        if (!api_call_ok(&j->ask))
                return job_fail(j, api_call_error(&j->ask, &j->err, "look at the snapshot"));
        r = engine_image_decode(buf_str(&j->ask.answer), &j->ask.arena, &image, &j->err);
        if (r < 0)
                return job_fail(j, r);
        engine_snapshot_name(j->q.snapshot, ours, name);
        if (!str_eq(engine_label(&image.labels, LABEL_SNAPSHOT_INSTALLATION), ours))
                return job_fail(j, err_set(&j->err, ERR_CONFLICT,
                                           "the image %s is not of this installation; it is left "
                                           "alone",
                                           name));
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s", name);
        return job_call(j, "DELETE", removed);
}

void job__snapshot_remove(struct job *j)
{
        char name[ENGINE_NAME_MAX];

        engine_snapshot_name(j->q.snapshot, j->worker->settings->installation, name);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s/json", name);
        job_call(j, "GET", remove_seen);
}

/* --- all --- */

struct leftover {
        struct list node;
        char id[80];
};

struct listing {
        struct job *job;
        struct pieces pieces;
        struct list leftovers;
        size_t n;
};

static void listing_free(void *impl)
{
        struct listing *l = impl;

        list_for_each (n, &l->leftovers)
                free(container_of(n, struct leftover, node));
        json_stream_done(&l->pieces);
        free(l);
}

static bool is_named(const struct engine_listed_image *image, const char *name)
{
        for (size_t i = 0; i < image->tags.n; i++)
                if (str_eq(image->tags.items[i], str_from(name)))
                        return true;
        return false;
}

static void note_leftover(struct listing *l, struct str id)
{
        struct leftover *x;

        if (l->n >= LEFTOVERS_MAX)
                return;
        x = xnew(struct leftover);
        (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(id));
        list_append(&l->leftovers, &x->node);
        l->n++;
}

/* The filter is the engine's; the look at the labels is ours. Who has made something of a snapshot has the labels,
 * too, but not the name. */
static void look_at(struct listing *l, const struct engine_listed_image *image)
{
        struct worker *w = l->job->worker;
        struct str ours = w->settings->installation;
        struct str id = engine_label(&image->labels, LABEL_SNAPSHOT);
        char name[ENGINE_NAME_MAX];

        if (!str_eq(engine_label(&image->labels, LABEL_SNAPSHOT_INSTALLATION), ours) || !id.p
            || !sandbox_id_is_valid(id))
                return;
        if (engine_label(&image->labels, LABEL_SNAPSHOT_PART).n > 0)
                return note_leftover(l, image->id);
        engine_snapshot_name(id, ours, name);
        if (is_named(image, name))
                engine_worker_send(w,
                                   &(struct engine_message){ .request_id = l->job->request_id,
                                                             .snapshot = id },
                                   -EBADF);
}

static int list_one(void *data, struct str object)
{
        struct listing *l = data;
        struct engine_listed_image image;
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 4 * ENTRY_MAX);
        r = engine_listed_image_decode(object, &a, &image, &e);
        if (r == 0)
                look_at(l, &image);
        else
                l->job->err = e;
        arena_done(&a);
        return r < 0 ? -EBADMSG : 0;
}

/* One that can't be removed is tried again with the next list. */
static void remove_leftover(struct job *j)
{
        struct listing *l = j->impl;
        struct list *first = list_first(&l->leftovers);
        struct leftover *x;

        if (!first)
                return job_done(j);
        x = container_of(first, struct leftover, node);
        list_remove(first);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s?noprune=true", x->id);
        free(x);
        return job_call(j, "DELETE", remove_leftover);
}

/* A part of a snapshot that is being made is none. */
static void listed(struct job *j)
{
        if (!api_call_ok(&j->ask))
                return job_fail(j, api_call_error(&j->ask, &j->err, "list the snapshots"));
        if (job_is_under_way(j->worker, ENGINE_SNAPSHOT))
                return job_done(j);
        return remove_leftover(j);
}

void job__snapshots(struct job *j)
{
        struct listing *l = xnew(struct listing);

        l->job = j;
        list_init(&l->leftovers);
        json_stream_init(&l->pieces, ENTRY_MAX, list_one, l);
        j->impl = l;
        j->impl_free = listing_free;
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/json?filters=");
        engine_worker_add_image_filter(j->worker, &j->ask.target);
        j->ask.pieces = &l->pieces;
        job_call(j, "GET", listed);
}
