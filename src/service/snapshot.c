/* SPDX-License-Identifier: Apache-2.0 */
#include "service/snapshot_impl.h"

#include "base/base.h"

#define REWRITES_MAX 3

static void snapshot_op_begin(struct snapshot_op *w);
static void remove_from_driver(struct snapshot_op *w);

static const struct snapshot *record_of(const struct snapshot_op *w)
{
        return snapshots_get(w->service->config.registry, str_from(w->id));
}

/* --- requests --- */

/* The record that `done` sees lives until it has returned. */
static void request_done(struct op *op, int result)
{
        struct service_snapshot *x = container_of(op, struct service_snapshot, req.op);
        struct snapshot *kept = TAKE_PTR(x->_snapshot);

        x->snapshot = kept;
        op_unwrap(op, &x->_wrap, result); /* may free x, or start it again */
        snapshot_free(kept);
}

static void cancel_wait(struct op *op)
{
        struct service_req *r = container_of(op, struct service_req, op);
        int result = err_set(&r->err, ERR_CANCELED, "canceled");

        req__finish(r, NULL, result, &r->err);
}

static void request_begin(struct service *s, struct service_snapshot *x)
{
        x->snapshot = NULL;
        x->in_use = false;
        x->_snapshot = NULL;
        op_wrap(&x->req.op, &x->_wrap, request_done);
        req__begin(s, &x->req, cancel_wait);
}

static void notify_waiters(struct snapshot_op *w, int result, const struct err *err)
{
        const struct snapshot *record = record_of(w);

        for (struct list *n; (n = list_first(&w->waiters));) {
                struct service_snapshot *x = container_of(n, struct service_snapshot, req._node);

                if (result == 0 && record && w->kind == SNAPSHOT_OP_TAKE)
                        x->_snapshot = snapshot_copy(record);
                x->in_use = w->kind == SNAPSHOT_OP_DELETE && w->result == ERR_RETURN(ERR_CONFLICT);
                req__finish(&x->req, NULL, result, err);
        }
}

/* --- operations --- */

struct snapshot_op *snapshot_op__new(struct service *s, enum snapshot_op_kind kind, struct str id)
{
        struct snapshot_op *w = xnew(struct snapshot_op);

        w->service = s;
        w->kind = kind;
        memcpy(w->id, id.p, id.n);
        list_init(&w->slot_node);
        list_init(&w->waiters);
        list_append(&s->snapshots.ops, &w->node);
        s->stats.under_way++;
        return w;
}

struct snapshot_op *snapshot_op__of(const struct service *s, struct str id)
{
        list_for_each (n, &s->snapshots.ops) {
                struct snapshot_op *w = container_of(n, struct snapshot_op, node);

                if (str_eq(str_from(w->id), id))
                        return w;
        }
        return NULL;
}

static void snapshot_op_end(struct snapshot_op *w, int result, const struct err *err)
{
        struct service *s = w->service;
        struct list *n;

        notify_waiters(w, result, err);
        list_remove(&w->node);
        list_remove(&w->slot_node);
        s->snapshots.active -= w->counted;
        s->stats.under_way--;
        free(w);
        n = list_first(&s->snapshots.waiting);
        if (n && s->snapshots.active < s->config.snapshots_at_once && s->phase < PHASE_STOPPING) {
                list_remove(n);
                snapshot_op_begin(container_of(n, struct snapshot_op, slot_node));
        }
        service__settle(s);
}

void snapshot_op__start(struct snapshot_op *w)
{
        struct service *s = w->service;

        if (s->snapshots.active < s->config.snapshots_at_once)
                snapshot_op_begin(w);
        else
                list_append(&s->snapshots.waiting, &w->slot_node);
}

/* --- writing --- */

static void written(struct op *op, int result);

static void log_state(const struct snapshot_op *w)
{
        const struct snapshot *record = record_of(w);

        log_fields(w->service->config.log, LOG_INFO, "snapshot state changed",
                   LOG_F_STR("snapshot", record->id), LOG_F_STR("sandbox", record->sandbox_id),
                   LOG_F_STR("state", str_from(snapshot_state_to_string(record->status.state))),
                   LOG_F_STR("reason", record->status.reason),
                   LOG_F_STR("message", record->status.message));
}

static void log_failure(const struct snapshot_op *w, const struct err *e)
{
        log_fields(w->service->config.log, LOG_WARN, "snapshot operation failed, will retry",
                   LOG_F_STR("snapshot", str_from(w->id)),
                   LOG_F_STR("error", str_from(e->message)));
}

static void write_step(struct snapshot_op *w, struct snapshot_step step, op_done_fn *done)
{
        struct service *s = w->service;
        const struct snapshot *record = record_of(w);
        scoped(snapshot_freep) struct snapshot *next = record ? snapshot_copy(record) : NULL;
        int r = next ? 0 : err_set(&w->err, ERR_NOT_FOUND, "there is no such snapshot");

        step.at_ms = (int64_t) (clock_wall(s->config.clock) / USEC_PER_MSEC);
        if (r == 0)
                r = snapshot_change(next, &step, &w->err);
        if (r < 0)
                return snapshot_op_end(w, r, &w->err);
        op_init(&w->write.req.op, done);
        return snapshots_update(s->config.registry, &w->write, TAKE_PTR(next));
}

/* What the driver's result makes of the record. */
static void write_outcome(struct snapshot_op *w)
{
        bool ok = w->result == 0;
        struct str why = ok ? STR_NULL : str_from(w->err.message);
        const struct snapshot_step steps[] = {
                [SNAPSHOT_OP_TAKE] = { ok ? SNAPSHOT_READY : SNAPSHOT_FAILED,
                                       ok ? STR(SNAPSHOT_REASON_READY)
                                          : STR(SNAPSHOT_REASON_FAILED),
                                       why, 0 },
                [SNAPSHOT_OP_DELETE] = { w->was == SNAPSHOT_FAILED ? SNAPSHOT_FAILED
                                                                   : SNAPSHOT_READY,
                                         STR(SNAPSHOT_REASON_IN_USE), why, 0 },
                [SNAPSHOT_OP_UNDO] = { SNAPSHOT_FAILED, STR(SNAPSHOT_REASON_INTERRUPTED),
                                       STR("it was interrupted and has been undone"), 0 },
                [SNAPSHOT_OP_GONE] = { SNAPSHOT_FAILED, STR(SNAPSHOT_REASON_GONE),
                                       STR("the runtime no longer has it"), 0 },
        };

        write_step(w, steps[w->kind], written);
}

static void written(struct op *op, int result)
{
        struct snapshot_op *w = container_of(op, struct snapshot_op, write.req.op);

        w->service->snapshots.changes++;
        if (result == ERR_RETURN(ERR_CONFLICT) && w->rewrites++ < REWRITES_MAX)
                return write_outcome(w);
        if (result < 0) {
                log_failure(w, &w->write.req.err);
                return snapshot_op_end(w, result, &w->write.req.err);
        }
        log_state(w);
        return snapshot_op_end(w, w->kind == SNAPSHOT_OP_DELETE ? w->result : 0, &w->err);
}

/* --- taking --- */

/* The operation on the sandbox has ended. A server that stops leaves the record as it is: the next start undoes it. */
static void taken(struct sandbox_op *o)
{
        struct snapshot_op *w = o->ended_data;

        w->result = o->result;
        w->err = o->err;
        if (w->result < 0 && w->service->phase >= PHASE_STOPPING)
                return snapshot_op_end(w, w->result, &w->err);
        return write_outcome(w);
}

static void snapshot_op_begin(struct snapshot_op *w)
{
        struct service *s = w->service;
        const struct sandbox *sandbox;
        struct sandbox_ctl *ctl;
        struct sandbox_op *o;

        w->counted = true;
        s->snapshots.active++;
        if (w->kind == SNAPSHOT_OP_GONE)
                return write_outcome(w);
        if (w->kind != SNAPSHOT_OP_TAKE)
                return remove_from_driver(w);
        sandbox = registry_peek(s->config.registry, record_of(w)->sandbox_id);
        ctl = sandbox ? sandbox_ctl__obtain(s, sandbox->id) : NULL;
        if (!ctl || ctl->n_ops >= SANDBOX_OPS_MAX) {
                w->result = ctl ? err_set(&w->err, ERR_UNAVAILABLE,
                                          "too many commands wait for this sandbox")
                                : err_set(&w->err, ERR_NOT_FOUND,
                                          "the sandbox was deleted before the snapshot was taken");
                return write_outcome(w);
        }
        o = sandbox_op__new(s, ctl, COMMAND_SNAPSHOT);
        memcpy(o->snapshot_id, w->id, sizeof(w->id));
        o->ended = taken;
        o->ended_data = w;
        return sandbox_op__start(o);
}

static void registered(struct op *op, int result)
{
        struct snapshot_op *w = container_of(op, struct snapshot_op, write.req.op);

        w->service->snapshots.changes++;
        if (result < 0)
                return snapshot_op_end(w, result, &w->write.req.err);
        log_state(w);
        notify_waiters(w, 0, NULL);
        return snapshot_op__start(w);
}

/* Including those whose record is being written. */
static size_t count_snapshots(const struct service *s, struct str tenant)
{
        size_t sum = snapshots_count(s->config.registry, tenant);

        list_for_each (n, &s->snapshots.ops) {
                const struct snapshot_op *w = container_of(n, struct snapshot_op, node);

                sum += w->kind == SNAPSHOT_OP_TAKE && !record_of(w)
                       && (!tenant.p || str_eq(str_from(w->tenant), tenant));
        }
        return sum;
}

static int check_source(const struct service *s, const struct sandbox *sandbox, struct err *e)
{
        const struct driver *d = service__driver(s, sandbox->driver);
        uint64_t quota = tenants_snapshot_quota(&s->tenants, sandbox->tenant);

        if (!d)
                return err_set(e, ERR_UNAVAILABLE,
                               "the driver of this sandbox is not enabled on this server");
        if (!driver_can(d, DRIVER_SNAPSHOT))
                return driver_require(d, DRIVER_SNAPSHOT, e);
        if (sandbox->status.state != STATE_RUNNING)
                return err_set(e, ERR_CONFLICT,
                               "the sandbox is %s; snapshots need a Running sandbox",
                               state_to_string(sandbox->status.state));
        if (count_snapshots(s, STR_NULL) >= s->config.snapshots_max)
                return err_set(e, ERR_EXHAUSTED,
                               "this server has its maximum of %u snapshots; delete some first",
                               s->config.snapshots_max);
        if (quota && count_snapshots(s, sandbox->tenant) >= quota)
                return err_set(e, ERR_EXHAUSTED,
                               "the tenant's quota of %llu snapshots is used up; delete some first",
                               (unsigned long long) quota);
        return 0;
}

void service_create_snapshot(struct service *s, struct service_snapshot *x)
{
        const struct sandbox *sandbox = NULL;
        struct snapshot *record = NULL;
        struct err *e = &x->req.err;
        char id[ID_UUID_LEN + 1];
        struct snapshot_op *w;
        int r;

        request_begin(s, x);
        r = service__ready(s, e);
        if (r == 0) {
                sandbox = service_find(s, x->caller, x->id);
                r = sandbox ? check_source(s, sandbox, e) : service__not_found(e);
        }
        if (r == 0 && sandbox) {
                ids_uuid(s->config.ids, id);
                r = snapshot_make(
                        &(struct snapshot_facts){
                                .id = str_from(id),
                                .sandbox_id = sandbox->id,
                                .name = x->name,
                                .tenant = sandbox->tenant,
                                .node = s->config.node,
                                .driver = sandbox->driver,
                                .now_ms = (int64_t) (clock_wall(s->config.clock) / USEC_PER_MSEC) },
                        &record, e);
        }
        if (r < 0 || !sandbox)
                return req__finish(&x->req, NULL, r, e);
        w = snapshot_op__new(s, SNAPSHOT_OP_TAKE, str_from(id));
        memcpy(w->tenant, sandbox->tenant.p, sandbox->tenant.n); /* snapshot_make has checked it */
        list_append(&w->waiters, &x->req._node);
        op_init(&w->write.req.op, registered);
        return snapshots_add(s->config.registry, &w->write, record);
}

/* --- removing --- */

static void forgotten(struct op *op, int result)
{
        struct snapshot_op *w = container_of(op, struct snapshot_op, write.req.op);

        w->service->snapshots.changes++;
        if (result < 0)
                log_failure(w, &w->write.req.err);
        else
                log_fields(w->service->config.log, LOG_INFO, "snapshot deleted",
                           LOG_F_STR("snapshot", str_from(w->id)));
        snapshot_op_end(w, result, &w->write.req.err);
}

static void removed(struct op *op, int result)
{
        struct snapshot_op *w = container_of(op, struct snapshot_op, removing.req.op);

        w->result = result;
        w->err = w->removing.req.err;
        if (result < 0 && (w->kind != SNAPSHOT_OP_DELETE || result != ERR_RETURN(ERR_CONFLICT))) {
                log_failure(w, &w->err);
                return snapshot_op_end(w, result, &w->err);
        }
        if (w->kind == SNAPSHOT_OP_SWEEP)
                return snapshot_op_end(w, 0, NULL);
        if (w->kind != SNAPSHOT_OP_DELETE || result < 0)
                return write_outcome(w);
        op_init(&w->write.req.op, forgotten);
        return snapshots_remove(w->service->config.registry, &w->write, str_from(w->id));
}

static void remove_from_driver(struct snapshot_op *w)
{
        op_init(&w->removing.req.op, removed);
        driver_start(w->driver, driver_snapshot_remove_req(&w->removing, str_from(w->id)));
}

static void intent_written(struct op *op, int result)
{
        struct snapshot_op *w = container_of(op, struct snapshot_op, write.req.op);

        w->service->snapshots.changes++;
        if (result < 0)
                return snapshot_op_end(w, result, &w->write.req.err);
        return remove_from_driver(w);
}

void service_delete_snapshot(struct service *s, struct service_snapshot *x)
{
        static const struct snapshot_step deleting = { .state = SNAPSHOT_DELETING,
                                                       .reason = STR(SNAPSHOT_REASON_DELETING) };
        const struct snapshot *record;
        struct err *e = &x->req.err;
        struct snapshot_op *w;
        struct driver *d;
        int r;

        request_begin(s, x);
        r = service__ready(s, e);
        record = r == 0 ? service_find_snapshot(s, x->caller, x->id) : NULL;
        d = record ? service__driver(s, record->driver) : NULL;
        w = record ? snapshot_op__of(s, record->id) : NULL;
        if (w && w->kind == SNAPSHOT_OP_DELETE)
                return list_append(&w->waiters, &x->req._node);
        if (r == 0 && !record)
                r = err_set(e, ERR_NOT_FOUND, "there is no such snapshot");
        else if (r == 0 && (w || record->status.state == SNAPSHOT_CREATING))
                r = err_set(e, ERR_CONFLICT,
                            "the snapshot is being created; wait until it is Ready or Failed");
        else if (r == 0 && !d)
                r = err_set(e, ERR_UNAVAILABLE,
                            "the driver of this snapshot is not enabled on this server");
        if (r < 0 || !record)
                return req__finish(&x->req, NULL, r, e);
        w = snapshot_op__new(s, SNAPSHOT_OP_DELETE, record->id);
        w->driver = d;
        w->was = record->status.state;
        list_append(&w->waiters, &x->req._node);
        if (record->status.state == SNAPSHOT_DELETING)
                return remove_from_driver(w);
        return write_step(w, deleting, intent_written);
}

/* --- queries --- */

const struct snapshot *service_find_snapshot(const struct service *s, const struct caller *caller,
                                             struct str id)
{
        const struct snapshot *x = snapshots_get(s->config.registry, id);

        return x && (caller->all_tenants || str_eq(x->tenant, caller->tenant)) ? x : NULL;
}

void service_list_snapshots(const struct service *s, const struct caller *caller,
                            const struct snapshots_query *q, struct snapshots_page *ret)
{
        struct snapshots_query own = *q;

        if (!caller->all_tenants)
                own.tenant = caller->tenant;
        snapshots_list(s->config.registry, &own, ret);
}

/* --- stopping --- */

void snapshot__stop(struct service *s)
{
        struct err e;
        int r = err_set(&e, ERR_UNAVAILABLE, "the server is stopping");

        snapshot__stop_reconciles(s);
        list_for_each (n, &s->snapshots.waiting) {
                list_remove(n);
                snapshot_op_end(container_of(n, struct snapshot_op, slot_node), r, &e);
        }
        list_for_each (n, &s->snapshots.ops) {
                struct op *removing = &container_of(n, struct snapshot_op, node)->removing.req.op;

                if (op_pending(removing))
                        op_cancel(removing); /* `done` comes from the loop */
        }
}
