/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_fake.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"
#include "driver/driver_fake_impl.h"
#include "http/server.h"

/* Records that a turn of scan decodes. */
#define SCAN_SLICE 32

/* --- agents --- */

static void serve_ping(struct http_req *req)
{
        http_reply_empty(req, 200);
}

static void serve_version(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"),
                   STR("{\"name\":\"fake\",\"version\":\"0\",\"protocol\":1,\"build\":\"\"}"));
}

static const struct http_route agent_routes[] = {
        { METHOD_GET, "/ping", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_ping },
        { METHOD_GET, "/version", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_version },
};

static const struct http_api agent_api = {
        .name = "agent",
        .prefix = "",
        .routes = agent_routes,
        .n_routes = ARRAY_SIZE(agent_routes),
};

static void server_freed(void *data)
{
        struct server *s = data;
        struct fake *f = s->f;

        free((char *) s->agent.id.p);
        free(s);
        f->servers--;
        fake__close_go_on(f);
}

void fake__agent_stop(struct entry *entry)
{
        if (entry->server)
                http_server_free(entry->server->http, server_freed, entry->server);
        entry->server = NULL;
}

static int agent_start(struct fake *f, struct entry *entry)
{
        struct driver_fake_world *w = f->world;
        struct server *s = xnew(struct server);
        int r;

        s->f = f;
        s->http = http_server_new(f->driver.loop, /* config= */ NULL, /* log= */ NULL);
        s->agent.id = str_of(xstrndup_str(entry->id), entry->id.n);
        s->agent.data = w->agent_data;
        http_server_set_data(s->http, &s->agent);
        f->servers++;
        r = http_server_add_api(s->http, w->agent_api ? w->agent_api : &agent_api);
        entry->server = s;
        if (r < 0)
                fake__agent_stop(entry);
        return r;
}

void driver_fake_set_agent(struct driver_fake_world *w, const struct http_api *api, void *data)
{
        w->agent_api = api;
        w->agent_data = data;
}

const struct driver_fake_agent *driver_fake_agent_of(const struct http_req *req)
{
        return http_server_data(req->server);
}

/* --- snapshots --- */

/* Snapshots of the fake driver: names in its world. */

static struct kept *kept_of(struct tree_node *n)
{
        return n ? container_of(n, struct kept, node) : NULL;
}

static struct kept *find(const struct fake *f, struct str id)
{
        char name[FAKE_NAME_SIZE];

        return kept_of(tree_get(&f->world->snapshots, fake__name(name, sizeof(name), f, id)));
}

static void kept_free(struct driver_fake_world *w, struct kept *k)
{
        tree_remove(&w->snapshots, &k->node);
        free(k);
}

void fake__kept_free_all(struct driver_fake_world *w)
{
        for (struct tree_node *n; (n = tree_nth(&w->snapshots, 0));)
                kept_free(w, kept_of(n));
}

static void run_snapshot(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct driver_snapshot *x = DRIVER_AS(snapshot, req);
        const struct entry *entry = fake__entry_get(f, x->record->id);
        const struct str id = x->snapshot_id, tenant = x->record->tenant;
        char name[FAKE_NAME_SIZE];
        struct kept *k;
        struct str key;

        if (!entry)
                return driver_finish(req,
                                     err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox"));
        if (entry->status != RUNTIME_RUNNING)
                return driver_finish(req, err_set(&req->err, ERR_CONFLICT, "the sandbox is %s",
                                                  runtime_status_to_string(entry->status)));
        if (find(f, id))
                return driver_finish(req, err_set(&req->err, ERR_EXISTS,
                                                  "there is such a snapshot already"));
        key = fake__name(name, sizeof(name), f, id);
        k = xcalloc(1, sizeof(*k) + key.n + tenant.n);
        memcpy(k->name, key.p, key.n);
        memcpy(k->name + key.n, tenant.p, tenant.n);
        k->id = str_of(k->name + key.n - id.n, id.n);
        k->tenant = str_of(k->name + key.n, tenant.n);
        tree_add(&f->world->snapshots, &k->node, str_of(k->name, key.n));
        return driver_finish(req, 0);
}

static void run_snapshot_remove(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct kept *k = find(f, DRIVER_AS(snapshot_remove, req)->snapshot_id);
        const struct tree *all = &f->world->sandboxes;
        const struct str prefix = str_from(f->prefix);

        for (struct tree_node *n = tree_from(all, prefix);
             k && n && str_starts_with(n->key, prefix); n = tree_after(all, n->key))
                if (str_eq(str_from(entry_of(n)->snapshot_id), k->id))
                        return driver_finish(req,
                                             err_set(&req->err, ERR_CONFLICT,
                                                     "a sandbox that was made of it is there"));
        if (k)
                kept_free(f->world, k);
        return driver_finish(req, 0);
}

static void run_snapshots(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        const struct tree *all = &f->world->snapshots;
        struct str prefix = str_from(f->prefix);

        for (struct tree_node *n = tree_from(all, prefix); n && str_starts_with(n->key, prefix);
             n = tree_after(all, n->key))
                driver_snapshots_add(DRIVER_AS(snapshots, req), kept_of(n)->id);
        driver_finish(req, 0);
}

/* --- for tests --- */

size_t driver_fake_snapshots(const struct driver_fake_world *w)
{
        return w->snapshots.n;
}

bool driver_fake_lose_snapshot(struct driver_fake_world *w, struct str id)
{
        for (struct tree_node *n = tree_nth(&w->snapshots, 0); n;
             n = tree_after(&w->snapshots, n->key))
                if (str_eq(kept_of(n)->id, id)) {
                        kept_free(w, kept_of(n));
                        return true;
                }
        return false;
}

/* --- calls --- */

static int fail_not_found(struct driver_req *req)
{
        return err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox");
}

#define HANDLE_SIZE 48

static struct str handle_of(char storage[static HANDLE_SIZE], uint64_t number)
{
        (void) snprintf(storage, HANDLE_SIZE, "{\"number\":%llu}", (unsigned long long) number);
        return str_from(storage);
}

static void run_create(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct driver_create *c = DRIVER_AS(create, req);
        const struct kept *source = c->record->snapshot_id.p ? find(f, c->record->snapshot_id)
                                                             : NULL;
        char handle[HANDLE_SIZE];
        struct buf text;

        if (fake__entry_get(f, c->record->id))
                return driver_finish(req, err_set(&req->err, ERR_CONFLICT,
                                                  "there is such a sandbox already"));
        if (c->record->snapshot_id.p && (!source || !str_eq(source->tenant, c->record->tenant)))
                return driver_finish(req, err_set(&req->err, ERR_NOT_FOUND,
                                                  "there is no such snapshot"));
        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, c->record);
        c->handle = driver_keep(req, handle_of(handle, f->world->made + 1));
        if (buf_failed(&text) || !c->handle.p) {
                buf_done(&text);
                return driver_finish(req,
                                     err_set(&req->err, ERR_EXHAUSTED, "no memory for a record"));
        }
        (void) fake__entry_new(f, c->record, buf_str(&text));
        return driver_finish(req, 0);
}

static void run_destroy(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct entry *entry = fake__entry_get(f, DRIVER_AS(destroy, req)->record->id);

        if (entry)
                fake__entry_free(f->world, entry);
        driver_finish(req, 0);
}

static int change_status(struct fake *f, struct driver_req *req, int from, int to)
{
        struct entry *entry = fake__entry_get(f, DRIVER_AS(pause, req)->record->id);

        if (!entry)
                return fail_not_found(req);
        if (entry->status != from)
                return err_set(&req->err, ERR_CONFLICT, "the sandbox is %s",
                               runtime_status_to_string(entry->status));
        entry->status = to;
        return 0;
}

static void run_pause(struct driver *d, struct driver_req *req)
{
        driver_finish(req, change_status(fake_of(d), req, RUNTIME_RUNNING, RUNTIME_PAUSED));
}

static void run_resume(struct driver *d, struct driver_req *req)
{
        driver_finish(req, change_status(fake_of(d), req, RUNTIME_PAUSED, RUNTIME_RUNNING));
}

static void run_inspect(struct driver *d, struct driver_req *req)
{
        struct driver_inspect *i = DRIVER_AS(inspect, req);
        struct entry *entry = fake__entry_get(fake_of(d), i->record->id);

        i->health.status = entry ? entry->status : RUNTIME_GONE;
        if (entry && !entry->watched_by)
                entry->watched_by = fake_of(d);
        if (entry && entry->reason)
                i->health.reason = entry->reason;
        if (entry && entry->message)
                i->health.message = driver_keep(req, str_from(entry->message));
        driver_finish(req, 0);
}

/* --- scan: a slice a turn --- */

struct scanning {
        struct net_task task;
        struct fake *f;
        struct driver_req *req;
        struct buf last; /* name of the last entry that was looked at */
};

static void scanning_end(struct scanning *x, int result)
{
        struct driver_req *req = x->req;

        net_task_cancel(&x->task);
        buf_done(&x->last);
        free(x);
        req->_impl = NULL;
        driver_finish(req, result);
}

static void scan_slice(struct net_task *t)
{
        struct scanning *x = container_of(t, struct scanning, task);
        struct driver_scan *s = DRIVER_AS(scan, x->req);
        struct tree *all = &x->f->world->sandboxes;
        struct str prefix = str_from(x->f->prefix);

        for (unsigned i = 0; i < SCAN_SLICE; i++) {
                struct tree_node *n = x->last.n ? tree_after(all, buf_str(&x->last))
                                                : tree_from(all, prefix);
                scoped(sandbox_freep) struct sandbox *record = NULL;
                struct entry *entry = entry_of(n);
                char handle[HANDLE_SIZE];
                struct err e;

                if (!n || !str_starts_with(n->key, prefix))
                        return scanning_end(x, 0);
                buf_reset(&x->last);
                buf_add_str(&x->last, n->key);
                if (sandbox_decode(entry->record, &record, &e) < 0
                    || sandbox_set_handle(record, handle_of(handle, entry->number), &e) < 0) {
                        s->skipped++;
                        continue;
                }
                entry->watched_by = x->f;
                driver_scan_add(s, TAKE_PTR(record), entry->status);
        }
        net_task_queue(x->f->driver.loop, &x->task);
}

static void run_scan(struct driver *d, struct driver_req *req)
{
        struct scanning *x = xnew(struct scanning);

        x->f = fake_of(d);
        x->req = req;
        buf_init(&x->last, FAKE_NAME_SIZE);
        net_task_init(&x->task, scan_slice);
        req->_impl = x;
        net_task_queue(d->loop, &x->task);
}

/* --- further calls --- */

static void run_connect(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct driver_connect *c = DRIVER_AS(connect, req);
        struct entry *entry = fake__entry_get(f, c->record->id);
        int pair[2];

        if (!entry)
                return driver_finish(req, fail_not_found(req));
        if (entry->status != RUNTIME_RUNNING)
                return driver_finish(req, err_set(&req->err, ERR_UNAVAILABLE,
                                                  "its agent does not answer: it is %s",
                                                  runtime_status_to_string(entry->status)));
        if (!entry->server && agent_start(f, entry) < 0)
                return driver_finish(req, err_set(&req->err, ERR_INTERNAL, "bad routes"));
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return driver_finish(req, err_errno(&req->err, -errno, "make a socket pair"));
        c->fd = pair[0];
        http_server_serve(entry->server->http, pair[1]);
        return driver_finish(req, 0);
}

static void run_usage(struct driver *d, struct driver_req *req)
{
        struct driver_usage *u = DRIVER_AS(usage, req);
        struct entry *entry = fake__entry_get(fake_of(d), u->record->id);

        if (!entry)
                return driver_finish(req, fail_not_found(req));
        u->cpu_usec = entry->number;
        u->memory_bytes = entry->record.n;
        u->processes = entry->status == RUNTIME_RUNNING || entry->status == RUNTIME_PAUSED;
        return driver_finish(req, 0);
}

static void run_probe(struct driver *d, struct driver_req *req)
{
        driver_probe_add(DRIVER_AS(probe, req), "runtime", true,
                         "in memory: sandboxes are entries of a table, nothing runs");
        driver_finish(req, 0);
}

static driver_call_fn *const effects[DRIVER_CALL_MAX_] = {
        [DRIVER_CALL_CREATE] = run_create,
        [DRIVER_CALL_DESTROY] = run_destroy,
        [DRIVER_CALL_PAUSE] = run_pause,
        [DRIVER_CALL_RESUME] = run_resume,
        [DRIVER_CALL_INSPECT] = run_inspect,
        [DRIVER_CALL_SCAN] = run_scan,
        [DRIVER_CALL_CONNECT] = run_connect,
        [DRIVER_CALL_USAGE] = run_usage,
        [DRIVER_CALL_PROBE] = run_probe,
        [DRIVER_CALL_SNAPSHOT] = run_snapshot,
        [DRIVER_CALL_SNAPSHOT_REMOVE] = run_snapshot_remove,
        [DRIVER_CALL_SNAPSHOTS] = run_snapshots,
};

/* --- time --- */

void fake__go_on(struct waiting *x)
{
        struct driver_req *req = x->req;
        struct fake *f = x->f;

        net_task_cancel(&x->task);
        list_remove(&x->node);
        free(x);
        req->_impl = NULL;
        effects[req->_call](&f->driver, req);
}

static void waiting_turn(struct net_task *t)
{
        struct waiting *x = container_of(t, struct waiting, task);

        if (x->turns-- > 1)
                net_task_queue(x->f->driver.loop, t);
        else
                fake__go_on(x);
}

static void fake_call(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct driver_fake_world *w = f->world;
        struct waiting *x;

        w->calls[req->_call]++;
        if (!(w->held & 1U << req->_call) && w->delay == 0)
                return effects[req->_call](d, req);

        x = xnew(struct waiting);
        x->f = f;
        x->req = req;
        x->held = w->held & 1U << req->_call;
        x->turns = w->delay;
        net_task_init(&x->task, waiting_turn);
        list_append(&f->waiting, &x->node);
        req->_impl = x;
        if (!x->held)
                net_task_queue(d->loop, &x->task);
}

/* What is not waiting is a scan on its way, or finished. */
static void fake_cancel(struct driver *d, struct driver_req *req)
{
        int r = err_set(&req->err, ERR_CANCELED, "canceled before it had an effect");

        list_for_each (n, &fake_of(d)->waiting) {
                struct waiting *x = container_of(n, struct waiting, node);

                if (x->req != req)
                        continue;
                net_task_cancel(&x->task);
                list_remove(&x->node);
                free(x);
                req->_impl = NULL;
                driver_finish(req, r);
                return;
        }
        scanning_end(req->_impl, r);
}

/* --- life cycle --- */

void fake__close_go_on(struct fake *f)
{
        if (!f->closing || f->servers > 0)
                return;
        net_task_cancel(&f->notify);
        list_remove(&f->node);
        free(f->prefix);
        if (f->owns_world)
                driver_fake_world_free(f->world);
        driver_closed(&f->driver);
}

static void fake_close(struct driver *d)
{
        struct fake *f = fake_of(d);
        struct tree *all = &f->world->sandboxes;

        for (struct tree_node *n = tree_from(all, STR("")); n; n = tree_after(all, n->key)) {
                struct entry *entry = entry_of(n);

                if (entry->watched_by == f) {
                        entry->watched_by = NULL;
                        list_remove(&entry->events);
                }
                if (entry->server && entry->server->f == f)
                        fake__agent_stop(entry);
        }
        f->closing = true;
        fake__close_go_on(f);
}

static const struct driver_ops fake_ops = {
        .name = "fake",
        .calls = {
                [DRIVER_CALL_CREATE] = fake_call,  [DRIVER_CALL_DESTROY] = fake_call,
                [DRIVER_CALL_PAUSE] = fake_call,   [DRIVER_CALL_RESUME] = fake_call,
                [DRIVER_CALL_INSPECT] = fake_call, [DRIVER_CALL_SCAN] = fake_call,
                [DRIVER_CALL_CONNECT] = fake_call, [DRIVER_CALL_USAGE] = fake_call,
                [DRIVER_CALL_PROBE] = fake_call,   [DRIVER_CALL_SNAPSHOT] = fake_call,
                [DRIVER_CALL_SNAPSHOT_REMOVE] = fake_call,
                [DRIVER_CALL_SNAPSHOTS] = fake_call,
        },
        .cancel = fake_cancel,
        .close = fake_close,
};

int driver_fake_open_in(struct driver_fake_world *w, const struct driver_setup *setup,
                        struct driver **ret, struct err *e)
{
        struct fake *f;

        if (setup->installation.n == 0 || setup->installation.n > NAME_MAX_TEXT
            || str_find(setup->installation, '/') >= 0)
                return err_set(e, ERR_INVALID, "the installation has no usable id");
        f = xnew(struct fake);
        f->ops = fake_ops;
        f->ops.caps = w->caps;
        driver_init(&f->driver, &f->ops, setup->loop);
        f->world = w;
        f->prefix = xcalloc(1, setup->installation.n + 2);
        memcpy(f->prefix, setup->installation.p, setup->installation.n);
        f->prefix[setup->installation.n] = '/';
        list_init(&f->waiting);
        list_init(&f->events);
        net_task_init(&f->notify, fake__notify);
        list_append(&w->drivers, &f->node);
        *ret = &f->driver;
        return 0;
}

int driver_fake_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        struct driver_fake_world *w = driver_fake_world_new();
        int r = driver_fake_open_in(w, setup, ret, e);

        if (r < 0)
                driver_fake_world_free(w);
        else
                fake_of(*ret)->owns_world = true;
        return r;
}
