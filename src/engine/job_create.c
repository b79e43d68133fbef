/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/archive.h"
#include "engine/create.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "http/url.h"
#include "model/text.h"
#include "os/fd.h"

/*
 *         record ─ no such container? ─ image, perhaps a pull ─ network ─ folder
 *                ─ container ─ start ─ the agent listens ─ answer, with a connection
 *
 * From the folder on, whatever goes wrong is undone before it is told.
 */

/* From the start to an agent that listens. */
#define AGENT_PATIENCE_MS 60000

static void recheck_seen(struct job *j);

static void timer_closed(uv_handle_t *h)
{
        free(h);
}

static void stop_waiting(struct create *c)
{
        box_unwatch(&c->job->worker->boxes, &c->watch);
        relay_leave(&c->reach);
        if (c->timer)
                uv_close((uv_handle_t *) TAKE_PTR(c->timer), timer_closed);
}

static void create_free(void *impl)
{
        struct create *c = impl;

        stop_waiting(c);
        (void) fd_close(c->reached);
        places_done(&c->places);
        sandbox_free(c->record);
        arena_done(&c->arena);
        free(c);
}

/* Between two steps. True: it was given up, and that is seen to. */
bool create__was_canceled(struct job *j)
{
        if (!j->canceled)
                return false;
        create__undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        return true;
}

/* --- undoing --- */

static void undone_box(void *data, int r)
{
        struct job *j = data;

        if (r < 0)
                (void) log_err(r, j->worker->log, "the folder of a sandbox could not be removed");
        job_fail(j, ERR_RETURN(j->err.code));
}

static void undo_box(struct job *j)
{
        struct create *c = j->impl;

        if (c->box_made)
                box_remove(&j->worker->boxes, j->id, undone_box, j);
        else
                job_fail(j, ERR_RETURN(j->err.code));
}

static void undo_removed(struct job *j)
{
        /* 409: somebody else removes it. */
        if (!ask_is_good(&j->ask) && j->ask.status != 404 && j->ask.status != 409)
                undo_later(j->worker, j->id);
        undo_box(j);
}

void create__undo(struct job *j, int code)
{
        struct create *c = j->impl;

        ASSERT(code == ERR_RETURN(j->err.code));
        stop_waiting(c);
        c->stage = STAGE_UNDOING;
        if (!c->container_made)
                return undo_box(j);
        ask_reset(&j->ask);
        ask_to(&j->ask, "/containers/%s?force=true&v=true", j->name);
        return job_ask(j, "DELETE", undo_removed);
}

/* --- waiting for the agent --- */

/* EAGAIN is a listener, too: its queue is full. */
static void try_agent(struct job *j)
{
        int fd, r = box_connect(&j->worker->boxes, j->id, &fd);

        if (r < 0)
                return;
        return job_answer(j, &(struct engine_message){ 0 }, fd);
}

static void stirred(struct box_watch *w)
{
        struct create *c = container_of(w, struct create, watch);

        if (c->stage == STAGE_WAITING && !c->looking)
                try_agent(c->job);
}

static void patience_over(uv_timer_t *t)
{
        struct job *j = t->data;
        struct create *c = j->impl;

        if (c->stage == STAGE_WAITING && !c->looking)
                create__undo(j, err_set(&j->err, ERR_TIMEOUT, "its agent did not listen in time"));
}

/* What the agent has found in the place of a volume. */
static int wrong_mount(struct job *j)
{
        return err_set(&j->err, ERR_INVALID,
                       "a volume: something else was mounted than what its path led to when it was "
                       "checked. Its folders were changed meanwhile, or there is a link in its "
                       "mountPath, or the engine runs sandboxes with a kernel of their own");
}

static void recheck_seen(struct job *j)
{
        struct create *c = j->impl;
        struct engine_container seen;
        struct err before = j->err;
        int r;

        c->looking = false;
        if (create__was_canceled(j))
                return;
        r = job_container(j, &seen);
        if (r == 0)
                return create__undo(j,
                                    err_set(&j->err, ERR_UNAVAILABLE, "somebody has removed it"));
        if (r > 0 && seen.exit_code == MOUNT_IDENTITY_EXIT && places_have_bound(&c->places))
                return create__undo(j, wrong_mount(j));
        if (r > 0 && seen.state.life != ENGINE_RUNNING && seen.state.life != ENGINE_PAUSED)
                return create__undo(j, err_set(&j->err, ERR_INVALID,
                                               "it ended before its agent answered: %.*s",
                                               STR_ARG(seen.state.message)));
        if (c->unreachable) {
                j->err = before;
                return create__undo(j, ERR_RETURN(before.code));
        }
        if (c->reached >= 0)
                return job_answer(j, &(struct engine_message){ 0 }, TAKE_FD(c->reached));
        if (j->worker->settings->reach == ENGINE_REACH_EXEC)
                return;
        return try_agent(j); /* what could not be told now is told later, or time runs out */
}

void job__create_recheck(struct job *j)
{
        struct create *c = j->impl;

        if (!c || c->stage != STAGE_WAITING || c->looking)
                return;
        c->looking = true;
        job_inspect_container(j, recheck_seen);
}

/* It may be that there is nothing to reach any more: how it has ended says more. */
static void reached(struct relay_wait *x, int code, int fd)
{
        struct create *c = container_of(x, struct create, reach);
        struct job *j = c->job;

        if (code == 0 && !c->looking)
                return job_answer(j, &(struct engine_message){ 0 }, fd);
        if (code == 0) {
                c->reached = fd;
                return;
        }
        j->err = x->err;
        c->unreachable = true;
        if (c->looking)
                return; /* an event was first: the answer to that look says what is the matter */
        c->looking = true;
        return job_inspect_container(j, recheck_seen);
}

static void started(struct job *j)
{
        struct create *c = j->impl;

        if (!ask_is_good(&j->ask))
                return create__undo(j, ask_error(&j->ask, &j->err, "start the container"));
        if (create__was_canceled(j))
                return;
        c->stage = STAGE_WAITING;
        if (j->worker->settings->reach == ENGINE_REACH_EXEC) {
                c->reach.done = reached;
                return relay_open(j->worker, &c->reach, j->name);
        }
        c->timer = xnew(uv_timer_t);
        c->timer->data = j;
        (void) uv_timer_init(&j->worker->loop->uv, c->timer);
        (void) uv_timer_start(c->timer, patience_over, AGENT_PATIENCE_MS, 0);
        return try_agent(j);
}

/* --- the container --- */

static void start_container(struct job *j)
{
        ask_reset(&j->ask);
        ask_to(&j->ask, "/containers/%s/start", j->name);
        job_ask(j, "POST", started);
}

static void uploaded(struct job *j)
{
        if (!ask_is_good(&j->ask))
                return create__undo(j, ask_error(&j->ask, &j->err,
                                                 "bring the agent into the container"));
        if (create__was_canceled(j))
                return;
        return start_container(j);
}

static void upload_agent(struct job *j)
{
        struct buf *archive = &j->worker->archive;
        int r = archive->n > 0 ? 0 : archive_write(archive, j->worker->settings->agent);

        if (r < 0 || buf_failed(archive)) {
                buf_done(archive);
                buf_reset(archive);
                return create__undo(j, err_errno(&j->err, r < 0 ? r : -EFBIG, "read the agent"));
        }
        ask_reset(&j->ask);
        ask_to(&j->ask, "/containers/%s/archive?path=/", j->name);
        j->ask.borrowed = buf_str(archive);
        return job_ask(j, "PUT", uploaded);
}

static void made(struct job *j)
{
        struct create *c = j->impl;

        if (j->ask.result == 0 && j->ask.status == 409) {
                (void) ask_error(&j->ask, &j->err, "make the container");
                return create__undo(j, err_set(&j->err, ERR_CONFLICT,
                                               "there is such a sandbox already"));
        }
        if (!ask_is_good(&j->ask)) {
                /* Without an answer it may have been made all the same. */
                c->container_made = j->ask.result < 0;
                j->worker->network_made = false;
                return create__undo(j, ask_error(&j->ask, &j->err, "make the container"));
        }
        c->container_made = true;
        if (create__was_canceled(j))
                return;
        if (j->worker->settings->reach == ENGINE_REACH_EXEC)
                return upload_agent(j);
        return start_container(j);
}

struct body_facts create__facts(struct job *j, char *folder, size_t size)
{
        struct create *c = j->impl;
        struct worker *w = j->worker;

        (void) snprintf(folder, size, "%s/%.*s", w->boxes.path, STR_ARG(j->id));
        return (struct body_facts){ .settings = w->settings,
                                    .record = c->record,
                                    .record_text = j->q.record,
                                    .secret_env = &j->q.secret_env,
                                    .image = &c->image,
                                    .places = &c->places,
                                    .folder = w->settings->reach == ENGINE_REACH_EXEC
                                                      ? STR_NULL
                                                      : str_from(folder),
                                    .seccomp = w->seccomp };
}

static void ask_for_container(struct job *j)
{
        struct create *c = j->impl;
        char folder[PATH_MAX_TEXT];
        struct body_facts facts = create__facts(j, folder, sizeof(folder));

        c->stage = STAGE_MAKING;
        ask_reset(&j->ask);
        if (c->can_below)
                ask_use_api(&j->ask, ASK_API_BELOW);
        ask_to(&j->ask, "/containers/create?name=%s", j->name);
        body_write(&j->ask.body, &facts);
        job_ask(j, "POST", made);
}

static void make_container(struct job *j)
{
        struct create *c = j->impl;
        int r = box_make(&j->worker->boxes, j->id);

        if (r == -EEXIST)
                return create__undo(j, err_set(&j->err, ERR_CONFLICT, "its folder is in use"));
        c->box_made = true;
        if (r == 0)
                r = box_watch(&j->worker->boxes, j->id, &c->watch, stirred);
        if (r < 0)
                return create__undo(j, err_errno(&j->err, r, "make the folder of the sandbox"));
        return ask_for_container(j);
}

/* What a create that was not undone has left. */
static void old_box_removed(void *data, int r)
{
        struct job *j = data;

        if (create__was_canceled(j))
                return;
        if (r < 0)
                return create__undo(j,
                                    err_errno(&j->err, r, "remove an old folder of the sandbox"));
        return make_container(j);
}

void create__make(struct job *j)
{
        struct create *c = j->impl;

        if (j->worker->settings->reach == ENGINE_REACH_EXEC)
                return ask_for_container(j);
        if (!box_exists(&j->worker->boxes, j->id))
                return make_container(j);
        c->stage = STAGE_MAKING;
        return box_remove(&j->worker->boxes, j->id, old_box_removed, j);
}

/* --- the beginning --- */

static void nobody_seen(struct job *j)
{
        struct engine_container there;
        int r;

        if (create__was_canceled(j))
                return;
        r = job_container(j, &there);
        if (r > 0)
                r = err_set(&j->err, ERR_CONFLICT, "there is such a sandbox already");
        if (r < 0)
                return create__undo(j, r);
        return create__prepare(j);
}

static void cancel_create(struct job *j)
{
        struct create *c = j->impl;

        if (c->stage == STAGE_ASKING || (c->stage == STAGE_WAITING && c->looking)) {
                ask_cancel(&j->ask);
        } else if (c->stage == STAGE_PULLING) {
                pull_leave(&c->pull);
                create__undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        } else if (c->stage == STAGE_WAITING) {
                create__undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        }
}

void job__create(struct job *j)
{
        struct create *c = xnew(struct create);
        int r;

        c->job = j;
        c->reached = -EBADF;
        arena_init(&c->arena, ARENA_MAX_REQUEST);
        j->impl = c;
        j->impl_free = create_free;
        j->cancel = cancel_create;
        r = sandbox_decode(j->q.record, &c->record, &j->err);
        if (r < 0)
                return job_fail(j, r);
        places_init(&c->places, c->record);
        if (job_is_about(j->worker, c->record->id))
                return job_fail(j, err_set(&j->err, ERR_CONFLICT, "it is being made or removed"));
        if (c->record->snapshot_id.p && !sandbox_id_is_valid(c->record->snapshot_id))
                return job_fail(j, err_set(&j->err, ERR_INVALID, "that is no snapshot"));
        j->id = c->record->id;
        engine_container_name(j->id, j->worker->settings->installation, j->name);
        return job_inspect_container(j, nobody_seen);
}
