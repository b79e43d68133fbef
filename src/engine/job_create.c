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
 *         record ─ no such container? ─ image, perhaps a pull ─ volumes ─ network ─ run directory
 *                ─ container ─ start ─ the agent listens ─ reply, with a connection
 *
 * From the run directory on, whatever fails is undone before the reply.
 */

/* From the container's start to an agent that listens. */
#define AGENT_TIMEOUT_MS 60000

static void recheck_done(struct job *j);

static void timer_closed(uv_handle_t *h)
{
        free(h);
}

static void stop_waiting(struct create *c)
{
        run_dir_unwatch(&c->job->worker->run_dirs, &c->watch);
        relay_detach(&c->reach);
        if (c->timer)
                uv_close((uv_handle_t *) TAKE_PTR(c->timer), timer_closed);
}

static void create_free(void *impl)
{
        struct create *c = impl;

        stop_waiting(c);
        (void) fd_close(c->reached);
        volume_sources_done(&c->sources);
        sandbox_free(c->record);
        arena_done(&c->arena);
        free(c);
}

bool create__was_canceled(struct job *j)
{
        if (!j->canceled)
                return false;
        create__undo(j, err_set(&j->err, ERR_CANCELED, "canceled"));
        return true;
}

/* --- undoing --- */

static void run_dir_undone(void *data, int r)
{
        struct job *j = data;

        if (r < 0)
                (void) log_err(r, j->worker->log, "run directory not removed");
        job_fail(j, ERR_RETURN(j->err.code));
}

static void undo_run_dir(struct job *j)
{
        struct create *c = j->impl;

        if (c->run_dir_made)
                run_dir_remove(&j->worker->run_dirs, j->id, run_dir_undone, j);
        else
                job_fail(j, ERR_RETURN(j->err.code));
}

static void undo_removed(struct job *j)
{
        /* 409: it is being removed already. */
        if (!api_call_ok(&j->api) && j->api.status != 404 && j->api.status != 409)
                undo_later(j->worker, j->id);
        undo_run_dir(j);
}

void create__undo(struct job *j, int code)
{
        struct create *c = j->impl;

        ASSERT(code == ERR_RETURN(j->err.code));
        stop_waiting(c);
        c->stage = STAGE_UNDOING;
        if (!c->container_made)
                return undo_run_dir(j);
        return job_request(j, "DELETE", undo_removed, "/containers/%s?force=true&v=true", j->name);
}

/* --- waiting for the agent --- */

/* On EAGAIN the listener's queue is full; an event follows. */
static void try_agent(struct job *j)
{
        int fd, r = run_dir_connect(&j->worker->run_dirs, j->id, &fd);

        if (r < 0)
                return;
        return job_reply(j, &(struct engine_message){ 0 }, fd);
}

static void changed(struct run_dir_watch *w)
{
        struct create *c = container_of(w, struct create, watch);

        if (c->stage == STAGE_WAITING && !c->inspecting)
                try_agent(c->job);
}

static void timeout_expired(uv_timer_t *t)
{
        struct job *j = t->data;
        struct create *c = j->impl;

        if (c->stage == STAGE_WAITING && !c->inspecting)
                create__undo(j, err_set(&j->err, ERR_TIMEOUT, "its agent did not start in time"));
}

static void recheck_done(struct job *j)
{
        struct create *c = j->impl;
        struct engine_container seen;
        struct err before = j->err;
        int r;

        c->inspecting = false;
        if (create__was_canceled(j))
                return;
        r = job_container(j, &seen);
        if (r == 0)
                return create__undo(j, err_set(&j->err, ERR_UNAVAILABLE,
                                               "it was removed behind our back"));
        /* The agent found something else mounted than a volume. */
        if (r > 0 && seen.exit_code == MOUNT_IDENTITY_EXIT && volume_sources_have_bind(&c->sources))
                return create__undo(
                        j,
                        err_set(&j->err, ERR_INVALID,
                                "a volume: something else was mounted than what its path led to "
                                "when it was checked. Its directories were changed meanwhile, or "
                                "there is a symbolic link in its mountPath, or the engine runs "
                                "sandboxes with a kernel of their own"));
        if (r > 0 && seen.state.status != RUNTIME_RUNNING && seen.state.status != RUNTIME_PAUSED)
                return create__undo(j, err_set(&j->err, ERR_INVALID,
                                               "it ended before its agent answered: %.*s",
                                               STR_ARG(seen.state.message)));
        if (c->unreachable) {
                j->err = before;
                return create__undo(j, ERR_RETURN(before.code));
        }
        if (c->reached >= 0)
                return job_reply(j, &(struct engine_message){ 0 }, TAKE_FD(c->reached));
        if (j->worker->settings->reach == ENGINE_REACH_EXEC)
                return;
        return try_agent(j); /* if it does not listen yet, an event or the timeout follows */
}

void job__create_recheck(struct job *j)
{
        struct create *c = j->impl;

        if (!c || c->stage != STAGE_WAITING || c->inspecting)
                return;
        c->inspecting = true;
        job_request(j, "GET", recheck_done, "/containers/%s/json", j->name);
}

/* If the container has ended, how it ended says more than that its agent cannot be reached. */
static void reached(struct relay_wait *x, int code, int fd)
{
        struct create *c = container_of(x, struct create, reach);
        struct job *j = c->job;

        if (code == 0 && !c->inspecting)
                return job_reply(j, &(struct engine_message){ 0 }, fd);
        if (code == 0) {
                c->reached = fd;
                return;
        }
        j->err = x->err;
        c->unreachable = true;
        if (c->inspecting)
                return; /* an event was first: its inspection says what has happened */
        c->inspecting = true;
        return job_request(j, "GET", recheck_done, "/containers/%s/json", j->name);
}

static void started(struct job *j)
{
        struct create *c = j->impl;

        if (!api_call_ok(&j->api))
                return create__undo(j, api_call_error(&j->api, &j->err, "start the container"));
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
        (void) uv_timer_start(c->timer, timeout_expired, AGENT_TIMEOUT_MS, 0);
        return try_agent(j);
}

/* --- the container --- */

static void uploaded(struct job *j)
{
        if (!api_call_ok(&j->api))
                return create__undo(j, api_call_error(&j->api, &j->err,
                                                      "copy the agent into the container"));
        if (create__was_canceled(j))
                return;
        return job_request(j, "POST", started, "/containers/%s/start", j->name);
}

static void made(struct job *j)
{
        struct create *c = j->impl;
        struct buf *archive = &j->worker->archive;
        int r;

        if (j->api.result == 0 && j->api.status == 409) {
                (void) api_call_error(&j->api, &j->err, "create the container");
                return create__undo(j,
                                    err_set(&j->err, ERR_CONFLICT, "the sandbox exists already"));
        }
        if (!api_call_ok(&j->api)) {
                /* Without a response it may have been created all the same. */
                c->container_made = j->api.result < 0;
                j->worker->network_made = false;
                return create__undo(j, api_call_error(&j->api, &j->err, "create the container"));
        }
        c->container_made = true;
        if (create__was_canceled(j))
                return;
        if (j->worker->settings->reach != ENGINE_REACH_EXEC)
                return job_request(j, "POST", started, "/containers/%s/start", j->name);
        r = archive->n > 0 ? 0 : archive_write(archive, j->worker->settings->agent);
        if (r < 0 || buf_failed(archive)) {
                buf_done(archive);
                buf_reset(archive);
                return create__undo(j, err_errno(&j->err, r < 0 ? r : -EFBIG, "read the agent"));
        }
        api_call_reset(&j->api);
        api_call_target(&j->api, "/containers/%s/archive?path=/", j->name);
        j->api.borrowed = buf_str(archive);
        return job_call(j, "PUT", uploaded);
}

struct container_params create__params(struct job *j, char *dir, size_t size)
{
        struct create *c = j->impl;
        struct engine_worker *w = j->worker;

        (void) snprintf(dir, size, "%s/%.*s", w->run_dirs.path, STR_ARG(j->id));
        return (struct container_params){ .settings = w->settings,
                                          .record = c->record,
                                          .record_text = j->q.record,
                                          .secret_env = &j->q.secret_env,
                                          .image = &c->image,
                                          .sources = &c->sources,
                                          .run_dir = w->settings->reach == ENGINE_REACH_EXEC
                                                             ? STR_NULL
                                                             : str_from(dir),
                                          .seccomp = w->seccomp };
}

/* Left by a create that was not undone. */
static void old_run_dir_removed(void *data, int r)
{
        struct job *j = data;

        if (create__was_canceled(j))
                return;
        if (r < 0)
                return create__undo(j, err_errno(&j->err, r, "remove an old run directory"));
        return create__make(j);
}

void create__make(struct job *j)
{
        struct create *c = j->impl;
        struct run_dirs *dirs = &j->worker->run_dirs;
        bool by_exec = j->worker->settings->reach == ENGINE_REACH_EXEC;
        bool again = c->stage == STAGE_CREATING;
        char dir[PATH_MAX_TEXT];
        struct container_params params = create__params(j, dir, sizeof(dir));
        int r = 0;

        c->stage = STAGE_CREATING;
        if (!by_exec && !again && run_dir_exists(dirs, j->id))
                return run_dir_remove(dirs, j->id, old_run_dir_removed, j);
        if (!by_exec)
                r = run_dir_make(dirs, j->id);
        if (r == -EEXIST)
                return create__undo(j,
                                    err_set(&j->err, ERR_CONFLICT, "its run directory is in use"));
        c->run_dir_made = !by_exec;
        if (!by_exec && r == 0)
                r = run_dir_watch(dirs, j->id, &c->watch, changed);
        if (r < 0)
                return create__undo(j, err_errno(&j->err, r, "create the run directory"));
        api_call_reset(&j->api);
        if (c->can_subpath)
                buf_reset(&j->api.target);
        api_call_target(&j->api, "%s/containers/create?name=%s",
                        c->can_subpath ? API_BASE_SUBPATH : "", j->name);
        container_write(&j->api.body, &params);
        return job_call(j, "POST", made);
}

/* --- the start --- */

static void absence_checked(struct job *j)
{
        struct engine_container there;
        int r;

        if (create__was_canceled(j))
                return;
        r = job_container(j, &there);
        if (r > 0)
                r = err_set(&j->err, ERR_CONFLICT, "the sandbox exists already");
        if (r < 0)
                return create__undo(j, r);
        return create__prepare(j);
}

static void cancel_create(struct job *j)
{
        struct create *c = j->impl;

        if (c->stage == STAGE_CHECKING || (c->stage == STAGE_WAITING && c->inspecting)) {
                api_call_cancel(&j->api);
        } else if (c->stage == STAGE_PULLING) {
                pull_detach(&c->pull);
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
        volume_sources_init(&c->sources, c->record);
        if (job_is_about(j->worker, c->record->id))
                return job_fail(j, err_set(&j->err, ERR_CONFLICT,
                                           "the sandbox is being created or removed"));
        if (c->record->snapshot_id.p && !sandbox_id_is_valid(c->record->snapshot_id))
                return job_fail(j,
                                err_set(&j->err, ERR_INVALID, "this is not the id of a snapshot"));
        j->id = c->record->id;
        engine_container_name(j->id, j->worker->settings->installation, j->name);
        return job_request(j, "GET", absence_checked, "/containers/%s/json", j->name);
}
