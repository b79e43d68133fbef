/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/snapshot.h"
#include "engine/worker.h"
#include "http/url.h"
#include "model/text.h"

/*
 *         container ─ no such snapshot? ─ its image ─ commit ─┬─ (Docker) layers ─ load ─ intermediate ─┐
 *                                                             └─────────────────────────────────────────┴─ look
 *
 * The engine freezes the container while it copies. From the commit on, whatever goes wrong is undone
 * before the reply; what a worker that was killed has left is found by its labels (job__snapshots).
 */

struct take_snapshot {
        struct job *job;
        struct sandbox *record;
        struct json_map labels;
        struct json_strs secret_env;
        struct engine_image source;
        struct arena arena; /* of these three: secrets */
        char name[ENGINE_NAME_MAX];
        char made[80]; /* the intermediate image; "": none */
        struct buf archive;
        bool named; /* there may be an image of that name, and it is ours */
        bool undoing;
};

static void take_snapshot_free(void *impl)
{
        struct take_snapshot *t = impl;

        sandbox_free(t->record);
        buf_done(&t->archive);
        arena_wipe(&t->arena);
        free(t);
}

static struct snapshot_params facts_of(const struct take_snapshot *t)
{
        return (struct snapshot_params){
                .settings = t->job->worker->settings,
                .id = t->job->q.snapshot,
                .sandbox = t->record->id,
                .tenant = t->record->tenant,
                .source = &t->source,
                .secret_env = &t->secret_env,
                .env_names = &t->record->env_names,
                .labels = &t->labels,
        };
}

static bool is_docker(const struct job *j)
{
        return j->worker->settings->kind == ENGINE_DOCKER;
}

/* --- undoing --- */

static void snapshot_undo(struct job *j, int code);

static void undo_step(struct job *j)
{
        snapshot_undo(j, ERR_RETURN(j->err.code));
}

/* What cannot be removed now is removed by the next list. */
static void snapshot_undo(struct job *j, int code)
{
        struct take_snapshot *t = j->impl;

        ASSERT(code == ERR_RETURN(j->err.code));
        api_call_reset(&j->api);
        if (t->made[0]) {
                api_call_target(&j->api, "/images/%s?noprune=true", t->made);
                t->made[0] = '\0';
                return job_call(j, "DELETE", undo_step);
        }
        if (t->named) {
                api_call_target(&j->api, "/images/%s?noprune=true", t->name);
                t->named = false;
                return job_call(j, "DELETE", undo_step);
        }
        return job_fail(j, code);
}

/* Between two steps. True: it was canceled, and is being undone. */
static bool was_canceled(struct job *j)
{
        if (!j->canceled)
                return false;
        snapshot_undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        return true;
}

static void snapshot_cancel(struct job *j)
{
        (void) j; /* the engine's copy cannot be stopped; it is undone afterwards */
}

/* --- the end --- */

static void snapshot_inspected(struct job *j)
{
        struct take_snapshot *t = j->impl;
        struct snapshot_params facts = facts_of(t);
        struct engine_image image;
        int r;

        if (!api_call_ok(&j->api))
                return snapshot_undo(j, api_call_error(&j->api, &j->err, "inspect the snapshot"));
        r = engine_image_decode(buf_str(&j->api.response), &j->api.arena, &image, &j->err);
        if (r == 0)
                r = snapshot_check_image(&image, &facts, &j->err);
        if (r < 0)
                return snapshot_undo(j, r);
        if (was_canceled(j))
                return;
        return job_done(j);
}

/* --- Docker: a document of our own about the same layers --- */

/* It holds secrets that must not be kept, so if this fails there is no snapshot. */
static void intermediate_removed(struct job *j)
{
        struct take_snapshot *t = j->impl;

        if (!api_call_ok(&j->api) && j->api.status != 404)
                return snapshot_undo(j, api_call_error(&j->api, &j->err,
                                                       "remove an intermediate image"));
        t->made[0] = '\0';
        return job_request(j, "GET", snapshot_inspected, "/images/%s/json", t->name);
}

/* Errors are in the text of the response, so what counts is what is found afterwards. */
static void loaded(struct job *j)
{
        struct take_snapshot *t = j->impl;

        t->named = true;
        if (!api_call_ok(&j->api))
                return snapshot_undo(j, api_call_error(&j->api, &j->err, "load the snapshot"));
        if (was_canceled(j))
                return;
        return job_request(j, "DELETE", intermediate_removed, "/images/%s?noprune=true", t->made);
}

static void layers_seen(struct job *j)
{
        struct take_snapshot *t = j->impl;
        struct snapshot_params facts = facts_of(t);
        struct engine_image made;
        int r;

        if (!api_call_ok(&j->api))
                return snapshot_undo(j, api_call_error(&j->api, &j->err, "inspect the commit"));
        if (was_canceled(j))
                return;
        r = engine_image_decode(buf_str(&j->api.response), &j->api.arena, &made, &j->err);
        if (r == 0)
                r = snapshot_write_archive(&t->archive, &facts, &made, &j->err);
        if (r < 0)
                return snapshot_undo(j, r);
        api_call_reset(&j->api);
        api_call_target(&j->api, "/images/load?quiet=true");
        j->api.borrowed = buf_str(&t->archive);
        j->api.slow = true;
        return job_call(j, "POST", loaded);
}

/* --- the commit --- */

static void committed(struct job *j)
{
        struct take_snapshot *t = j->impl;
        struct str id;
        int r;

        t->named |= !is_docker(j);
        if (!api_call_ok(&j->api))
                return snapshot_undo(j, api_call_error(&j->api, &j->err, "take the snapshot"));
        r = engine_commit_decode(buf_str(&j->api.response), &j->api.arena, &id, &j->err);
        if (r < 0)
                return snapshot_undo(j, r);
        if (is_docker(j))
                (void) snprintf(t->made, sizeof(t->made), "%.*s", STR_ARG(id));
        if (was_canceled(j))
                return;
        if (!is_docker(j))
                return job_request(j, "GET", snapshot_inspected, "/images/%s/json", t->name);
        return job_request(j, "GET", layers_seen, "/images/%s/json", t->made);
}

/* --- the start --- */

/* Docker's API takes the configuration of the image as a document. Podman's own API takes changes, which its copy of
 * Docker's does not. */
static void source_seen(struct job *j)
{
        struct take_snapshot *t = j->impl;
        struct snapshot_params facts;
        int r;

        if (!api_call_ok(&j->api))
                return snapshot_undo(j, api_call_error(&j->api, &j->err,
                                                       "inspect the image of the sandbox"));
        if (was_canceled(j))
                return;
        r = engine_image_decode(buf_str(&j->api.response), &t->arena, &t->source, &j->err);
        if (r < 0)
                return snapshot_undo(j, r);
        facts = facts_of(t);
        api_call_reset(&j->api);
        if (is_docker(j)) {
                api_call_target(&j->api, "/commit?container=%s&pause=true", j->name);
                snapshot_write_commit(&j->api.body, &facts);
        } else {
                buf_reset(&j->api.target);
                api_call_target(&j->api,
                                "/v4.0.0/libpod/commit?container=%s&pause=true&repo=%s&tag=%s",
                                j->name, SNAPSHOT_REPOSITORY,
                                t->name + strlen(SNAPSHOT_REPOSITORY ":"));
                snapshot_add_changes(&j->api.target, &facts);
        }
        if (buf_failed(&j->api.target))
                return snapshot_undo(j,
                                     err_set(&j->err, ERR_TOO_LARGE,
                                             "the sandbox has too many variables for a snapshot"));
        j->api.slow = true;
        return job_call(j, "POST", committed);
}

static void nothing_there(struct job *j)
{
        struct take_snapshot *t = j->impl;

        if (was_canceled(j))
                return;
        if (api_call_ok(&j->api))
                return snapshot_undo(j,
                                     err_set(&j->err, ERR_EXISTS, "the snapshot exists already"));
        if (j->api.result < 0 || j->api.status != 404)
                return snapshot_undo(j, api_call_error(&j->api, &j->err, "inspect the snapshot"));
        return job_request(j, "GET", source_seen, "/images/%s/json", t->source.id.p);
}

struct kept_container {
        struct json_map labels;
        struct json_strs secret_env;
        struct str image;
};

static const struct json_field kept_fields[] = {
        JSON_MAP(struct kept_container, labels, "labels", 0),
        JSON_STRS(struct kept_container, secret_env, "env", 0),
        JSON_STR(struct kept_container, image, "image", 0),
        JSON_END,
};

/* The response is dropped by the next call. */
static int keep_container(struct job *j, const struct engine_container *c)
{
        struct take_snapshot *t = j->impl;
        const struct kept_container from = { c->labels, c->secret_env, c->image };
        struct kept_container to = { 0 };
        char *id;

        if (json_copy_struct(kept_fields, &from, &t->arena, &to) < 0)
                return err_set(&j->err, ERR_TOO_LARGE,
                               "the container's configuration is too large");
        t->labels = to.labels;
        t->secret_env = to.secret_env;
        id = arena_dup(&t->arena, to.image);
        if (!id)
                return err_set(&j->err, ERR_TOO_LARGE,
                               "the container's configuration is too large");
        t->source.id = str_from(id);
        return engine_image_id_check(t->source.id, &j->err);
}

static void seen(struct job *j)
{
        struct take_snapshot *t = j->impl;
        struct engine_container c;
        int r = job_container(j, &c);

        if (r == 0)
                r = err_set(&j->err, ERR_NOT_FOUND, "there is no such sandbox");
        else if (r > 0 && c.state.status != RUNTIME_RUNNING)
                r = err_set(&j->err, ERR_CONFLICT, "the sandbox is %s",
                            runtime_status_to_string(c.state.status));
        if (r > 0)
                r = sandbox_decode(engine_label(&c.labels, LABEL_RECORD), &t->record, &j->err);
        if (r == 0)
                r = keep_container(j, &c);
        if (r < 0)
                return job_fail(j, r);
        if (was_canceled(j))
                return;
        return job_request(j, "GET", nothing_there, "/images/%s/json", t->name);
}

void job__snapshot(struct job *j)
{
        struct take_snapshot *t = xnew(struct take_snapshot);

        t->job = j;
        arena_init(&t->arena, ARENA_MAX_REQUEST);
        buf_init(&t->archive, 16 * MiB);
        engine_snapshot_name(j->q.snapshot, j->worker->settings->installation, t->name);
        j->impl = t;
        j->impl_free = take_snapshot_free;
        j->cancel = snapshot_cancel;
        job_request(j, "GET", seen, "/containers/%s/json", j->name);
}

/* An entry of an image list: labels and names. */
#define ENTRY_MAX     (4 * MiB)
#define LEFTOVERS_MAX 1024 /* per list; the next one finds the remainder */

/* --- removing --- */

static void removed(struct job *j)
{
        if (api_call_ok(&j->api) || (j->api.result == 0 && j->api.status == 404))
                return job_done(j);
        if (j->api.result == 0 && j->api.status == 409)
                return job_fail(j, err_set(&j->err, ERR_CONFLICT,
                                           "a sandbox that was created from the snapshot needs "
                                           "it; delete that sandbox first"));
        return job_fail(j, api_call_error(&j->api, &j->err, "remove the snapshot"));
}

static void remove_seen(struct job *j)
{
        struct str ours = j->worker->settings->installation;
        struct engine_image image;
        char name[ENGINE_NAME_MAX];
        int r;

        if (j->api.result == 0 && j->api.status == 404)
                return job_done(j);
        if (!api_call_ok(&j->api))
                return job_fail(j, api_call_error(&j->api, &j->err, "inspect the snapshot"));
        r = engine_image_decode(buf_str(&j->api.response), &j->api.arena, &image, &j->err);
        if (r < 0)
                return job_fail(j, r);
        engine_snapshot_name(j->q.snapshot, ours, name);
        if (!str_eq(engine_label(&image.labels, LABEL_SNAPSHOT_INSTALLATION), ours))
                return job_fail(j, err_set(&j->err, ERR_CONFLICT,
                                           "the image %s is not of this installation; it is left "
                                           "alone",
                                           name));
        return job_request(j, "DELETE", removed, "/images/%s", name);
}

void job__snapshot_remove(struct job *j)
{
        char name[ENGINE_NAME_MAX];

        engine_snapshot_name(j->q.snapshot, j->worker->settings->installation, name);
        job_request(j, "GET", remove_seen, "/images/%s/json", name);
}

/* --- listing --- */

struct leftover {
        struct list node;
        char id[80];
};

struct listing {
        struct job *job;
        struct json_stream objects;
        struct list leftovers;
        size_t n;
};

static void listing_free(void *impl)
{
        struct listing *l = impl;

        list_for_each (n, &l->leftovers)
                free(container_of(n, struct leftover, node));
        json_stream_done(&l->objects);
        free(l);
}

/* The engine filters; the labels are checked again here. An image that was made from a snapshot has the labels,
 * too, but not the name. */
static void list_image(struct listing *l, const struct engine_listed_image *image)
{
        struct engine_worker *w = l->job->worker;
        struct str ours = w->settings->installation;
        struct str id = engine_label(&image->labels, LABEL_SNAPSHOT);
        struct leftover *x;
        char name[ENGINE_NAME_MAX];
        bool named = false;

        if (!str_eq(engine_label(&image->labels, LABEL_SNAPSHOT_INSTALLATION), ours) || !id.p
            || !sandbox_id_is_valid(id))
                return;
        if (engine_label(&image->labels, LABEL_SNAPSHOT_PART).n > 0) {
                if (l->n++ >= LEFTOVERS_MAX)
                        return;
                x = xnew(struct leftover);
                (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(image->id));
                list_append(&l->leftovers, &x->node);
                return;
        }
        engine_snapshot_name(id, ours, name);
        for (size_t i = 0; i < image->tags.n; i++)
                named |= str_eq(image->tags.items[i], str_from(name));
        if (named)
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
                list_image(l, &image);
        else
                l->job->err = e;
        arena_done(&a);
        return r < 0 ? -EBADMSG : 0;
}

/* What cannot be removed is tried again by the next list. */
static void remove_leftover(struct job *j)
{
        struct listing *l = j->impl;
        struct list *first = list_first(&l->leftovers);
        struct leftover *x;

        if (!first)
                return job_done(j);
        x = container_of(first, struct leftover, node);
        list_remove(first);
        api_call_reset(&j->api);
        api_call_target(&j->api, "/images/%s?noprune=true", x->id);
        free(x);
        return job_call(j, "DELETE", remove_leftover);
}

/* An intermediate image of a running snapshot is not a leftover. */
static void listed(struct job *j)
{
        if (!api_call_ok(&j->api))
                return job_fail(j, api_call_error(&j->api, &j->err, "list the snapshots"));
        if (job_is_under_way(j->worker, ENGINE_SNAPSHOT))
                return job_done(j);
        return remove_leftover(j);
}

void job__snapshots(struct job *j)
{
        struct listing *l = xnew(struct listing);
        char filter[256];

        l->job = j;
        list_init(&l->leftovers);
        json_stream_init(&l->objects, ENTRY_MAX, list_one, l);
        j->impl = l;
        j->impl_free = listing_free;
        api_call_reset(&j->api);
        api_call_target(&j->api, "/images/json?filters=");
        (void) snprintf(filter, sizeof(filter),
                        "{\"label\":[\"" LABEL_SNAPSHOT_INSTALLATION "=%.*s\"]}",
                        STR_ARG(j->worker->settings->installation));
        url_encode(&j->api.target, str_from(filter));
        j->api.objects = &l->objects;
        job_call(j, "GET", listed);
}
