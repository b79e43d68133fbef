/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/worker.h"
#include "model/text.h"

static void fail_not_found(struct job *j)
{
        job_fail(j, err_set(&j->err, ERR_NOT_FOUND, "there is no such sandbox"));
}

/* --- pause and resume --- */

static void paused(struct job *j)
{
        if (!api_call_ok(&j->ask))
                return job_fail(j,
                                api_call_error(&j->ask, &j->err, engine_call_to_string(j->call)));
        return job_done(j);
}

static void pause_seen(struct job *j)
{
        bool pause = j->call == ENGINE_PAUSE;
        struct engine_container c;
        int r = job_container(j, &c);

        if (r < 0)
                return job_fail(j, r);
        if (r == 0)
                return fail_not_found(j);
        if (c.state.status != (pause ? RUNTIME_RUNNING : RUNTIME_PAUSED))
                return job_fail(j, err_set(&j->err, ERR_CONFLICT, "the sandbox is %s",
                                           runtime_status_to_string(c.state.status)));
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/containers/%s/%s", j->name, pause ? "pause" : "unpause");
        return job_call(j, "POST", paused);
}

void job__pause(struct job *j)
{
        job_inspect_container(j, pause_seen);
}

void job__resume(struct job *j)
{
        job_inspect_container(j, pause_seen);
}

/* --- inspect --- */

static void tell_end(struct job *j, struct engine_state *state)
{
        if (state->status != RUNTIME_RUNNING && state->status != RUNTIME_PAUSED
            && !job_is_about(j->worker, j->id))
                engine_worker_send(j->worker,
                                   &(struct engine_message){ .died = j->id, .state = state },
                                   -EBADF);
        job_done(j);
}

static void inspect_seen(struct job *j)
{
        struct engine_container c = { .state = { .status = RUNTIME_GONE,
                                                 .reason = ENGINE_REASON_INVALID_ } };
        int r = job_container(j, &c);

        if (r < 0)
                return job_fail(j, r);
        if (j->request_id == 0)
                return tell_end(j, &c.state);
        return job_reply(j, &(struct engine_message){ .state = &c.state }, -EBADF);
}

void job__inspect(struct job *j)
{
        job_inspect_container(j, inspect_seen);
}

/* --- connect --- */

struct reaching {
        struct job *job;
        struct relay_wait wait;
};

static void reached(struct relay_wait *x, int code, int fd)
{
        struct job *j = container_of(x, struct reaching, wait)->job;

        if (code < 0) {
                j->err = x->err;
                return job_fail(j, code);
        }
        return job_reply(j, &(struct engine_message){ 0 }, fd);
}

static void reaching_free(void *impl)
{
        struct reaching *x = impl;

        relay_detach(&x->wait);
        free(x);
}

static void reach_cancel(struct job *j)
{
        job_fail(j, err_set(&j->err, ERR_CANCELED, "canceled"));
}

static void reach(struct job *j)
{
        struct reaching *x = xnew(struct reaching);

        x->job = j;
        x->wait.done = reached;
        j->impl = x;
        j->impl_free = reaching_free;
        j->cancel = reach_cancel;
        relay_open(j->worker, &x->wait, j->name);
}

void job__connect(struct job *j)
{
        int fd, r;

        if (j->worker->settings->reach == ENGINE_REACH_EXEC)
                return reach(j);
        r = run_dir_connect(&j->worker->run_dirs, j->id, &fd);

        if (r == -ENOENT)
                return fail_not_found(j);
        if (r < 0)
                return job_fail(j, err_set(&j->err, ERR_UNAVAILABLE,
                                           "its agent does not answer: %s", err_text(r)));
        return job_reply(j, &(struct engine_message){ 0 }, fd);
}

/* --- usage --- */

static void measured(struct job *j)
{
        struct engine_usage usage = { 0 };
        int r = 0;

        if (j->ask.result == 0 && j->ask.status == 404)
                return fail_not_found(j);
        /* Of one that does not run there may be nothing to tell. */
        if (api_call_ok(&j->ask))
                r = engine_stats_decode(buf_str(&j->ask.answer), &j->ask.arena, &usage, &j->err);
        else if (j->ask.result < 0 || j->ask.status != 409)
                r = api_call_error(&j->ask, &j->err, "measure the container");
        if (r < 0)
                return job_fail(j, r);
        return job_reply(j, &(struct engine_message){ .usage = &usage }, -EBADF);
}

void job__usage(struct job *j)
{
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/containers/%s/stats?stream=false&one-shot=true", j->name);
        job_call(j, "GET", measured);
}

/* --- probe --- */

static void tell_fact(struct job *j, const char *name, bool ok, const char *text)
{
        struct engine_fact fact = { str_from(name), ok, str_from(text) };

        engine_worker_send(j->worker,
                           &(struct engine_message){ .request_id = j->request_id, .fact = &fact },
                           -EBADF);
}

static bool has_security(const struct engine_info *info, const char *what)
{
        for (size_t i = 0; i < info->security.n; i++)
                if (memmem(info->security.items[i].p, info->security.items[i].n, what,
                           strlen(what)))
                        return true;
        return false;
}

static void tell_text(struct job *j, const char *name, struct str text)
{
        tell_fact(j, name, true, text.n ? QUOTED(text) : "not told");
}

static void probe_told(struct job *j)
{
        struct engine_info info = { 0 };
        bool rootless, seccomp;

        if (!api_call_ok(&j->ask)) {
                (void) api_call_error(&j->ask, &j->err, "ask for its features");
                tell_fact(j, "engine features", false, j->err.message);
                return job_done(j);
        }
        if (engine_info_decode(buf_str(&j->ask.answer), &j->ask.arena, &info, &j->err) < 0) {
                tell_fact(j, "engine features", false, j->err.message);
                return job_done(j);
        }
        rootless = has_security(&info, "rootless");
        seccomp = has_security(&info, "seccomp");
        tell_text(j, "storage", info.storage);
        tell_text(j, "cgroup version", info.cgroup_version);
        tell_text(j, "kernel", info.kernel);
        tell_fact(j, "rootless", true,
                  rootless ? "the engine runs as a user" : "the engine is root");
        tell_fact(
                j, "seccomp", seccomp,
                seccomp ? "system calls are filtered"
                        : "the engine filters no system calls; install one that is built with it");
        tell_fact(j, "limits", info.memory_limit && info.pids_limit,
                  info.memory_limit && info.pids_limit
                          ? "memory and processes are limited"
                          : "memory or processes can't be limited; enable the controllers for the "
                            "engine");
        return job_done(j);
}

static void probe_version(struct job *j)
{
        struct engine_info info = { 0 };
        char text[256];

        if (!api_call_ok(&j->ask)) {
                (void) api_call_error(&j->ask, &j->err, "ask for its version");
                tell_fact(j, "engine", false, j->err.message);
                return job_done(j);
        }
        if (engine_version_decode(buf_str(&j->ask.answer), &j->ask.arena, &info, &j->err) < 0) {
                tell_fact(j, "engine", false, j->err.message);
                return job_done(j);
        }
        (void) snprintf(text, sizeof(text), "%s %s, API %s",
                        engine_kind_to_string(j->worker->settings->kind), QUOTED(info.version),
                        QUOTED(info.api_version));
        tell_fact(j, "engine", true, text);
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/info");
        return job_call(j, "GET", probe_told);
}

void job__probe(struct job *j)
{
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/version");
        job_call(j, "GET", probe_version);
}
