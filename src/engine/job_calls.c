/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/worker.h"
#include "model/text.h"
#include "base/map.h"
#include "engine/names.h"

static void fail_not_found(struct job *j)
{
        job_fail(j, err_set(&j->err, ERR_NOT_FOUND, "there is no such sandbox"));
}

/* --- pause and resume --- */

static void paused(struct job *j)
{
        if (!api_call_ok(&j->api))
                return job_fail(j,
                                api_call_error(&j->api, &j->err, engine_call_to_string(j->call)));
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
        return job_request(j, "POST", paused, "/containers/%s/%s", j->name,
                           pause ? "pause" : "unpause");
}

/* And resume. */
void job__pause(struct job *j)
{
        job_request(j, "GET", pause_seen, "/containers/%s/json", j->name);
}

/* --- inspect --- */

static void inspect_seen(struct job *j)
{
        struct engine_container c = { .state = { .status = RUNTIME_GONE,
                                                 .reason = ENGINE_REASON_INVALID_ } };
        int r = job_container(j, &c);

        if (r < 0)
                return job_fail(j, r);
        if (j->request_id == 0 && c.state.status != RUNTIME_RUNNING
            && c.state.status != RUNTIME_PAUSED && !job_is_about(j->worker, j->id))
                engine_worker_send(j->worker,
                                   &(struct engine_message){ .died = j->id, .state = &c.state },
                                   -EBADF);
        return job_reply(j, &(struct engine_message){ .state = &c.state }, -EBADF);
}

void job__inspect(struct job *j)
{
        job_request(j, "GET", inspect_seen, "/containers/%s/json", j->name);
}

/* --- connect --- */

struct agent_connect {
        struct job *job;
        struct relay_wait wait;
};

static void reached(struct relay_wait *x, int code, int fd)
{
        struct job *j = container_of(x, struct agent_connect, wait)->job;

        if (code < 0) {
                j->err = x->err;
                return job_fail(j, code);
        }
        return job_reply(j, &(struct engine_message){ 0 }, fd);
}

static void agent_connect_free(void *impl)
{
        struct agent_connect *x = impl;

        relay_detach(&x->wait);
        free(x);
}

static void reach_cancel(struct job *j)
{
        job_fail(j, err_set(&j->err, ERR_CANCELED, "canceled"));
}

void job__connect(struct job *j)
{
        struct agent_connect *x;
        int fd, r;

        if (j->worker->settings->reach == ENGINE_REACH_EXEC) {
                x = xnew(struct agent_connect);
                x->job = j;
                x->wait.done = reached;
                j->impl = x;
                j->impl_free = agent_connect_free;
                j->cancel = reach_cancel;
                return relay_open(j->worker, &x->wait, j->name);
        }
        r = run_dir_connect(&j->worker->run_dirs, j->id, &fd);
        if (r == -ENOENT)
                return fail_not_found(j);
        if (r < 0)
                return job_fail(j, err_set(&j->err, ERR_UNAVAILABLE,
                                           "its agent does not respond: %s", err_text(r)));
        return job_reply(j, &(struct engine_message){ 0 }, fd);
}

/* --- usage --- */

static void measured(struct job *j)
{
        struct engine_usage usage = { 0 };
        int r = 0;

        if (j->api.result == 0 && j->api.status == 404)
                return fail_not_found(j);
        /* An engine may have no numbers of a container that does not run. */
        if (api_call_ok(&j->api))
                r = engine_stats_decode(buf_str(&j->api.response), &j->api.arena, &usage, &j->err);
        else if (j->api.result < 0 || j->api.status != 409)
                r = api_call_error(&j->api, &j->err, "measure the container");
        if (r < 0)
                return job_fail(j, r);
        return job_reply(j, &(struct engine_message){ .usage = &usage }, -EBADF);
}

void job__usage(struct job *j)
{
        job_request(j, "GET", measured, "/containers/%s/stats?stream=false&one-shot=true", j->name);
}

/* --- probe --- */

static void send_fact(struct job *j, const char *name, bool ok, const char *text)
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

static void send_text(struct job *j, const char *name, struct str text)
{
        send_fact(j, name, true, text.n ? QUOTED(text) : "unknown");
}

static void probe_info(struct job *j)
{
        struct engine_info info = { 0 };
        bool rootless, seccomp;
        int r;

        if (!api_call_ok(&j->api))
                r = api_call_error(&j->api, &j->err, "get its features");
        else
                r = engine_info_decode(buf_str(&j->api.response), &j->api.arena, &info, &j->err);
        if (r < 0) {
                send_fact(j, "engine features", false, j->err.message);
                return job_done(j);
        }
        rootless = has_security(&info, "rootless");
        seccomp = has_security(&info, "seccomp");
        send_text(j, "storage", info.storage);
        send_text(j, "cgroup version", info.cgroup_version);
        send_text(j, "kernel", info.kernel);
        send_fact(j, "rootless", true,
                  rootless ? "the engine runs as an unprivileged user" : "the engine runs as root");
        send_fact(
                j, "seccomp", seccomp,
                seccomp ? "system calls are filtered"
                        : "the engine does not filter system calls; install one that is built with seccomp");
        send_fact(
                j, "limits", info.memory_limit && info.pids_limit,
                info.memory_limit && info.pids_limit
                        ? "memory and processes are limited"
                        : "memory or processes cannot be limited; enable the cgroup controllers for the "
                          "engine");
        return job_done(j);
}

static void probe_version(struct job *j)
{
        struct engine_info info = { 0 };
        char text[256];
        int r;

        if (!api_call_ok(&j->api))
                r = api_call_error(&j->api, &j->err, "get its version");
        else
                r = engine_version_decode(buf_str(&j->api.response), &j->api.arena, &info, &j->err);
        if (r < 0) {
                send_fact(j, "engine", false, j->err.message);
                return job_done(j);
        }
        (void) snprintf(text, sizeof(text), "%s %s, API %s",
                        engine_kind_to_string(j->worker->settings->kind), QUOTED(info.version),
                        QUOTED(info.api_version));
        send_fact(j, "engine", true, text);
        return job_request(j, "GET", probe_info, "/info");
}

void job__probe(struct job *j)
{
        job_request(j, "GET", probe_version, "/version");
}

/* --- scan --- */

/* An entry of a container list: the record, escaped once, and what the engine adds. */
#define ENTRY_MAX (RECORD_TEXT_MAX * 2 + MiB)

struct found_id {
        struct list node;
        struct map_node by_id;
        char id[SANDBOX_ID_MAX + 1];
};

struct scan {
        struct job *job;
        struct json_stream objects;
        struct list found; /* struct found_id: for the sweep */
        struct map ids;    /* the same */
        int64_t skipped;
};

static void scan_free(void *impl)
{
        struct scan *s = impl;

        list_for_each (n, &s->found)
                free(container_of(n, struct found_id, node));
        map_done(&s->ids);
        json_stream_done(&s->objects);
        free(s);
}

/* Its record, if it can be decoded and belongs to this container. */
static bool record_is_complete(const struct engine_container *c, struct str installation,
                               struct str *ret)
{
        scoped(sandbox_freep) struct sandbox *record = NULL;
        struct str text = engine_label(&c->labels, LABEL_RECORD);
        struct err e;

        if (!text.p || sandbox_decode(text, &record, &e) < 0
            || !str_eq(engine_label(&c->labels, LABEL_SANDBOX), record->id)
            || !engine_name_is(c->name, record->id, installation))
                return false;
        *ret = text;
        return true;
}

static int scan_one(void *data, struct str object)
{
        struct scan *s = data;
        struct engine_worker *w = s->job->worker;
        struct arena a;
        struct engine_container c;
        struct str record, id;
        struct err e;

        arena_init(&a, 4 * ENTRY_MAX);
        if (engine_listed_decode(object, &a, &c, &e) < 0) {
                arena_done(&a);
                s->job->err = e;
                return -EBADMSG;
        }
        /* The engine filters; the label is checked again here. */
        if (str_eq(engine_label(&c.labels, LABEL_INSTALLATION), w->settings->installation)
            && !c.removing) {
                id = engine_label(&c.labels, LABEL_SANDBOX);
                if (id.p && sandbox_id_is_valid(id) && !map_get(&s->ids, id)) {
                        struct found_id *f = xnew(struct found_id);

                        memcpy(f->id, id.p, id.n);
                        list_append(&s->found, &f->node);
                        map_add(&s->ids, &f->by_id, str_of(f->id, id.n));
                }
                if (record_is_complete(&c, w->settings->installation, &record))
                        engine_worker_send(w,
                                           &(struct engine_message){ .request_id =
                                                                             s->job->request_id,
                                                                     .found = record,
                                                                     .state = &c.state },
                                           -EBADF);
                else
                        s->skipped++;
        }
        arena_done(&a);
        return 0;
}

/* --- run directories left by a crash --- */

static void sweep_one(void *data, struct str id)
{
        struct scan *s = data;
        struct engine_worker *w = s->job->worker;

        if (!map_get(&s->ids, id) && !job_is_about(w, id))
                run_dir_remove(&w->run_dirs, id, NULL, NULL);
}

static void scanned(struct job *j)
{
        struct scan *s = j->impl;

        if (!api_call_ok(&j->api))
                return job_fail(j, api_call_error(&j->api, &j->err, "list the containers"));
        run_dirs_each(&j->worker->run_dirs, sweep_one, s);
        return job_reply(j, &(struct engine_message){ .skipped = s->skipped }, -EBADF);
}

static void scan_cancel(struct job *j)
{
        api_call_cancel(&j->api);
}

void job__scan(struct job *j)
{
        struct scan *s = xnew(struct scan);

        s->job = j;
        list_init(&s->found);
        map_init(&s->ids);
        json_stream_init(&s->objects, ENTRY_MAX, scan_one, s);
        j->impl = s;
        j->impl_free = scan_free;
        j->cancel = scan_cancel;
        api_call_reset(&j->api);
        api_call_target(&j->api, "/containers/json?all=true&filters=");
        engine_worker_add_filter(j->worker, &j->api.target, /* events= */ false);
        j->api.objects = &s->objects;
        job_call(j, "GET", scanned);
}
