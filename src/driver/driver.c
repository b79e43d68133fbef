/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/driver_impl.h"
#include "model/extensions.h"
#include "os/fd.h"

/*
 * A request is started, given to the driver, finished, done. The facade wraps the operation (net/op.h): between
 * op_finish and the starter's `done` it takes the results out of the operation, which `done` may free, and frees them
 * afterwards.
 */

/* A handle, and messages of the runtime. */
#define RESULT_MAX (256 * KiB)

/* --- what belongs to each call --- */

#define RECORD_OF(call) (1 + offsetof(struct driver_##call, record))

static const struct {
        unsigned cap;     /* that the driver must have, or 0 */
        const char *verb; /* for a message about a record */
        size_t record;    /* 1 + offset of the record in the operation, or 0 */
} calls[DRIVER_CALL_MAX_] = {
        [DRIVER_CALL_CREATE] = { 0, "create", RECORD_OF(create) },
        [DRIVER_CALL_DESTROY] = { 0, "destroy", RECORD_OF(destroy) },
        [DRIVER_CALL_PAUSE] = { DRIVER_PAUSE, "pause", RECORD_OF(pause) },
        [DRIVER_CALL_RESUME] = { DRIVER_PAUSE, "resume", RECORD_OF(pause) },
        [DRIVER_CALL_INSPECT] = { 0, "inspect", RECORD_OF(inspect) },
        [DRIVER_CALL_SCAN] = { 0, NULL, 0 },
        [DRIVER_CALL_CONNECT] = { 0, "connect to", RECORD_OF(connect) },
        [DRIVER_CALL_USAGE] = { DRIVER_USAGE, "measure", RECORD_OF(usage) },
        [DRIVER_CALL_PROBE] = { 0, NULL, 0 },
        [DRIVER_CALL_SNAPSHOT] = { DRIVER_SNAPSHOT, "take a snapshot of", RECORD_OF(snapshot) },
        [DRIVER_CALL_SNAPSHOT_REMOVE] = { DRIVER_SNAPSHOT, NULL, 0 },
        [DRIVER_CALL_SNAPSHOTS] = { DRIVER_SNAPSHOT, NULL, 0 },
};

static_assert(offsetof(struct driver_create, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_destroy, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_pause, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_inspect, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_connect, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_usage, req) == 0, "an operation begins with its request");
static_assert(offsetof(struct driver_snapshot, req) == 0, "an operation begins with its request");

const struct sandbox *driver_req_record(const struct driver_req *req)
{
        size_t at = calls[req->_call].record;
        const struct sandbox *record = NULL;

        if (at > 0)
                memcpy(&record, (const char *) req + at - 1, sizeof(struct sandbox *));
        return record;
}

const char *driver_name(const struct driver *d)
{
        return d->ops->name;
}

unsigned driver_caps(const struct driver *d)
{
        return d->ops->caps;
}

/* --- capabilities --- */

const struct driver_cap driver_cap_table[DRIVER_CAPS_N] = {
        { DRIVER_PAUSE, STR("pause"), "pause sandboxes" },
        { DRIVER_SNAPSHOT, STR("snapshot"), "take snapshots" },
        { DRIVER_IMAGES, STR("images"), "pull images" },
        { DRIVER_VOLUMES, STR("volumes"), "mount volumes" },
        { DRIVER_NETWORK_POLICY, STR("networkPolicy"), "enforce a network policy" },
        { DRIVER_LIMITS, STR("limits"), "limit cpu and memory" },
        { DRIVER_ISOLATION, STR("isolation"), "isolate sandboxes" },
        { DRIVER_USAGE, STR("usage"), "measure sandboxes" },
        { DRIVER_NETWORKS, STR("networks"), "choose the network of a sandbox" },
};

int driver_caps_check(struct str driver, unsigned caps, unsigned needed, struct err *e)
{
        for (size_t i = 0; i < DRIVER_CAPS_N; i++)
                if (driver_cap_table[i].bit & needed & ~caps)
                        return err_set(e, ERR_UNSUPPORTED, "%s: the driver '%.*s' cannot %s",
                                       driver_cap_table[i].name.p, STR_ARG(driver),
                                       driver_cap_table[i].action);
        return 0;
}

int driver_require(const struct driver *d, unsigned needed, struct err *e)
{
        return driver_caps_check(str_from(driver_name(d)), driver_caps(d), needed, e);
}

unsigned driver_caps_for_create(const struct create_request *request)
{
        return (request->volumes.n > 0 ? DRIVER_VOLUMES : 0)
               | (request->network_policy ? DRIVER_NETWORK_POLICY : 0)
               | (request->snapshot_id.p ? DRIVER_SNAPSHOT : 0)
               | (extensions_get(&request->extensions, EXTENSION_NETWORK).p ? DRIVER_NETWORKS : 0);
}

/* --- life cycle --- */

static void close_go_on(struct driver *d)
{
        if (!d->_close || d->_close_begun || d->_under_way > 0)
                return;
        d->_close_begun = true;
        d->ops->close(d);
}

static void close_task(struct net_task *t)
{
        close_go_on(container_of(t, struct driver, _close_task));
}

void driver_closed(struct driver *d)
{
        op_finish(&d->_close->op, 0);
}

static void close_done(struct op *op, int result)
{
        struct driver_close *c = container_of(op, struct driver_close, op);
        struct driver *d = c->_driver;

        /* A call that came after the close is being refused. */
        if (d->_under_way > 0) {
                op_begin(op, d->loop, /* cancel= */ NULL);
                op_finish(op, result);
                return;
        }
        free(d);
        op_unwrap(op, &c->_wrap, result);
}

void driver_init(struct driver *d, const struct driver_ops *ops, struct net_loop *loop)
{
        *d = (struct driver){ .ops = ops, .loop = loop };
        list_init(&d->_running);
        net_task_init(&d->_close_task, close_task);
}

int driver_check_agent(const struct driver_setup *setup, struct err *e)
{
        struct stat st;

        if (!setup->agent || setup->agent[0] != '/')
                return err_set(e, ERR_INVALID, "the agent must be an absolute path");
        if (stat(setup->agent, &st) < 0 || (S_ISREG(st.st_mode) && access(setup->agent, X_OK) < 0))
                return err_errno(e, -errno, "the agent '%s' cannot be run", setup->agent);
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, "the agent '%s' is not a program", setup->agent);
        return 0;
}

/* One cancel may finish any number of others, so the list of requests is walked from its head. A request that was
 * canceled moves behind the marker, and is not canceled again. */
void driver_close(struct driver *d, struct driver_close *c)
{
        struct list mark;

        ASSERT(!d->_close);
        d->_close = c;
        d->_watcher = NULL;
        c->_driver = d;
        op_wrap(&c->op, &c->_wrap, close_done);
        op_begin(&c->op, d->loop, /* cancel= */ NULL);
        list_append(&d->_running, &mark);
        for (struct list *first; (first = d->_running.next) != &mark;) {
                list_remove(first);
                list_append(&d->_running, first);
                op_cancel(&container_of(first, struct driver_req, _node)->op);
        }
        list_remove(&mark);
        net_task_queue(d->loop, &d->_close_task);
}

void driver_watch(struct driver *d, struct driver_watcher *w)
{
        if (!d->_close)
                d->_watcher = w;
}

void driver_notify_died(struct driver *d, struct str id, const struct driver_health *how)
{
        char id_copy[SANDBOX_ID_MAX + 1], message[MESSAGE_MAX];
        struct driver_health copy = *how;
        struct str cut = str_utf8_cut(how->message, sizeof(message));

        if (!d->_watcher)
                return;
        ASSERT(id.n < sizeof(id_copy));
        memcpy(id_copy, id.p, id.n);
        if (cut.n > 0)
                memcpy(message, cut.p, cut.n);
        copy.message = str_of(message, cut.n);
        d->_watcher->died(d->_watcher, d, str_of(id_copy, id.n), &copy);
}

/* --- results --- */

struct str driver_keep(struct driver_req *req, struct str text)
{
        return arena_dup_str(&req->_memory, text);
}

/* Room for one more item; the array doubles. */
static void *grown(void *items, size_t n, size_t size)
{
        if (n > 0 && (n & (n - 1)) != 0)
                return items;
        return xrealloc(items, n == 0 ? 1 : 2 * n, size);
}

void driver_scan_add(struct driver_scan *s, struct sandbox *record, int status)
{
        s->found = grown(s->found, s->n, sizeof(*s->found));
        s->found[s->n++] = (struct driver_found){ record, status };
}

void driver_snapshots_add(struct driver_snapshots *x, struct str id)
{
        ASSERT(sandbox_id_is_valid(id));
        x->ids = grown(x->ids, x->n, sizeof(*x->ids));
        x->ids[x->n] = (struct driver_snapshot_id){ 0 };
        memcpy(x->ids[x->n++].text, id.p, id.n);
}

void driver_probe_add(struct driver_probe *p, const char *name, bool ok, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        p->facts = grown(p->facts, p->n, sizeof(*p->facts));
        p->facts[p->n++] = (struct driver_fact){ name, ok, driver_keep(&p->req, str_from(text)) };
}

/* What the results of an operation own, taken out of it. */
struct results {
        struct arena memory;
        struct driver_found *found;
        size_t n_found;
        struct driver_fact *facts;
        struct driver_snapshot_id *ids;
};

static struct results results_take(struct driver_req *req)
{
        struct results r = { .memory = req->_memory };

        req->_memory = (struct arena){ 0 };
        if (req->_call == DRIVER_CALL_SCAN) {
                r.found = DRIVER_AS(scan, req)->found;
                r.n_found = DRIVER_AS(scan, req)->n;
        } else if (req->_call == DRIVER_CALL_PROBE) {
                r.facts = DRIVER_AS(probe, req)->facts;
        } else if (req->_call == DRIVER_CALL_SNAPSHOTS) {
                r.ids = DRIVER_AS(snapshots, req)->ids;
        }
        return r;
}

static void results_free(struct results *r)
{
        for (size_t i = 0; i < r->n_found; i++)
                sandbox_free(r->found[i].record);
        free(r->found);
        free(r->facts);
        free(r->ids);
        arena_done(&r->memory);
}

/* Empty, as before the start. */
static void outputs_clear(struct driver_req *req)
{
        switch ((enum driver_call) req->_call) {
        case DRIVER_CALL_CREATE:
                DRIVER_AS(create, req)->handle = STR_NULL;
                break;
        case DRIVER_CALL_INSPECT:
                DRIVER_AS(inspect, req)->health = (struct driver_health){ 0 };
                break;
        case DRIVER_CALL_SCAN:
                DRIVER_AS(scan, req)->found = NULL;
                DRIVER_AS(scan, req)->n = DRIVER_AS(scan, req)->skipped = 0;
                break;
        case DRIVER_CALL_CONNECT:
                DRIVER_AS(connect, req)->fd = -EBADF;
                break;
        case DRIVER_CALL_USAGE:
                DRIVER_AS(usage, req)->cpu_usec = 0;
                DRIVER_AS(usage, req)->memory_bytes = DRIVER_AS(usage, req)->processes = 0;
                break;
        case DRIVER_CALL_PROBE:
                DRIVER_AS(probe, req)->facts = NULL;
                DRIVER_AS(probe, req)->n = 0;
                break;
        case DRIVER_CALL_SNAPSHOTS:
                DRIVER_AS(snapshots, req)->ids = NULL;
                DRIVER_AS(snapshots, req)->n = 0;
                break;
        case DRIVER_CALL_DESTROY:
        case DRIVER_CALL_PAUSE:
        case DRIVER_CALL_RESUME:
        case DRIVER_CALL_SNAPSHOT:
        case DRIVER_CALL_SNAPSHOT_REMOVE:
        case DRIVER_CALL_MAX_:
        default:
                break;
        }
}

/* --- a request --- */

static void req_done(struct op *op, int result)
{
        struct driver_req *req = container_of(op, struct driver_req, op);
        struct driver *d = req->_driver;
        struct results results = results_take(req);

        op_unwrap(op, &req->_wrap, result); /* req may be gone, or under way again */
        results_free(&results);
        d->_under_way--;
        close_go_on(d);
}

void driver_finish(struct driver_req *req, int result)
{
        struct results dropped;

        ASSERT(result == 0 || result == ERR_RETURN(req->err.code));
        list_remove(&req->_node);
        if (result < 0) {
                dropped = results_take(req);
                if (req->_call == DRIVER_CALL_CONNECT)
                        (void) fd_close(DRIVER_AS(connect, req)->fd);
                results_free(&dropped);
                outputs_clear(req);
        }
        op_finish(&req->op, result);
}

static void req_cancel(struct op *op)
{
        struct driver_req *req = container_of(op, struct driver_req, op);
        struct driver *d = req->_driver;

        if (d->ops->cancel)
                d->ops->cancel(d, req);
}

/* --- starting --- */

/* Ids become names of files and containers, those of snapshots too. Records were checked long ago; this is the last
 * check. */
static int check_arguments(const struct driver *d, struct driver_req *req)
{
        const struct sandbox *record = driver_req_record(req);
        struct str snapshot = STR_NULL;
        unsigned needed = calls[req->_call].cap;

        if (d->_close)
                return err_set(&req->err, ERR_UNAVAILABLE, "the driver '%s' is being closed",
                               driver_name(d));
        if (record && !sandbox_id_is_valid(record->id))
                return err_set(&req->err, ERR_INVALID, "cannot %s a sandbox without a valid id",
                               calls[req->_call].verb);
        if (record && req->_call == DRIVER_CALL_CREATE) {
                snapshot = record->snapshot_id;
                needed |= (record->volumes.n > 0 ? DRIVER_VOLUMES : 0)
                          | (record->network_policy ? DRIVER_NETWORK_POLICY : 0)
                          | (snapshot.p ? DRIVER_SNAPSHOT : 0);
        } else if (req->_call == DRIVER_CALL_SNAPSHOT) {
                snapshot = DRIVER_AS(snapshot, req)->snapshot_id;
        } else if (req->_call == DRIVER_CALL_SNAPSHOT_REMOVE) {
                snapshot = DRIVER_AS(snapshot_remove, req)->snapshot_id;
        }
        if ((snapshot.p || req->_call == DRIVER_CALL_SNAPSHOT
             || req->_call == DRIVER_CALL_SNAPSHOT_REMOVE)
            && !sandbox_id_is_valid(snapshot))
                return err_set(&req->err, ERR_INVALID, "this is not the id of a snapshot");
        return driver_require(d, needed, &req->err);
}

void driver_start(struct driver *d, struct driver_req *req)
{
        int r;

        req->err = (struct err){ 0 };
        req->_driver = d;
        req->_impl = NULL;
        arena_init(&req->_memory, RESULT_MAX);
        outputs_clear(req);
        op_wrap(&req->op, &req->_wrap, req_done);
        d->_under_way++;
        list_init(&req->_node);
        list_append(&d->_running, &req->_node);
        op_begin(&req->op, d->loop, req_cancel);

        r = check_arguments(d, req);
        if (r < 0)
                driver_finish(req, r);
        else
                d->ops->calls[req->_call](d, req);
}

/* --- requests --- */

struct driver_req *driver_create_req(struct driver_create *c, const struct sandbox *record,
                                     const struct create_request *request)
{
        c->req._call = DRIVER_CALL_CREATE;
        c->record = record;
        c->request = request;
        return &c->req;
}

struct driver_req *driver_destroy_req(struct driver_destroy *x, const struct sandbox *record)
{
        x->req._call = DRIVER_CALL_DESTROY;
        x->record = record;
        return &x->req;
}

struct driver_req *driver_pause_req(struct driver_pause *p, const struct sandbox *record)
{
        p->req._call = DRIVER_CALL_PAUSE;
        p->record = record;
        return &p->req;
}

struct driver_req *driver_resume_req(struct driver_pause *p, const struct sandbox *record)
{
        p->req._call = DRIVER_CALL_RESUME;
        p->record = record;
        return &p->req;
}

struct driver_req *driver_inspect_req(struct driver_inspect *i, const struct sandbox *record)
{
        i->req._call = DRIVER_CALL_INSPECT;
        i->record = record;
        return &i->req;
}

struct driver_req *driver_scan_req(struct driver_scan *s)
{
        s->req._call = DRIVER_CALL_SCAN;
        return &s->req;
}

struct driver_req *driver_connect_req(struct driver_connect *c, const struct sandbox *record)
{
        c->req._call = DRIVER_CALL_CONNECT;
        c->record = record;
        return &c->req;
}

struct driver_req *driver_usage_req(struct driver_usage *u, const struct sandbox *record)
{
        u->req._call = DRIVER_CALL_USAGE;
        u->record = record;
        return &u->req;
}

struct driver_req *driver_probe_req(struct driver_probe *p)
{
        p->req._call = DRIVER_CALL_PROBE;
        return &p->req;
}

struct driver_req *driver_snapshot_req(struct driver_snapshot *x, const struct sandbox *record,
                                       struct str snapshot_id)
{
        x->req._call = DRIVER_CALL_SNAPSHOT;
        x->record = record;
        x->snapshot_id = snapshot_id;
        return &x->req;
}

struct driver_req *driver_snapshot_remove_req(struct driver_snapshot_remove *x,
                                              struct str snapshot_id)
{
        x->req._call = DRIVER_CALL_SNAPSHOT_REMOVE;
        x->snapshot_id = snapshot_id;
        return &x->req;
}

struct driver_req *driver_snapshots_req(struct driver_snapshots *x)
{
        x->req._call = DRIVER_CALL_SNAPSHOTS;
        return &x->req;
}
