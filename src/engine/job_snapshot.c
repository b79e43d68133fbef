/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/snapshot.h"
#include "engine/worker.h"

/*
 *         container ─ no such snapshot? ─ its image ─ commit ─┬─ (Docker) layers ─ load ─ intermediate ─┐
 *                                                             └─────────────────────────────────────────┴─ look
 *
 * The engine freezes the container while it copies. From the commit on, whatever goes wrong is undone
 * before it is told; what a worker that was killed has left is known by its labels (job_snapshots.c).
 */

struct taking {
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

static void taking_free(void *impl)
{
        struct taking *t = impl;

        sandbox_free(t->record);
        buf_done(&t->archive);
        arena_wipe(&t->arena);
        free(t);
}

static struct snapshot_params facts_of(const struct taking *t)
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

static void undo(struct job *j, int code);

static void undo_step(struct job *j)
{
        undo(j, ERR_RETURN(j->err.code));
}

/* What can't be removed now is removed with the next list. */
static void undo(struct job *j, int code)
{
        struct taking *t = j->impl;

        ASSERT(code == ERR_RETURN(j->err.code));
        api_call_reset(&j->ask);
        if (t->made[0]) {
                api_call_target(&j->ask, "/images/%s?noprune=true", t->made);
                t->made[0] = '\0';
                return job_call(j, "DELETE", undo_step);
        }
        if (t->named) {
                api_call_target(&j->ask, "/images/%s?noprune=true", t->name);
                t->named = false;
                return job_call(j, "DELETE", undo_step);
        }
        return job_fail(j, code);
}

/* Between two steps. True: it was given up, and that is seen to. */
static bool was_canceled(struct job *j)
{
        if (!j->canceled)
                return false;
        undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        return true;
}

static void cancel(struct job *j)
{
        (void) j; /* what the engine copies can't be stopped; it is undone when it is there */
}

/* --- the end --- */

static void looked(struct job *j)
{
        struct taking *t = j->impl;
        struct snapshot_params facts = facts_of(t);
        struct engine_image image;
        int r;

        if (!api_call_ok(&j->ask))
                return undo(j, api_call_error(&j->ask, &j->err, "look at the snapshot"));
        r = engine_image_decode(buf_str(&j->ask.answer), &j->ask.arena, &image, &j->err);
        if (r == 0)
                r = snapshot_check_image(&image, &facts, &j->err);
        if (r < 0)
                return undo(j, r);
        if (was_canceled(j))
                return;
        return job_done(j);
}

static void look(struct job *j)
{
        struct taking *t = j->impl;

        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s/json", t->name);
        job_call(j, "GET", looked);
}

/* --- Docker: a document of our own about the same layers --- */

/* It holds what must not be kept, so without this there is no snapshot. */
static void intermediate_removed(struct job *j)
{
        struct taking *t = j->impl;

        if (!api_call_ok(&j->ask) && j->ask.status != 404)
                return undo(j, api_call_error(&j->ask, &j->err, "remove an intermediate image"));
        t->made[0] = '\0';
        return look(j);
}

/* Troubles are told in the answer's text, so what counts is what is found afterwards. */
static void loaded(struct job *j)
{
        struct taking *t = j->impl;

        t->named = true;
        if (!api_call_ok(&j->ask))
                return undo(j, api_call_error(&j->ask, &j->err, "load the snapshot"));
        if (was_canceled(j))
                return;
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s?noprune=true", t->made);
        return job_call(j, "DELETE", intermediate_removed);
}

static void layers_seen(struct job *j)
{
        struct taking *t = j->impl;
        struct snapshot_params facts = facts_of(t);
        struct engine_image made;
        int r;

        if (!api_call_ok(&j->ask))
                return undo(j, api_call_error(&j->ask, &j->err, "look at what was kept"));
        if (was_canceled(j))
                return;
        r = engine_image_decode(buf_str(&j->ask.answer), &j->ask.arena, &made, &j->err);
        if (r == 0)
                r = snapshot_write_archive(&t->archive, &facts, &made, &j->err);
        if (r < 0)
                return undo(j, r);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/load?quiet=true");
        j->ask.borrowed = buf_str(&t->archive);
        j->ask.slow = true;
        return job_call(j, "POST", loaded);
}

/* --- the commit --- */

static void committed(struct job *j)
{
        struct taking *t = j->impl;
        struct str id;
        int r;

        t->named |= !is_docker(j);
        if (!api_call_ok(&j->ask))
                return undo(j, api_call_error(&j->ask, &j->err, "take the snapshot"));
        r = engine_commit_decode(buf_str(&j->ask.answer), &j->ask.arena, &id, &j->err);
        if (r < 0)
                return undo(j, r);
        if (is_docker(j))
                (void) snprintf(t->made, sizeof(t->made), "%.*s", STR_ARG(id));
        if (was_canceled(j))
                return;
        if (!is_docker(j))
                return look(j);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s/json", t->made);
        return job_call(j, "GET", layers_seen);
}

/* Docker's API takes what an image is to be as a document, Podman's own takes changes, which its version of
 * Docker's does not. */
static void commit(struct job *j)
{
        struct taking *t = j->impl;
        struct snapshot_params facts = facts_of(t);
        char tag[ENGINE_NAME_MAX];

        api_call_reset(&j->ask);
        if (is_docker(j)) {
                api_call_target(&j->ask, "/commit?container=%s&pause=true", j->name);
                snapshot_write_commit(&j->ask.body, &facts);
        } else {
                engine_snapshot_tag(facts.id, facts.settings->installation, tag);
                buf_reset(&j->ask.target);
                api_call_target(&j->ask,
                                "/v4.0.0/libpod/commit?container=%s&pause=true&repo=%s&tag=%s",
                                j->name, SNAPSHOT_REPOSITORY, tag);
                snapshot_add_changes(&j->ask.target, &facts);
        }
        if (buf_failed(&j->ask.target))
                return undo(j, err_set(&j->err, ERR_TOO_LARGE,
                                       "the sandbox has too many variables for a snapshot"));
        j->ask.slow = true;
        return job_call(j, "POST", committed);
}

/* --- the beginning --- */

static void source_seen(struct job *j)
{
        struct taking *t = j->impl;
        int r;

        if (!api_call_ok(&j->ask))
                return undo(j,
                            api_call_error(&j->ask, &j->err, "look at the image of the sandbox"));
        if (was_canceled(j))
                return;
        r = engine_image_decode(buf_str(&j->ask.answer), &t->arena, &t->source, &j->err);
        return r < 0 ? undo(j, r) : commit(j);
}

static void nothing_there(struct job *j)
{
        struct taking *t = j->impl;

        if (was_canceled(j))
                return;
        if (api_call_ok(&j->ask))
                return undo(j, err_set(&j->err, ERR_EXISTS, "there is such a snapshot already"));
        if (j->ask.result < 0 || j->ask.status != 404)
                return undo(j, api_call_error(&j->ask, &j->err, "look for the snapshot"));
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s/json", t->source.id.p);
        return job_call(j, "GET", source_seen);
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

/* The answer goes with the next question. */
static int keep_container(struct job *j, const struct engine_container *c)
{
        struct taking *t = j->impl;
        const struct kept_container from = { c->labels, c->secret_env, c->image };
        struct kept_container to = { 0 };
        char *id;

        if (json_copy_struct(kept_fields, &from, &t->arena, &to) < 0)
                return err_set(&j->err, ERR_TOO_LARGE, "the container says too much about itself");
        t->labels = to.labels;
        t->secret_env = to.secret_env;
        id = arena_dup(&t->arena, to.image);
        if (!id)
                return err_set(&j->err, ERR_TOO_LARGE, "the container says too much about itself");
        t->source.id = str_from(id);
        return engine_image_id_check(t->source.id, &j->err);
}

static void seen(struct job *j)
{
        struct taking *t = j->impl;
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
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/images/%s/json", t->name);
        return job_call(j, "GET", nothing_there);
}

void job__snapshot(struct job *j)
{
        struct taking *t = xnew(struct taking);

        t->job = j;
        arena_init(&t->arena, ARENA_MAX_REQUEST);
        buf_init(&t->archive, 16 * MiB);
        engine_snapshot_name(j->q.snapshot, j->worker->settings->installation, t->name);
        j->impl = t;
        j->impl_free = taking_free;
        j->cancel = cancel;
        job_inspect_container(j, seen);
}
