/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: how a command on one sandbox is carried out.
 *
 * The problem: a command is a few writes to a store and a few calls to a driver. Each of them takes its time, may
 * fail, and hutchd may be killed between any two. Meanwhile other commands for the same sandbox arrive, and the
 * client that asked may go away.
 *
 * The invariants:
 *
 *   - The record says what may be in the runtime. An intent (Pending, Pausing, Resuming, Stopping) is durable
 *     before the driver is called, so after a crash reconcile knows what was under way.
 *   - At most one operation per sandbox talks to the driver: the one with the operation lock. It is held from
 *     sandbox_op__start to sandbox_op__finish.
 *   - At most one operation per sandbox writes the record: the one with the record lock. It is held from the
 *     decision to the end of the write, not during a driver call. So a renewal, which only writes, need not wait
 *     until a driver has pulled an image.
 *   - All rules are in decide(). This file only carries out decisions, in a fixed order:
 *
 *         operation lock ─► record lock ─► decide ─► write ─► release record lock ─► call the driver ─┐
 *                               ▲                      │                                              │
 *                               └──────────────────────┼──────────────────────────────────────────────┘
 *                                                      └─► end: notify waiters, settle, release operation lock
 *
 * An operation owns its memory and outlives its requests. A request that is canceled leaves; the operation goes on,
 * unless it has not begun and no one is left to wait for it (a delete always goes on).
 *
 * Failures: a write that fails before the driver was called ends the command, because nothing has happened. After
 * the call, decide_unwritten says how to go on: a sandbox that was just created is destroyed again, everything else
 * is left to reconcile, which is scheduled with exponential backoff.
 *
 * Crash: whatever is in memory here is lost. The record and the runtime are what is left; reconcile.c brings them
 * together again.
 */

#include "service/service_impl.h"

#include "base/base.h"

static void sandbox_op_continue(struct sandbox_op *o);

#define REWRITES_MAX 3

/* --- life cycle --- */

struct sandbox_op *sandbox_op__new(struct service *s, struct sandbox_ctl *ctl, enum command c)
{
        struct sandbox_op *o = xnew(struct sandbox_op);

        o->service = s;
        o->ctl = ctl;
        o->args.command = c;
        list_init(&o->lock_node);
        list_init(&o->record_node);
        list_init(&o->throttled);
        list_init(&o->waiters);
        list_append(&s->ops, &o->all);
        ctl->n_ops++;
        ctl->n_preempting += command_preempts(c);
        s->stats.under_way++;
        return o;
}

void sandbox_op__notify(struct sandbox_op *o, int result, const struct err *err)
{
        for (struct list *n; (n = list_first(&o->waiters));) {
                struct service_req *r = container_of(n, struct service_req, _node);

                if (o->creation && result == ERR_RETURN(ERR_EXISTS))
                        memcpy(container_of(r, struct service_create, req)->other_id,
                               o->creation->other_id, sizeof(o->creation->other_id));
                req__prepare(r, o->ctl, result, err);
                op_finish(&r->op, result);
        }
}

/* The order matters: the controller is settled while other operations still keep it, and the operation that gets
 * the lock next may end and free it. */
void sandbox_op__finish(struct sandbox_op *o)
{
        struct service *s = o->service;
        struct sandbox_ctl *ctl = o->ctl;
        struct sandbox_op *next = NULL;
        struct list *n;

        if (ctl->writer == o)
                record_lock__release(ctl);
        sandbox_op__notify(o, o->result, &o->err);
        list_remove(&o->all);
        list_remove(&o->lock_node);
        list_remove(&o->record_node);
        ctl->n_ops--;
        ctl->n_preempting -= command_preempts(o->args.command);
        s->stats.under_way--;
        if (ctl->current == o) {
                if (o->decision.next != NEXT_LATER)
                        ctl->failures = 0;
                n = list_first(&ctl->waiting);
                next = n ? container_of(n, struct sandbox_op, lock_node) : NULL;
                if (next)
                        list_remove(&next->lock_node);
                ctl->current = next;
        }
        if (o->ended)
                o->ended(o);
        driver_call__end(o);
        if (o->creation)
                deadline_clear(&s->schedule, &o->creation->answer_by);
        creation__freep(&o->creation);
        sandbox_free(o->found);
        sandbox_free(o->last);
        arena_done(&o->memory);
        free(o->handle);
        free(o);
        sandbox_ctl__settle(ctl);
        if (next)
                sandbox_op__start(next);
        service__settle(s);
}

void sandbox_op__cancel_wait(struct op *op)
{
        struct service_req *r = container_of(op, struct service_req, op);
        struct sandbox_op *o = r->_impl;
        int result = err_set(&r->err, ERR_CANCELED, "canceled");

        req__finish(r, NULL, result, &r->err);
        if (!o->begun && list_empty(&o->waiters) && o->args.command != COMMAND_DELETE)
                sandbox_op__finish(o);
}

void sandbox_op__wait(struct sandbox_op *o, struct service_req *r)
{
        r->_impl = o;
        list_append(&o->waiters, &r->_node);
}

/* --- the locks --- */

/* Another operation has the operation lock. One that preempts goes in front of all but those that preempt as well, which
 * came first, and whatever can be canceled ends early. driver_call__expedite comes last: a driver that refuses at once
 * ends the current operation, and the lock has been passed on when it returns. */
static void op_lock_wait(struct sandbox_op *o)
{
        struct sandbox_ctl *ctl = o->ctl;
        struct sandbox_op *current = ctl->current;
        enum command c = current->args.command;
        struct list *before = ctl->waiting.next;

        if (!command_preempts(o->args.command)) {
                list_append(&ctl->waiting, &o->lock_node);
                return driver_call__expedite(current);
        }
        while (before != &ctl->waiting
               && command_preempts(
                       container_of(before, struct sandbox_op, lock_node)->args.command))
                before = before->next;
        list_insert_before(before, &o->lock_node);
        current->args.preempted = true;
        if (c == COMMAND_CREATE || c == COMMAND_PAUSE || c == COMMAND_RESUME) {
                current->cancel_code = ERR_CONFLICT;
                current->cancel_why = o->args.command == COMMAND_EXPIRE
                                              ? "the sandbox expired meanwhile"
                                              : "the sandbox was deleted meanwhile";
                if (current->call_op && current->decision.call != CALL_DESTROY)
                        op_cancel(current->call_op);
        }
        return driver_call__expedite(current);
}

/* A sandbox without a record is registered first: a new one, or one that reconcile has found, if the scan is current or
 * the driver confirms it (adopt.c). */
void sandbox_op__start(struct sandbox_op *o)
{
        struct sandbox_ctl *ctl = o->ctl;
        bool adopts = adopt__is(o);

        if (!command_only_writes(o->args.command)) {
                if (ctl->current && ctl->current != o) /* else the lock was passed on to it */
                        return op_lock_wait(o);
                ctl->current = o;
                o->begun = true;
                if (adopts && !o->args.health_known) {
                        o->decision = (struct decision){ .next = NEXT_CALL, .call = CALL_INSPECT };
                        return driver_call__start(o);
                }
                o->registers |= adopts;
        }
        if (record_lock__acquire(o))
                sandbox_op__decide(o);
}

bool record_lock__acquire(struct sandbox_op *o)
{
        struct sandbox_ctl *ctl = o->ctl;

        if (ctl->writer)
                list_append(&ctl->writers, &o->record_node);
        else
                ctl->writer = o;
        return ctl->writer == o;
}

void record_lock__release(struct sandbox_ctl *ctl)
{
        struct list *n = list_first(&ctl->writers);

        ctl->writer = NULL;
        if (!n)
                return;
        list_remove(n);
        ctl->writer = container_of(n, struct sandbox_op, record_node);
        sandbox_op__decide(ctl->writer);
}

/* --- after a write --- */

/* Logs the change, adds it to the history, and notifies listeners. */
static void record_changed(struct sandbox_op *o, const char *event, const struct sandbox *record)
{
        struct service *s = o->service;
        usec_t at = clock_wall(s->config.clock);

        log_fields(s->config.log, LOG_INFO, event, LOG_F_STR("sandbox", record->id),
                   LOG_F_STR("state", str_from(state_to_string(record->status.state))),
                   LOG_F_STR("reason", record->status.reason),
                   LOG_F_STR("message", record->status.message));
        history_add(&o->ctl->history, event, at, record);
        events_notify(&s->events, event, at, record);
}

static void count_change(const struct sandbox_op *o)
{
        struct service_stats *stats = &o->service->stats;
        enum command c = o->args.command;
        enum state to = o->decision.step.state;

        if (!o->decision.changes) {
                stats->renewed += o->decision.renews && c != COMMAND_RECONCILE;
        } else if (c == COMMAND_CREATE && to == STATE_RUNNING) {
                usec_t took = clock_mono(o->service->config.clock) - o->creation->began;
                size_t i = 0;

                while (i + 1 < SERVICE_CREATE_BUCKETS && took > service_create_bounds[i])
                        i++;
                stats->create_buckets[i]++;
                stats->create_usec += took;
                stats->creates++;
        } else if (c == COMMAND_CREATE) {
                stats->create_failures++;
        } else if (c == COMMAND_EXPIRE && to == STATE_STOPPING) {
                stats->expired++;
        } else if (c == COMMAND_RECONCILE && state_is_final(to)
                   && !str_eq(o->decision.step.reason, STR(REASON_EXPIRED))) {
                stats->died++;
        }
}

/* A full store is a fault of the server, not of the caller's quota: asking for less does not help. */
static void keep_write_error(struct sandbox_op *o, int result, const struct err *err)
{
        if (o->result < 0)
                return;
        o->err = *err;
        if (err->code == ERR_EXHAUSTED)
                o->err.code = ERR_INTERNAL;
        (void) err_wrap(&o->err, "store the sandbox");
        o->result = err->code == ERR_EXHAUSTED ? ERR_RETURN(ERR_INTERNAL) : result;
}

static void write_failed(struct sandbox_op *o, int result, const struct err *err)
{
        keep_write_error(o, result, err);
        o->decision = decide_unwritten(&o->args, o->has_call_result ? &o->call_result : NULL);
        sandbox_op_continue(o);
}

/* --- the steps, with the record lock --- */

static void unregistered(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, write.remove.req.op);

        if (result < 0) {
                keep_write_error(o, result, &o->write.req.err);
                o->decision = decide_unwritten(&o->args, &o->call_result);
                return sandbox_op_continue(o);
        }
        o->service->stats.deletes += o->args.command == COMMAND_DELETE;
        record_changed(o, "sandbox.deleted", o->last);
        return sandbox_op__finish(o);
}

/* Carries out the second half of a decision, after its write. */
static void sandbox_op_continue(struct sandbox_op *o)
{
        const struct service_config *config = &o->service->config;
        const struct err *e = o->result < 0 ? &o->err : &o->first_err;
        struct sandbox_ctl *ctl = o->ctl;
        const struct sandbox *record;
        usec_t wait;

        switch (o->decision.next) {
        case NEXT_CALL:
                record_lock__release(ctl);
                return driver_call__start(o);
        case NEXT_AGAIN:
                return sandbox_op__decide(o);
        case NEXT_UNREGISTER:
                record = sandbox_ctl__record(ctl);
                o->last = record ? sandbox_copy(record) : NULL;
                if (!o->last)
                        return sandbox_op__finish(o); /* it is gone already */
                op_init(&o->write.remove.req.op, unregistered);
                return registry_unregister(config->registry, &o->write.remove, ctl->by_id.key);
        case NEXT_LATER:
                log_fields(config->log, LOG_WARN, "operation failed, will retry",
                           LOG_F_STR("sandbox", ctl->by_id.key),
                           LOG_F_STR("command", str_from(command_to_string((int) o->args.command))),
                           LOG_F_STR("error", str_from(e->message)));
                wait = MIN_OF(RETRY_FIRST << MIN_OF(ctl->failures, 6u), RETRY_LAST);
                ctl->failures++;
                ctl->retry_at = usec_add(clock_mono(config->clock), wait);
                return sandbox_op__finish(o);
        case NEXT_DONE:
        case NEXT_REFUSE:
        default:
                return sandbox_op__finish(o);
        }
}

static void written(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, write.update.req.op);

        /* An earlier write that seemed to have failed took effect. The registry has read the record again. */
        if (result == ERR_RETURN(ERR_CONFLICT) && o->rewrites++ < REWRITES_MAX)
                return sandbox_op__decide(o);
        if (result < 0)
                return write_failed(o, result, &o->write.req.err);
        count_change(o);
        if (o->decision.event)
                record_changed(o, o->decision.event, sandbox_ctl__record(o->ctl));
        sandbox_ctl__settle(o->ctl);
        /* The failure is known; waiters need not wait for the cleanup. */
        if (o->decision.fails)
                sandbox_op__notify(o, o->result, &o->err);
        return sandbox_op_continue(o);
}

static int apply_decision(const struct sandbox_op *o, struct sandbox *next, struct err *e)
{
        const struct decision *d = &o->decision;
        struct str handle = o->handle ? str_from(o->handle) : STR_NULL;
        int r = 0;

        if (d->changes)
                r = sandbox_change(next, &d->step, e);
        if (r == 0 && d->explains)
                r = status_explain(&next->status, &next->arena, d->step.reason, d->step.message, e);
        if (r == 0 && d->renews)
                r = sandbox_set_expiry(next, &d->expiry, e);
        if (r == 0 && d->sets_handle)
                r = sandbox_set_handle(next, o->found ? o->found->handle : handle, e);
        if (r == 0 && d->patches)
                r = sandbox_patch_metadata(next, &o->patch, e);
        /* A tombstone does not keep its owner from having another sandbox. */
        if (state_is_final((enum state) next->status.state))
                next->owner_bound = false;
        return r;
}

static void registered(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, write.add.req.op);

        o->registers = false;
        if (result < 0 && !o->creation)
                return adopt__not_registered(o, result);
        if (result < 0) {
                keep_write_error(o, result, &o->write.req.err);
                memcpy(o->creation->other_id, o->write.add.other_id, sizeof(o->creation->other_id));
                return sandbox_op__finish(o);
        }
        record_changed(o, o->creation ? "sandbox.created" : "sandbox.found",
                       sandbox_ctl__record(o->ctl));
        sandbox_ctl__settle(o->ctl);
        return sandbox_op__decide(o);
}

/* Sets o->decision, and the result for the waiters if it fails. */
static void make_decision(struct sandbox_op *o, const struct sandbox *record)
{
        struct service *s = o->service;
        struct timestamp now = service__now(s);
        struct driver *driver = record ? service__driver(s, record->driver) : NULL;
        struct decision *d = &o->decision;

        o->args.caps = driver ? driver_caps(driver) : 0;
        *d = decide(&now, record, &o->args, o->has_call_result ? &o->call_result : NULL);
        if (d->next == NEXT_REFUSE)
                o->err = d->err;
        else if (d->fails && o->result == 0 && o->has_first_err)
                o->err = o->first_err;
        else
                return;
        o->result = ERR_RETURN(o->err.code);
}

void sandbox_op__decide(struct sandbox_op *o)
{
        struct registry *registry = o->service->config.registry;
        const struct sandbox *record = sandbox_ctl__record(o->ctl);
        const struct decision *d = &o->decision;
        struct sandbox *next;
        struct err e;
        int r;

        o->begun = true;
        if (o->registers) {
                next = o->creation ? TAKE_PTR(o->creation->record) : sandbox_copy(o->found);
                if (!next)
                        return sandbox_op__finish(o); /* no memory: the next reconcile finds it */
                op_init(&o->write.add.req.op, registered);
                return registry_register(registry, &o->write.add, next);
        }
        make_decision(o, record);
        if (d->next == NEXT_REFUSE)
                return sandbox_op__finish(o);
        if (!d->changes && !d->renews && !d->patches && !d->explains) {
                if (d->event && record)
                        record_changed(o, d->event, record);
                return sandbox_op_continue(o);
        }
        next = sandbox_copy(record);
        r = next ? apply_decision(o, next, &e)
                 : err_set(&e, ERR_TOO_LARGE, "no memory for the record");
        if (r == 0) {
                op_init(&o->write.update.req.op, written);
                return registry_update(registry, &o->write.update, next);
        }
        sandbox_free(next);
        if (command_only_writes(o->args.command)) { /* the caller's input does not fit */
                o->result = r;
                o->err = e;
                return sandbox_op__finish(o);
        }
        e.code = ERR_INTERNAL; /* the driver's output does not */
        return write_failed(o, ERR_RETURN(ERR_INTERNAL), &e);
}
