/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of every command:
 *
 *         turn ─► pen ─► decide ─► write ─► give the pen ─► ask the driver ─┐
 *                  ▲                          │                             │
 *                  └──────────────────────────┼─────────────────────────────┘
 *                                             └─► end: tell, settle, give the turn
 */

#include "service/service_impl.h"

#include "base/base.h"

static void sandbox_op_end(struct sandbox_op *j);
static void decide_step(struct sandbox_op *j);

#define REWRITES_MAX 3

/* --- life --- */

struct sandbox_op *sandbox_op__new(struct service *s, struct sandbox_ctl *p, enum command c)
{
        struct sandbox_op *j = xnew(struct sandbox_op);

        j->service = s;
        j->ctl = p;
        j->args.command = c;
        list_init(&j->lock_node);
        list_init(&j->record_node);
        list_init(&j->gate);
        list_init(&j->waiters);
        list_append(&s->ops, &j->all);
        p->n_ops++;
        p->n_preempting += command_preempts(c);
        s->stats.under_way++;
        return j;
}

static void creation_free(struct service *s, struct creation *c)
{
        if (!c)
                return;
        deadline_clear(&s->schedule, &c->answer_by);
        request_copy_done(&c->copy);
        sandbox_free(c->record);
        free(c);
}

static void sandbox_op_free(struct sandbox_op *j)
{
        creation_free(j->service, j->creation);
        sandbox_free(j->found);
        sandbox_free(j->last);
        arena_done(&j->memory);
        free(j->handle);
        free(j);
}

void sandbox_op__notify(struct sandbox_op *j, int result, const struct err *err)
{
        for (struct list *n; (n = list_first(&j->waiters));) {
                struct service_req *r = container_of(n, struct service_req, _node);

                if (j->creation && result == ERR_RETURN(ERR_EXISTS))
                        memcpy(container_of(r, struct service_create, req)->other_id,
                               j->creation->other_id, sizeof(j->creation->other_id));
                req__finish(r, j->ctl, result, err);
        }
}

/* The order matters: the place is settled while its other jobs keep it, and the next one may end
 * and free it. */
static void sandbox_op_end(struct sandbox_op *j)
{
        struct service *s = j->service;
        struct sandbox_ctl *p = j->ctl;
        bool had_lock = p->current == j, more;

        sandbox_op__notify(j, j->result, &j->err);
        if (j->creation)
                j->creation->registering = false;
        if (had_lock && j->decision.next != NEXT_LATER)
                p->failures = 0;
        list_remove(&j->all);
        list_remove(&j->lock_node);
        list_remove(&j->record_node);
        p->n_ops--;
        p->n_preempting -= command_preempts(j->args.command);
        s->stats.under_way--;
        if (had_lock)
                p->current = NULL;
        more = had_lock && !list_empty(&p->waiting);
        if (j->ended)
                j->ended(j);
        driver_call__end(j);
        sandbox_op_free(j);
        sandbox_ctl__settle(p);
        if (more)
                op_lock__release(p);
        service__settle(s);
}

void sandbox_op__drop(struct sandbox_op *j, int result, const struct err *err)
{
        ASSERT(!j->begun);
        j->result = result;
        if (result < 0)
                j->err = *err;
        sandbox_op_end(j);
}

void sandbox_op__cancel_wait(struct op *op)
{
        struct service_req *r = container_of(op, struct service_req, op);
        struct sandbox_op *j = r->_impl;
        int result = err_set(&r->err, ERR_CANCELED, "canceled");

        req__finish(r, NULL, result, &r->err);
        if (!j->begun && list_empty(&j->waiters) && j->args.command != COMMAND_DELETE)
                sandbox_op__drop(j, 0, NULL);
}

void sandbox_op__wait(struct sandbox_op *j, struct service_req *r)
{
        r->_impl = j;
        list_append(&j->waiters, &r->_node);
}

void sandbox_op__start(struct sandbox_op *j)
{
        if (command_only_writes(j->args.command))
                record_lock__acquire(j, decide_step);
        else
                op_lock__acquire(j);
}

/* --- what was written --- */

static void log_change(const struct service *s, const char *what, const struct sandbox *record)
{
        log_fields(s->config.log, LOG_INFO, what, LOG_F_STR("sandbox", record->id),
                   LOG_F_STR("state", str_from(state_to_string(record->status.state))),
                   LOG_F_STR("reason", record->status.reason),
                   LOG_F_STR("message", record->status.message));
}

static void tell_change(struct sandbox_op *j, const char *type, const struct sandbox *record)
{
        struct service *s = j->service;
        usec_t at = clock_wall(s->config.clock);

        log_change(s, type, record);
        history_add(&j->ctl->history, type, at, record);
        events_notify(&s->events, type, at, record);
}

static void count_create(struct service *s, const struct creation *c)
{
        usec_t took = clock_mono(s->config.clock) - c->began;
        size_t i = 0;

        while (i + 1 < SERVICE_CREATE_BUCKETS && took > service_create_bounds[i])
                i++;
        s->stats.create_buckets[i]++;
        s->stats.create_usec += took;
}

static void count_change(const struct sandbox_op *j)
{
        struct service_stats *stats = &j->service->stats;
        enum command c = j->args.command;
        enum state to = j->decision.step.state;

        if (!j->decision.changes) {
                stats->renewed += j->decision.renews && c != COMMAND_RECONCILE;
                return;
        }
        if (c == COMMAND_CREATE && to == STATE_RUNNING) {
                stats->creates++;
                count_create(j->service, j->creation);
        } else if (c == COMMAND_CREATE) {
                stats->create_failures++;
        } else if (c == COMMAND_EXPIRE && to == STATE_STOPPING) {
                stats->expired++;
        } else if (c == COMMAND_RECONCILE && state_is_final(to)
                   && !str_eq(j->decision.step.reason, STR(REASON_EXPIRED))) {
                stats->died++;
        }
}

/* --- the steps; from decide_step to go_on with the pen --- */

static void go_on(struct sandbox_op *j);

/* A store without room is our trouble, not a quota of the caller's: he gets no further by asking for
 * less. */
static void keep_write_error(struct sandbox_op *j, int result, const struct err *err)
{
        if (j->result < 0)
                return;
        j->err = *err;
        if (err->code == ERR_EXHAUSTED)
                j->err.code = ERR_INTERNAL;
        (void) err_wrap(&j->err, "store the sandbox");
        j->result = err->code == ERR_EXHAUSTED ? ERR_RETURN(ERR_INTERNAL) : result;
}

static void unregistered(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.remove.req.op);

        if (result < 0) {
                keep_write_error(j, result, &j->write.req.err);
                j->decision = decide_unwritten(&j->args, &j->call_result);
                return go_on(j);
        }
        j->service->stats.deletes += j->args.command == COMMAND_DELETE;
        tell_change(j, "sandbox.deleted", j->last);
        record_lock__release(j->ctl);
        return sandbox_op_end(j);
}

static void unregister(struct sandbox_op *j)
{
        const struct sandbox *record = sandbox_ctl__record(j->ctl);

        j->last = record ? sandbox_copy(record) : NULL;
        if (!j->last) { /* it has gone by itself */
                record_lock__release(j->ctl);
                return sandbox_op_end(j);
        }
        op_init(&j->write.remove.req.op, unregistered);
        return registry_unregister(j->service->config.registry, &j->write.remove,
                                   j->ctl->by_id.key);
}

static void log_failure(const struct sandbox_op *j)
{
        const struct err *e = j->result < 0 ? &j->err : &j->first_err;

        log_fields(j->service->config.log, LOG_WARN, "to be tried again",
                   LOG_F_STR("sandbox", j->ctl->by_id.key),
                   LOG_F_STR("command", str_from(command_to_string((int) j->args.command))),
                   LOG_F_STR("error", str_from(e->message)));
}

static void go_on(struct sandbox_op *j)
{
        switch (j->decision.next) {
        case NEXT_CALL:
                record_lock__release(j->ctl);
                return driver_call__start(j);
        case NEXT_AGAIN:
                return decide_step(j);
        case NEXT_UNREGISTER:
                return unregister(j);
        case NEXT_LATER:
                log_failure(j);
                sandbox_ctl__retry(j->ctl);
                record_lock__release(j->ctl);
                return sandbox_op_end(j);
        case NEXT_DONE:
        case NEXT_REFUSE:
        default:
                record_lock__release(j->ctl);
                return sandbox_op_end(j);
        }
}

static void fail_write(struct sandbox_op *j, int result, const struct err *err)
{
        keep_write_error(j, result, err);
        j->decision = decide_unwritten(&j->args, j->has_call_result ? &j->call_result : NULL);
        go_on(j);
}

static void written(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.update.req.op);
        struct sandbox_ctl *p = j->ctl;

        /* An earlier write that seemed to have failed did not; what is true is known now. */
        if (result == ERR_RETURN(ERR_CONFLICT) && j->rewrites++ < REWRITES_MAX)
                return decide_step(j);
        if (result < 0)
                return fail_write(j, result, &j->write.req.err);
        count_change(j);
        if (j->decision.event)
                tell_change(j, j->decision.event, sandbox_ctl__record(p));
        sandbox_ctl__settle(p);
        /* What has failed is known; what still is to be cleared away need not be waited for. */
        if (j->decision.fails)
                sandbox_op__notify(j, j->result, &j->err);
        return go_on(j);
}

static int apply(struct sandbox_op *j, struct sandbox *next, struct err *e)
{
        const struct decision *d = &j->decision;
        struct str notes = j->handle ? str_from(j->handle) : STR_NULL;
        int r = 0;

        if (d->changes)
                r = sandbox_change(next, &d->step, e);
        if (r == 0 && d->explains)
                r = status_explain(&next->status, &next->arena, d->step.reason, d->step.message, e);
        if (r == 0 && d->renews)
                r = sandbox_set_expiry(next, &d->expiry, e);
        if (r == 0 && d->sets_handle)
                r = sandbox_set_handle(next, j->found ? j->found->handle : notes, e);
        if (r == 0 && d->patches)
                r = sandbox_patch_metadata(next, &j->patch, e);
        /* A tombstone does not keep its owner from having another sandbox. */
        if (state_is_final((enum state) next->status.state))
                next->owner_bound = false;
        return r;
}

static void write_record(struct sandbox_op *j, const struct sandbox *record)
{
        struct sandbox *next = sandbox_copy(record);
        struct err e;
        int r = next ? apply(j, next, &e) : err_set(&e, ERR_TOO_LARGE, "no memory for the record");

        if (r < 0)
                sandbox_free(next);
        if (r < 0 && command_only_writes(j->args.command)) {
                j->result = r; /* what the caller wanted does not fit */
                j->err = e;
                j->decision = (struct decision){ .next = NEXT_DONE };
                return go_on(j);
        }
        if (r < 0) {
                e.code = ERR_INTERNAL; /* what the driver gave does not */
                return fail_write(j, ERR_RETURN(ERR_INTERNAL), &e);
        }
        op_init(&j->write.update.req.op, written);
        return registry_update(j->service->config.registry, &j->write.update, next);
}

static void decide_step(struct sandbox_op *j)
{
        struct service *s = j->service;
        const struct sandbox *record = sandbox_ctl__record(j->ctl);
        struct timestamp now = service__now(s);
        struct driver *driver = record ? service__driver(s, record->driver) : NULL;
        struct decision *d = &j->decision;

        j->begun = true;
        j->args.caps = driver ? driver_caps(driver) : 0;
        *d = decide(&now, record, &j->args, j->has_call_result ? &j->call_result : NULL);
        if (d->next == NEXT_REFUSE) {
                j->err = d->err;
                j->result = ERR_RETURN(d->err.code);
                return go_on(j);
        }
        if (d->fails && j->result == 0 && j->has_first_err) {
                j->err = j->first_err;
                j->result = ERR_RETURN(j->first_err.code);
        }
        if (d->changes || d->renews || d->patches || d->explains)
                return write_record(j, record);
        if (d->event && record)
                tell_change(j, d->event, record);
        return go_on(j);
}

/* Found in the runtime, and no record of it. */
static bool is_unknown(const struct sandbox_op *j)
{
        return j->found && !sandbox_ctl__record(j->ctl);
}

static void looked_again(struct sandbox_op *j);
static void cleared_away(struct sandbox_op *j);

void sandbox_op__driver_done(struct sandbox_op *j)
{
        if (is_unknown(j))
                return j->call_result.call == CALL_DESTROY ? cleared_away(j) : looked_again(j);
        j->has_call_result = true;
        if (j->call_result.result < 0 && !j->has_first_err) {
                j->has_first_err = true;
                j->first_err = j->call_err;
        }
        return record_lock__acquire(j, decide_step);
}

void sandbox_op__cancel_call(struct sandbox_op *j, enum err_code code, const char *why)
{
        enum command c = j->args.command;

        if (c != COMMAND_CREATE && c != COMMAND_PAUSE && c != COMMAND_RESUME)
                return;
        j->cancel_code = code;
        j->cancel_why = why;
        if (j->call_op && j->decision.call != CALL_DESTROY)
                op_cancel(j->call_op);
}

/* --- how a create begins --- */

static void registered(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.add.req.op);

        j->creation->registering = false;
        if (result < 0) {
                keep_write_error(j, result, &j->write.req.err);
                memcpy(j->creation->other_id, j->write.add.other_id, sizeof(j->creation->other_id));
                j->decision = (struct decision){ .next = NEXT_DONE };
                return go_on(j);
        }
        tell_change(j, "sandbox.created", sandbox_ctl__record(j->ctl));
        sandbox_ctl__settle(j->ctl);
        return decide_step(j);
}

static void register_record(struct sandbox_op *j)
{
        op_init(&j->write.add.req.op, registered);
        registry_register(j->service->config.registry, &j->write.add,
                          TAKE_PTR(j->creation->record));
}

/* --- how something that was found begins --- */

/*
 * On a store that several nodes share, one whose record is somebody else's was given up while this node was
 * away; and one whose owner has another by now is one too many. Both go: nobody has an owner's sandbox twice. Anything
 * else that keeps it from being registered leaves it alone.
 */
static void let_be(struct sandbox_op *j)
{
        j->decision = (struct decision){ .next = NEXT_DONE };
        return go_on(j);
}

static void clear_away(struct sandbox_op *j, struct str why)
{
        log_fields(j->service->config.log, LOG_WARN,
                   "a sandbox that was given up while this node was away is removed",
                   LOG_F_STR("sandbox", j->found->id), LOG_F_STR("reason", why));
        j->decision = (struct decision){ .next = NEXT_CALL, .call = CALL_DESTROY };
        return go_on(j);
}

static void owner_asked(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.get.req.op);

        if (result == 0 && !str_eq(j->write.get.record->id, j->found->id))
                return clear_away(j, STR("its owner has another"));
        return let_be(j);
}

static void record_asked(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.get.req.op);

        if (result == 0 && remote_node__has(j->service, j->write.get.record))
                return clear_away(j, STR("its record is another node's"));
        if (result != ERR_RETURN(ERR_NOT_FOUND) || !j->found->owner_bound)
                return let_be(j);
        memset(&j->write, 0, sizeof(j->write));
        op_init(&j->write.get.req.op, owner_asked);
        j->write.get.unlocked = true;
        registry_find_by_owner(j->service->config.registry, &j->write.get, &j->found->owner);
}

static void was_it_given_up(struct sandbox_op *j)
{
        /* Of another name that this node had: then nobody has said anything about it. */
        if (!str_eq(j->found->node, j->service->config.node))
                return let_be(j);
        memset(&j->write, 0, sizeof(j->write));
        op_init(&j->write.get.req.op, record_asked);
        registry_get(j->service->config.registry, &j->write.get, j->found->id);
}

static void cleared_away(struct sandbox_op *j)
{
        if (j->call_result.result < 0)
                (void) log_err(j->call_result.result, j->service->config.log,
                               "cannot remove a sandbox that was given up: %s",
                               j->call_err.message);
        j->decision = (struct decision){ .next = NEXT_DONE };
        return sandbox_op_end(j);
}

static void found_registered(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, write.reconcile.req.op);

        if (result == 0 && j->write.reconcile.added > 0) {
                tell_change(j, "sandbox.found", sandbox_ctl__record(j->ctl));
                sandbox_ctl__settle(j->ctl);
                return decide_step(j);
        }
        if (result < 0)
                (void) log_err(result, j->service->config.log,
                               "cannot register a sandbox that was found: %s",
                               j->write.req.err.message);
        return result == 0 && service_is_shared(j->service) ? was_it_given_up(j) : let_be(j);
}

/* Nobody knows it, but the runtime has it, whole. */
static void register_found(struct sandbox_op *j)
{
        memset(&j->write, 0, sizeof(j->write));
        j->found_list[0] = j->found;
        op_init(&j->write.reconcile.req.op, found_registered);
        registry_reconcile(j->service->config.registry, &j->write.reconcile, j->found_list, 1);
}

/* Scans are old when they are told: what was deleted meanwhile must not come back. In its turn the
 * driver's word holds. */
static void look_again(struct sandbox_op *j)
{
        j->decision = (struct decision){ .next = NEXT_CALL, .call = CALL_INSPECT };
        driver_call__start(j);
}

static void looked_again(struct sandbox_op *j)
{
        if (j->call_result.result < 0 || j->call_result.health.life == RUNTIME_GONE) {
                j->decision = (struct decision){ .next = NEXT_DONE };
                return sandbox_op_end(j);
        }
        j->args.health_known = true;
        j->args.health = j->call_result.health;
        return record_lock__acquire(j, register_found);
}

void sandbox_op__run(struct sandbox_op *j)
{
        j->begun = true;
        if (j->creation)
                return record_lock__acquire(j, register_record);
        if (!is_unknown(j))
                return record_lock__acquire(j, decide_step);
        return j->args.health_known ? record_lock__acquire(j, register_found) : look_again(j);
}
