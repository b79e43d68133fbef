/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine/engine.h"

#include "base/base.h"
#include "driver/engine/impl.h"
#include "os/fd.h"

/* A container that does not say a word in this time has an agent that does not either. */
#define READY_TIMEOUT (30 * USEC_PER_SEC)

/* --- create --- */

struct making {
        struct engine *engine;
        struct driver_req *req;
        struct asking *asking; /* NULL: answered */
        struct agent_ping ping;
        bool pinging, canceled;
};

static void making_end(struct making *m, int result)
{
        struct driver_req *req = m->req;

        req->_impl = NULL;
        free(m);
        driver_finish(req, result);
}

static struct str id_of(const struct making *m)
{
        return DRIVER_AS(create, m->req)->record->id;
}

/* Its own end, if it has one, says more than that it did not answer. */
static void explained(struct asking *a, const struct engine_message *m, int fd,
                      const struct err *e);
static void undone(struct asking *a, const struct engine_message *m, int fd, const struct err *e);
static const struct asking_ops explaining = { .end = explained };
static const struct asking_ops undoing = { .end = undone };

static void undone(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct making *x = a->data;
        struct err why;

        (void) fd_close(fd);
        if (engine__result(m, e, &why) < 0)
                log_fields(x->engine->log, LOG_WARN,
                           "what is left of a sandbox could not be removed",
                           LOG_F_STR("error", str_from(why.message)));
        making_end(x, ERR_RETURN(x->req->err.code));
}

static void undo(struct making *m)
{
        struct engine_request q = { .call = ENGINE_DESTROY, .id = id_of(m) };

        (void) engine__ask(m->engine, &q, &undoing, m);
}

static void explained(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct making *x = a->data;
        struct err why;

        (void) fd_close(fd);
        if (engine__result(m, e, &why) == 0 && m->state && m->state->message.n > 0)
                (void) err_set(&x->req->err, ERR_INVALID,
                               "it ended before its agent answered: %.*s",
                               STR_ARG(m->state->message));
        undo(x);
}

static void pinged(struct op *op, int result)
{
        struct making *m = container_of(op, struct making, ping.req.op);
        struct engine_request q = { .call = ENGINE_INSPECT, .id = id_of(m) };

        m->pinging = false;
        if (result == 0 && !m->canceled) {
                engine__watch(m->engine, id_of(m));
                return making_end(m, 0);
        }
        if (m->canceled) {
                (void) err_set(&m->req->err, ERR_CANCELED, "canceled");
                return undo(m);
        }
        m->req->err = m->ping.req.err;
        (void) engine__ask(m->engine, &q, &explaining, m);
}

static void made(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct making *x = a->data;
        int r = engine__result(m, e, &x->req->err);

        x->asking = NULL;
        if (r == 0 && fd < 0)
                r = err_set(&x->req->err, ERR_INTERNAL, "the worker brought no connection");
        if (r < 0) {
                (void) fd_close(fd);
                return making_end(x, r);
        }
        x->pinging = true;
        op_init(&x->ping.req.op, pinged);
        x->ping.req.timeout = READY_TIMEOUT;
        agent_ping_fd(x->engine->agents, &x->ping, fd);
        if (x->canceled)
                op_cancel(&x->ping.req.op);
}

static const struct asking_ops making_ops = { .end = made };

static void run_create(struct driver *d, struct driver_req *req)
{
        struct driver_create *c = DRIVER_AS(create, req);
        struct engine_request q = { .call = ENGINE_CREATE };
        struct making *m = xnew(struct making);
        scoped(buf_done) struct buf text;

        m->engine = engine_of(d);
        m->req = req;
        req->_impl = m;
        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, c->record);
        if (buf_failed(&text))
                return making_end(m, err_set(&req->err, ERR_TOO_LARGE, "the record is too large"));
        q.record = buf_str(&text);
        if (c->request) {
                q.secret_env = c->request->secret_env;
                q.auth = c->request->image ? c->request->image->auth : NULL;
        }
        m->asking = engine__ask(m->engine, &q, &making_ops, m);
}

static void cancel_create(struct driver_req *req)
{
        struct making *m = req->_impl;

        if (!m || m->canceled)
                return;
        m->canceled = true;
        if (m->asking)
                engine__ask_cancel(m->asking);
        else if (m->pinging)
                op_cancel(&m->ping.req.op);
}

/* --- calls that are one question --- */

static struct engine_request request(int call, const struct driver_req *req)
{
        const struct sandbox *record = driver_req_record(req);

        return (struct engine_request){ .call = call, .id = record ? record->id : STR_NULL };
}

static void ask(struct driver *d, struct driver_req *req, int call, const struct asking_ops *ops)
{
        struct engine_request q = request(call, req);

        req->_impl = engine__ask(engine_of(d), &q, ops, req);
}

static void finish(struct asking *a, int result)
{
        struct driver_req *req = a->data;

        req->_impl = NULL;
        driver_finish(req, result);
}

static void plain_end(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        (void) fd_close(fd);
        finish(a, engine__result(m, e, &((struct driver_req *) a->data)->err));
}

static const struct asking_ops plain_ops = { .end = plain_end };

static void run_destroy(struct driver *d, struct driver_req *req)
{
        engine__unwatch(engine_of(d), DRIVER_AS(destroy, req)->record->id);
        ask(d, req, ENGINE_DESTROY, &plain_ops);
}

static void run_pause(struct driver *d, struct driver_req *req)
{
        ask(d, req, ENGINE_PAUSE, &plain_ops);
}

static void run_resume(struct driver *d, struct driver_req *req)
{
        ask(d, req, ENGINE_RESUME, &plain_ops);
}

static void inspected(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct driver_inspect *i = DRIVER_AS(inspect, (struct driver_req *) a->data);
        int r = engine__result(m, e, &i->req.err);

        (void) fd_close(fd);
        if (r == 0 && !m->state)
                r = err_set(&i->req.err, ERR_INTERNAL, "the worker's answer has no state");
        if (r == 0 && m->state) {
                i->health = engine__health(m->state);
                if (m->state->message.p)
                        i->health.message = driver_keep(&i->req, m->state->message);
                if (i->health.life == RUNTIME_RUNNING || i->health.life == RUNTIME_PAUSED)
                        engine__watch(a->engine, i->record->id);
        }
        finish(a, r);
}

static void run_inspect(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .end = inspected };

        ask(d, req, ENGINE_INSPECT, &ops);
}

static void connected(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct driver_connect *c = DRIVER_AS(connect, (struct driver_req *) a->data);
        int r = engine__result(m, e, &c->req.err);

        if (r == 0 && fd < 0)
                r = err_set(&c->req.err, ERR_INTERNAL, "the worker brought no connection");
        if (r == 0)
                c->fd = fd;
        else
                (void) fd_close(fd);
        finish(a, r);
}

static void run_connect(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .end = connected };

        ask(d, req, ENGINE_CONNECT, &ops);
}

static void measured(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct driver_usage *u = DRIVER_AS(usage, (struct driver_req *) a->data);
        int r = engine__result(m, e, &u->req.err);

        (void) fd_close(fd);
        if (r == 0 && m->usage) {
                u->cpu_usec = (uint64_t) m->usage->cpu_usec;
                u->memory_bytes = (uint64_t) m->usage->memory_bytes;
                u->processes = (uint64_t) m->usage->processes;
        }
        finish(a, r);
}

static void run_usage(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .end = measured };

        ask(d, req, ENGINE_USAGE, &ops);
}

/* --- scan --- */

static void found(struct asking *a, const struct engine_message *m)
{
        struct driver_scan *s = DRIVER_AS(scan, (struct driver_req *) a->data);
        struct sandbox *record;
        struct err e;
        int life;

        if (!m->found.p)
                return;
        if (sandbox_decode(m->found, &record, &e) < 0) {
                s->skipped++;
                return;
        }
        life = engine__health(m->state).life;
        if (life == RUNTIME_RUNNING || life == RUNTIME_PAUSED)
                engine__watch(a->engine, record->id);
        driver_scan_add(s, record, life);
}

static void scanned(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct driver_scan *s = DRIVER_AS(scan, (struct driver_req *) a->data);
        int r = engine__result(m, e, &s->req.err);

        (void) fd_close(fd);
        if (r == 0)
                s->skipped += (size_t) m->skipped;
        finish(a, r);
}

static void run_scan(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .part = found, .end = scanned };

        ask(d, req, ENGINE_SCAN, &ops);
}

/* --- probe --- */

/* Facts have names that are constants. */
static const char *const fact_names[] = {
        "engine",   "engine features", "storage", "cgroup version",
        "rootless", "seccomp",         "limits",  "kernel",
};

static void fact(struct asking *a, const struct engine_message *m)
{
        struct driver_probe *p = DRIVER_AS(probe, (struct driver_req *) a->data);

        for (size_t i = 0; m->fact && i < ARRAY_SIZE(fact_names); i++)
                if (str_eq(m->fact->name, str_from(fact_names[i])))
                        driver_probe_add(p, fact_names[i], m->fact->ok, "%.*s",
                                         STR_ARG(m->fact->text));
}

/* That there is no worker is a fact, too. */
static void probed(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct driver_probe *p = DRIVER_AS(probe, (struct driver_req *) a->data);
        struct err why;

        (void) fd_close(fd);
        if (engine__result(m, e, &why) < 0)
                driver_probe_add(p, "engine", false, "%s", why.message);
        finish(a, 0);
}

static void run_probe(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .part = fact, .end = probed };

        ask(d, req, ENGINE_PROBE, &ops);
}

/* --- snapshots --- */

static void run_snapshot(struct driver *d, struct driver_req *req)
{
        struct engine_request q = request(ENGINE_SNAPSHOT, req);

        q.snapshot = DRIVER_AS(snapshot, req)->snapshot_id;
        req->_impl = engine__ask(engine_of(d), &q, &plain_ops, req);
}

static void run_snapshot_remove(struct driver *d, struct driver_req *req)
{
        struct engine_request q = { .call = ENGINE_SNAPSHOT_REMOVE };

        q.snapshot = DRIVER_AS(snapshot_remove, req)->snapshot_id;
        req->_impl = engine__ask(engine_of(d), &q, &plain_ops, req);
}

static void listed(struct asking *a, const struct engine_message *m)
{
        if (m->snapshot.p)
                driver_snapshots_add(DRIVER_AS(snapshots, (struct driver_req *) a->data),
                                     m->snapshot);
}

static void run_snapshots(struct driver *d, struct driver_req *req)
{
        static const struct asking_ops ops = { .part = listed, .end = plain_end };

        ask(d, req, ENGINE_SNAPSHOTS, &ops);
}

/* --- cancel --- */

/* Nothing has to be undone for these; what still comes is dropped. */
static bool may_be_dropped(unsigned call)
{
        return call == DRIVER_CALL_CONNECT || call == DRIVER_CALL_INSPECT
               || call == DRIVER_CALL_USAGE || call == DRIVER_CALL_SCAN || call == DRIVER_CALL_PROBE
               || call == DRIVER_CALL_SNAPSHOTS;
}

static void run_cancel(struct driver *d, struct driver_req *req)
{
        struct asking *a = req->_impl;

        if (req->_call == DRIVER_CALL_CREATE)
                return cancel_create(req);
        if (req->_call == DRIVER_CALL_SNAPSHOT && a)
                return engine__ask_cancel(a); /* what it has begun is undone first */
        if (!may_be_dropped(req->_call) || !a)
                return;
        engine__ask_cancel(a);
        engine__forget(a);
        req->_impl = NULL;
        driver_finish(req, err_set(&req->err, ERR_CANCELED, "canceled"));
}

/* --- life cycle --- */

static void agents_freed(void *data)
{
        struct engine *g = data;

        g->open--;
        engine__close_go_on(g);
}

static void close_engine(struct driver *d)
{
        struct engine *g = engine_of(d);

        g->closing = true;
        engine__unwatch_all(g);
        list_for_each (n, &g->asked)
                engine__forget(container_of(n, struct asking, node)); /* hello, compare */
        g->open++;
        agents_free(g->agents, agents_freed, g);
        engine__worker_close(g);
}

#define OPS(text)                                                                                    \
        {                                                                                            \
                .name = (text),                                                                    \
                .caps = DRIVER_PAUSE | DRIVER_IMAGES | DRIVER_LIMITS | DRIVER_ISOLATION            \
                        | DRIVER_USAGE | DRIVER_VOLUMES | DRIVER_SNAPSHOT,                                           \
                .calls = {                                                                         \
                        [DRIVER_CALL_CREATE] = run_create,   [DRIVER_CALL_DESTROY] = run_destroy,  \
                        [DRIVER_CALL_PAUSE] = run_pause,     [DRIVER_CALL_RESUME] = run_resume,    \
                        [DRIVER_CALL_INSPECT] = run_inspect, [DRIVER_CALL_SCAN] = run_scan,        \
                        [DRIVER_CALL_CONNECT] = run_connect, [DRIVER_CALL_USAGE] = run_usage,      \
                        [DRIVER_CALL_PROBE] = run_probe,                                           \
                        [DRIVER_CALL_SNAPSHOT] = run_snapshot,                                     \
                        [DRIVER_CALL_SNAPSHOT_REMOVE] = run_snapshot_remove,                       \
                        [DRIVER_CALL_SNAPSHOTS] = run_snapshots,                                   \
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
        g->pidfd = -EBADF;
        list_init(&g->asked);
        list_init(&g->all_watched);
        map_init(&g->watched);
        r = engine__worker_open(g, setup, config ? config : &none, e);
        if (r < 0) {
                for (char **a = g->argv; *a; a++)
                        free(*a);
                free(g->argv);
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
