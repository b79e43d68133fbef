/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine/engine.h"

#include "base/base.h"
#include "driver/engine/engine_impl.h"
#include "os/fd.h"

/* From a container that runs to an agent that answers. */
#define READY_TIMEOUT (30 * USEC_PER_SEC)

/* --- create --- */

struct engine_create {
        struct engine *engine;
        struct driver_req *req;
        struct engine_pending *pending; /* NULL: replied to */
        struct agent_ping ping;
        bool pinging, canceled;
};

static void create_finish(struct engine_create *c, int result)
{
        struct driver_req *req = c->req;

        req->_impl = NULL;
        free(c);
        driver_finish(req, result);
}

static struct engine_request create_request(const struct engine_create *c, int call)
{
        return (struct engine_request){ .call = call, .id = DRIVER_AS(create, c->req)->record->id };
}

static void create_undone(struct engine_pending *p, struct engine_reply *r)
{
        struct engine_create *c = p->data;

        if (r->result < 0)
                log_fields(c->engine->log, LOG_WARN, "remains of a sandbox not removed",
                           LOG_F_STR("sandbox", DRIVER_AS(create, c->req)->record->id),
                           LOG_F_STR("error", str_from(r->err.message)));
        create_finish(c, ERR_RETURN(c->req->err.code));
}

static void create_undo(struct engine_create *c)
{
        struct engine_request q = create_request(c, ENGINE_DESTROY);

        (void) engine__send(c->engine, &q, NULL, create_undone, c);
}

/* How the container has ended, if it has, says more than that its agent did not answer. */
static void create_explained(struct engine_pending *p, struct engine_reply *r)
{
        struct engine_create *c = p->data;

        if (r->result == 0 && r->message->state && r->message->state->message.n > 0)
                (void) err_set(&c->req->err, ERR_INVALID,
                               "it ended before its agent answered: %.*s",
                               STR_ARG(r->message->state->message));
        create_undo(c);
}

static void create_pinged(struct op *op, int result)
{
        struct engine_create *c = container_of(op, struct engine_create, ping.req.op);
        struct engine_request q = create_request(c, ENGINE_INSPECT);

        c->pinging = false;
        if (c->canceled) {
                (void) err_set(&c->req->err, ERR_CANCELED, "canceled");
                return create_undo(c);
        }
        if (result == 0) {
                engine__watch(c->engine, q.id);
                return create_finish(c, 0);
        }
        c->req->err = c->ping.req.err;
        (void) engine__send(c->engine, &q, NULL, create_explained, c);
}

static void created(struct engine_pending *p, struct engine_reply *r)
{
        struct engine_create *c = p->data;

        c->pending = NULL;
        if (r->result == 0 && r->fd < 0)
                r->result = err_set(&r->err, ERR_INTERNAL, "the worker's reply has no connection");
        if (r->result < 0) {
                c->req->err = r->err;
                return create_finish(c, r->result);
        }
        c->pinging = true;
        op_init(&c->ping.req.op, create_pinged);
        c->ping.req.timeout = READY_TIMEOUT;
        agent_ping_fd(c->engine->agents, &c->ping, TAKE_FD(r->fd));
        if (c->canceled)
                op_cancel(&c->ping.req.op);
}

static void run_create(struct driver *d, struct driver_req *req)
{
        const struct create_request *request = DRIVER_AS(create, req)->request;
        struct engine_create *c = xnew(struct engine_create);
        struct engine_request q = { .call = ENGINE_CREATE };
        scoped(buf_done) struct buf text;

        c->engine = engine_of(d);
        c->req = req;
        req->_impl = c;
        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, DRIVER_AS(create, req)->record);
        if (buf_failed(&text))
                return create_finish(c,
                                     err_set(&req->err, ERR_TOO_LARGE, "the record is too large"));
        q.record = buf_str(&text);
        if (request) {
                q.secret_env = request->secret_env;
                q.auth = request->image ? request->image->auth : NULL;
        }
        c->pending = engine__send(c->engine, &q, NULL, created, c);
}

static void cancel_create(struct engine_create *c)
{
        if (!c || c->canceled)
                return;
        c->canceled = true;
        if (c->pending)
                engine__cancel(c->pending); /* may have finished it */
        else if (c->pinging)
                op_cancel(&c->ping.req.op);
}

/* --- calls that are one request to the worker --- */

static void call_finish(struct engine_pending *p, struct engine_reply *r)
{
        struct driver_req *req = p->data;

        req->_impl = NULL;
        if (r->result < 0)
                req->err = r->err;
        driver_finish(req, r->result);
}

static void inspected(struct engine_pending *p, struct engine_reply *r)
{
        struct driver_inspect *i = DRIVER_AS(inspect, (struct driver_req *) p->data);
        const struct engine_state *state = r->result == 0 ? r->message->state : NULL;

        if (state) {
                i->health = engine__health(state);
                if (state->message.p)
                        i->health.message = driver_keep(&i->req, state->message);
                if (runtime_is_alive(i->health.status))
                        engine__watch(p->engine, i->record->id);
        } else if (r->result == 0) {
                r->result = err_set(&r->err, ERR_INTERNAL, "the worker's reply has no state");
        }
        call_finish(p, r);
}

static void connected(struct engine_pending *p, struct engine_reply *r)
{
        struct driver_connect *c = DRIVER_AS(connect, (struct driver_req *) p->data);

        if (r->result == 0 && r->fd < 0)
                r->result = err_set(&r->err, ERR_INTERNAL, "the worker's reply has no connection");
        if (r->result == 0)
                c->fd = TAKE_FD(r->fd);
        call_finish(p, r);
}

static void measured(struct engine_pending *p, struct engine_reply *r)
{
        struct driver_usage *u = DRIVER_AS(usage, (struct driver_req *) p->data);
        const struct engine_usage *usage = r->result == 0 ? r->message->usage : NULL;

        if (usage) {
                u->cpu_usec = (uint64_t) usage->cpu_usec;
                u->memory_bytes = (uint64_t) usage->memory_bytes;
                u->processes = (uint64_t) usage->processes;
        }
        call_finish(p, r);
}

static void scan_part(struct engine_pending *p, const struct engine_message *m)
{
        struct driver_scan *s = DRIVER_AS(scan, (struct driver_req *) p->data);
        struct sandbox *record;
        struct err e;
        int status;

        if (!m->found.p)
                return;
        if (sandbox_decode(m->found, &record, &e) < 0) {
                s->skipped++;
                return;
        }
        status = engine__health(m->state).status;
        if (runtime_is_alive(status))
                engine__watch(p->engine, record->id);
        driver_scan_add(s, record, status);
}

static void scanned(struct engine_pending *p, struct engine_reply *r)
{
        if (r->result == 0)
                DRIVER_AS(scan, (struct driver_req *) p->data)->skipped +=
                        (size_t) r->message->skipped;
        call_finish(p, r);
}

/* Facts have constants for names. */
static void probe_part(struct engine_pending *p, const struct engine_message *m)
{
        static const char *const names[] = {
                "engine",   "engine features", "storage", "cgroup version",
                "rootless", "seccomp",         "limits",  "kernel",
        };

        for (size_t i = 0; m->fact && i < ARRAY_SIZE(names); i++)
                if (str_eq(m->fact->name, str_from(names[i])))
                        driver_probe_add(DRIVER_AS(probe, (struct driver_req *) p->data), names[i],
                                         m->fact->ok, "%.*s", STR_ARG(m->fact->text));
}

/* A missing worker is a fact as well. */
static void probed(struct engine_pending *p, struct engine_reply *r)
{
        if (r->result < 0)
                driver_probe_add(DRIVER_AS(probe, (struct driver_req *) p->data), "engine", false,
                                 "%s", r->err.message);
        r->result = 0;
        call_finish(p, r);
}

static void snapshots_part(struct engine_pending *p, const struct engine_message *m)
{
        if (m->snapshot.p)
                driver_snapshots_add(DRIVER_AS(snapshots, (struct driver_req *) p->data),
                                     m->snapshot);
}

static const struct {
        enum engine_call call;
        engine_part_fn *part;
        engine_end_fn *end;
        bool droppable; /* nothing has to be undone: canceled at once */
} requests[DRIVER_CALL_MAX_] = {
        [DRIVER_CALL_DESTROY] = { ENGINE_DESTROY, NULL, call_finish, false },
        [DRIVER_CALL_PAUSE] = { ENGINE_PAUSE, NULL, call_finish, false },
        [DRIVER_CALL_RESUME] = { ENGINE_RESUME, NULL, call_finish, false },
        [DRIVER_CALL_INSPECT] = { ENGINE_INSPECT, NULL, inspected, true },
        [DRIVER_CALL_SCAN] = { ENGINE_SCAN, scan_part, scanned, true },
        [DRIVER_CALL_CONNECT] = { ENGINE_CONNECT, NULL, connected, true },
        [DRIVER_CALL_USAGE] = { ENGINE_USAGE, NULL, measured, true },
        [DRIVER_CALL_PROBE] = { ENGINE_PROBE, probe_part, probed, true },
        [DRIVER_CALL_SNAPSHOT] = { ENGINE_SNAPSHOT, NULL, call_finish, false },
        [DRIVER_CALL_SNAPSHOT_REMOVE] = { ENGINE_SNAPSHOT_REMOVE, NULL, call_finish, false },
        [DRIVER_CALL_SNAPSHOTS] = { ENGINE_SNAPSHOTS, snapshots_part, call_finish, true },
};

static void run_call(struct driver *d, struct driver_req *req)
{
        const struct sandbox *record = driver_req_record(req);
        struct engine_request q = { .call = requests[req->_call].call,
                                    .id = record ? record->id : STR_NULL };

        if (record && req->_call == DRIVER_CALL_DESTROY)
                engine__unwatch(engine_of(d), record->id);
        else if (req->_call == DRIVER_CALL_SNAPSHOT)
                q.snapshot = DRIVER_AS(snapshot, req)->snapshot_id;
        else if (req->_call == DRIVER_CALL_SNAPSHOT_REMOVE)
                q.snapshot = DRIVER_AS(snapshot_remove, req)->snapshot_id;
        req->_impl = engine__send(engine_of(d), &q, requests[req->_call].part,
                                  requests[req->_call].end, req);
}

static void run_cancel(struct driver *d, struct driver_req *req)
{
        (void) d;
        if (req->_call == DRIVER_CALL_CREATE)
                return cancel_create(req->_impl);
        if (req->_call == DRIVER_CALL_SNAPSHOT && req->_impl)
                return engine__cancel(req->_impl); /* what it has begun is undone first */
        if (!requests[req->_call].droppable || !req->_impl)
                return;
        engine__drop(TAKE_PTR(req->_impl));
        driver_finish(req, err_set(&req->err, ERR_CANCELED, "canceled"));
}

/* --- life cycle --- */

void engine__part_closed(struct engine *g)
{
        if (--g->open > 0)
                return;
        engine__argv_free(g);
        map_done(&g->watched);
        driver_closed(&g->driver);
}

static void agents_freed(void *data)
{
        engine__part_closed(data);
}

/* No request of the driver is under way; the comparison may be, and is dropped. */
static void close_engine(struct driver *d)
{
        struct engine *g = engine_of(d);

        g->closing = true;
        g->open = 2;
        engine__unwatch_all(g);
        if (g->comparing)
                engine__drop(TAKE_PTR(g->comparing));
        agents_free(g->agents, agents_freed, g);
        worker_close(&g->worker);
}

#define OPS(text)                                                                                    \
        {                                                                                            \
                .name = (text),                                                                    \
                .caps = DRIVER_PAUSE | DRIVER_IMAGES | DRIVER_LIMITS | DRIVER_ISOLATION            \
                        | DRIVER_USAGE | DRIVER_VOLUMES | DRIVER_SNAPSHOT,                         \
                .calls = {                                                                         \
                        [DRIVER_CALL_CREATE] = run_create, [DRIVER_CALL_DESTROY] = run_call,       \
                        [DRIVER_CALL_PAUSE] = run_call,    [DRIVER_CALL_RESUME] = run_call,        \
                        [DRIVER_CALL_INSPECT] = run_call,  [DRIVER_CALL_SCAN] = run_call,          \
                        [DRIVER_CALL_CONNECT] = run_call,  [DRIVER_CALL_USAGE] = run_call,         \
                        [DRIVER_CALL_PROBE] = run_call,    [DRIVER_CALL_SNAPSHOT] = run_call,      \
                        [DRIVER_CALL_SNAPSHOT_REMOVE] = run_call,                                  \
                        [DRIVER_CALL_SNAPSHOTS] = run_call,                                        \
                },                                                                                 \
                .cancel = run_cancel, .close = close_engine, \
        }

static const struct driver_ops ops[ENGINE_KIND_MAX_] = {
        [ENGINE_DOCKER] = OPS("docker"),
        [ENGINE_PODMAN] = OPS("podman"),
};

int driver_engine_open(const struct driver_setup *setup, enum engine_kind kind,
                       const struct engine_config *config, struct driver **ret, struct err *e)
{
        static const struct engine_config none = { 0 };
        int r = driver_check_agent(setup, e);
        struct engine *g;

        if (r < 0)
                return r;
        g = xnew(struct engine);
        driver_init(&g->driver, &ops[kind], setup->loop);
        g->log = setup->log;
        g->kind = kind;
        list_init(&g->all_watched);
        map_init(&g->watched);
        r = engine__worker_open(g, setup, config ? config : &none, e);
        if (r < 0) {
                engine__argv_free(g);
                free(g);
                return r;
        }
        g->agents = agents_new(setup->loop);
        *ret = &g->driver;
        return 0;
}

int driver_docker_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        return driver_engine_open(setup, ENGINE_DOCKER,
                                  setup->engines ? &setup->engines[ENGINE_DOCKER] : NULL, ret, e);
}

int driver_podman_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        return driver_engine_open(setup, ENGINE_PODMAN,
                                  setup->engines ? &setup->engines[ENGINE_PODMAN] : NULL, ret, e);
}
