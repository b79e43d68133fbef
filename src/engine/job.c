/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "http/url.h"
#include "os/fd.h"

static job_step_fn *const starts[ENGINE_CALL_MAX_] = {
        [ENGINE_CREATE] = job__create,
        [ENGINE_DESTROY] = job__destroy,
        [ENGINE_PAUSE] = job__pause,
        [ENGINE_RESUME] = job__pause,
        [ENGINE_INSPECT] = job__inspect,
        [ENGINE_SCAN] = job__scan,
        [ENGINE_CONNECT] = job__connect,
        [ENGINE_USAGE] = job__usage,
        [ENGINE_PROBE] = job__probe,
        [ENGINE_SNAPSHOT] = job__snapshot,
        [ENGINE_SNAPSHOT_REMOVE] = job__snapshot_remove,
        [ENGINE_SNAPSHOTS] = job__snapshots,
};

/* --- life cycle --- */

/* A record may fill the arena of a request; its copy and its decoded parts come on top. */
#define JOB_ARENA_MAX (4 * ENGINE_FRAME_MAX)

static struct job *job_new(struct engine_worker *w, enum engine_call call, int64_t request_id)
{
        struct job *j = xnew(struct job);

        j->worker = w;
        j->call = call;
        j->request_id = request_id;
        arena_init(&j->arena, JOB_ARENA_MAX);
        api_call_init(&j->api, w);
        list_append(&w->jobs, &j->node);
        return j;
}

static void set_id(struct job *j, struct str id)
{
        j->id = arena_dup_str(&j->arena, id);
        engine_container_name(id, j->worker->settings->installation, j->name);
}

void job_start(struct engine_worker *w, const struct engine_request *q)
{
        struct job *j = job_new(w, (enum engine_call) q->call, q->request_id);

        /* The request was decoded into an arena that is wiped when this returns. */
        if (json_copy_struct(engine_request_fields, q, &j->arena, &j->q) < 0)
                return job_fail(j, err_set(&j->err, ERR_TOO_LARGE, "the request is too large"));
        if (q->id.p)
                set_id(j, q->id);
        return starts[q->call](j);
}

void job_reconcile(struct engine_worker *w, struct str id)
{
        struct job *j = job_new(w, ENGINE_INSPECT, 0);

        set_id(j, id);
        job__inspect(j);
}

/* --- calls of the engine's API --- */

static void call_done(struct api_call *k)
{
        struct job *j = container_of(k, struct job, api);

        TAKE_PTR(j->next)(j);
}

void job_call(struct job *j, const char *method, job_step_fn *next)
{
        j->next = next;
        api_call_start(&j->api, method, /* stream= */ false, call_done);
}

void job_request(struct job *j, const char *method, job_step_fn *next, const char *fmt, ...)
{
        va_list ap;

        api_call_reset(&j->api);
        va_start(ap, fmt);
        buf_vaddf(&j->api.target, fmt, ap);
        va_end(ap);
        job_call(j, method, next);
}

int job_container(struct job *j, struct engine_container *ret)
{
        struct str ours = j->worker->settings->installation;
        int r;

        if (j->api.result == 0 && j->api.status == 404)
                return 0;
        if (!api_call_ok(&j->api))
                return api_call_error(&j->api, &j->err, "inspect the container");
        r = engine_container_decode(buf_str(&j->api.response), &j->api.arena, ret, &j->err);
        if (r < 0)
                return r;
        if (!str_eq(engine_label(&ret->labels, LABEL_INSTALLATION), ours)
            || !str_eq(engine_label(&ret->labels, LABEL_SANDBOX), j->id)
            || !engine_name_is(ret->name, j->id, ours))
                return err_set(&j->err, ERR_CONFLICT,
                               "the container %s is not of this installation; it is left alone",
                               j->name);
        return 1;
}

/* --- the end --- */

void job_reply(struct job *j, const struct engine_message *m, int fd)
{
        struct engine_worker *w = j->worker;
        struct engine_message reply = *m;

        reply.request_id = j->request_id;
        reply.done = true;
        reply.has_fd = fd >= 0;
        if (j->request_id > 0)
                engine_worker_send(w, &reply, fd);
        else
                (void) fd_close(fd);
        if (j->impl_free)
                j->impl_free(j->impl);
        list_remove(&j->node);
        api_call_done(&j->api);
        arena_wipe(&j->arena);
        free(j);
        engine_worker__end_continue(w);
}

void job_done(struct job *j)
{
        job_reply(j, &(struct engine_message){ 0 }, -EBADF);
}

void job_fail(struct job *j, int code)
{
        ASSERT(code == ERR_RETURN(j->err.code));
        if (j->request_id == 0 && j->call == ENGINE_DESTROY)
                undo_later(j->worker, j->id);
        job_reply(j,
                  &(struct engine_message){ .code = 1 + (int64_t) j->err.code,
                                            .text = str_from(j->err.message) },
                  -EBADF);
}

void job_cancel(struct engine_worker *w, int64_t request_id)
{
        list_for_each (n, &w->jobs) {
                struct job *j = container_of(n, struct job, node);

                if (j->request_id != request_id || j->canceled || !j->cancel)
                        continue;
                j->canceled = true;
                j->cancel(j);
                return;
        }
}

bool job_is_about(const struct engine_worker *w, struct str id)
{
        list_for_each (n, &w->jobs) {
                const struct job *j = container_of(n, struct job, node);

                if ((j->call == ENGINE_CREATE || j->call == ENGINE_DESTROY) && str_eq(j->id, id))
                        return true;
        }
        return false;
}

bool job_is_under_way(const struct engine_worker *w, enum engine_call call)
{
        list_for_each (n, &w->jobs)
                if (container_of(n, struct job, node)->call == call)
                        return true;
        return false;
}

void jobs_recheck(struct engine_worker *w, struct str id)
{
        list_for_each (n, &w->jobs) {
                struct job *j = container_of(n, struct job, node);

                if (j->call == ENGINE_CREATE && (!id.p || str_eq(j->id, id)))
                        job__create_recheck(j);
        }
}

/* --- creates that could not be undone --- */

struct undo {
        struct list node;
        char id[SANDBOX_ID_MAX + 1];
};

/* What cannot be removed while the engine is away. A few thousand are a few hundred kilobytes; what is dropped
 * beyond that is found by the next scan. */
#define UNDOS_MAX 4096

void undo_later(struct engine_worker *w, struct str id)
{
        struct undo *u;
        size_t n = 0;

        list_for_each (x, &w->undos)
                n += !str_eq(str_from(container_of(x, struct undo, node)->id), id) ? 1 : UNDOS_MAX;
        if (n >= UNDOS_MAX)
                return;
        u = xnew(struct undo);
        memcpy(u->id, id.p, id.n);
        list_append(&w->undos, &u->node);
}

void undo_all(struct engine_worker *w)
{
        struct list todo;

        list_init(&todo);
        list_for_each (n, &w->undos) {
                list_remove(n);
                list_append(&todo, n);
        }
        list_for_each (n, &todo) {
                struct undo *u = container_of(n, struct undo, node);

                list_remove(n);
                if (!w->ending && !job_is_about(w, str_from(u->id))) {
                        /* If it fails, job_fail keeps it for the next time. */
                        struct job *j = job_new(w, ENGINE_DESTROY, 0);

                        set_id(j, str_from(u->id));
                        job__destroy(j);
                }
                free(u);
        }
}
