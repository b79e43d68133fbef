/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: the one sandbox of an owner.
 *
 * The problem: an application calls ensure for each request of a user, from several processes and at several nodes at
 * once, and expects one healthy sandbox per user, whatever has happened to the last one.
 *
 * The invariant: whoever creates or deletes a sandbox of an owner holds the owner's lock in the store. The steps run one
 * after the other, each of them an operation (`inner`), while the lock is held:
 *
 *         lock ─ find ─┬─ create ──────────────┬─ await ─┬─ git ─ end
 *                      └─ await, resume, ping ─┴─────────┘
 *                           │ no answer: ping again, with backoff
 *                           └─ inspect ─ delete ─ create
 *
 * With several nodes on the store the owner is looked up before that, without the lock: if another node has the
 * sandbox, the request is forwarded to that node, which takes the lock itself. A sandbox that turns out to be remote
 * while the lock is held leads there, too.
 *
 * The lock is a lease, renewed beside the steps. Losing it ends the request: another process may be at work by then.
 *
 * Crash: the lease runs out. What was begun is in the records, and reconcile finishes or undoes it.
 */

#include "base/base.h"
#include "service/ensure_impl.h"

#define WAIT_MAX     (5 * 60 * USEC_PER_SEC) /* for the lock, and for a sandbox that is being created */
#define RENEW_EVERY  (REGISTRY_LEASE / 3)
#define PING_TIMEOUT (5 * USEC_PER_SEC)
#define PING_FIRST   (250 * USEC_PER_MSEC) /* until the second ping; then doubling */
#define PINGS_MAX    6
#define ROUNDS_MAX   8 /* another request creates, pauses or deletes it again and again */

static void ensure_continue(struct ensure_op *e);
static void lock(struct ensure_op *e);

/* --- rules --- */

enum ensure_step ensure__step(const struct sandbox *record)
{
        static const enum ensure_step steps[] = {
                [STATE_PENDING] = ENSURE_WAIT,      [STATE_RUNNING] = ENSURE_PING,
                [STATE_PAUSING] = ENSURE_WAIT,      [STATE_PAUSED] = ENSURE_RESUME,
                [STATE_RESUMING] = ENSURE_WAIT,     [STATE_STOPPING] = ENSURE_DELETE,
                [STATE_TERMINATED] = ENSURE_CREATE, [STATE_FAILED] = ENSURE_CREATE,
        };
        static_assert(ARRAY_SIZE(steps) == STATE_MAX_, "a state without a step");

        return record ? steps[record->status.state] : ENSURE_CREATE;
}

enum ensure_step ensure__judge(int result, const struct driver_health *health)
{
        if (result < 0)
                return ENSURE_WAIT;
        return health->status == RUNTIME_PAUSED ? ENSURE_RESUME : ENSURE_DELETE;
}

/* --- the end --- */

/* A renewal in progress can't be stopped, and the lock can't be released before its end. */
void ensure__end(struct ensure_op *e, int result, const struct err *err)
{
        struct service *s = e->service;
        struct service_ensure *x = e->x;

        if (!e->over) {
                e->over = true;
                e->result = result;
                if (result < 0)
                        e->err = *err;
        }
        deadline_clear(&s->schedule, &e->renew);
        deadline_clear(&s->schedule, &e->again);
        if (e->inner || e->renewing)
                return;
        if (e->locked)
                registry_unlock(s->config.registry, &e->lock);
        list_remove(&e->node);
        s->stats.under_way--;
        sandbox_free(e->record);
        req__finish(&x->req, x->id[0] ? sandbox_ctl__get(s, str_from(x->id)) : NULL, e->result,
                    &e->err);
        free(e);
        service__settle(s);
}

static void ensure_fail(struct ensure_op *e, enum err_code code, const char *why)
{
        struct err err;

        ensure__end(e, err_set(&err, code, "%s", why), &err);
}

/* From outside: the step in progress is canceled, and its end is the end. */
static void ensure_stop(struct ensure_op *e, enum err_code code, const char *why)
{
        struct op *inner = e->inner;

        if (e->over)
                return;
        if (!inner) {
                ensure_fail(e, code, why);
                return;
        }
        e->over = true; /* before op_cancel, which may lead to the end */
        e->result = err_set(&e->err, code, "%s", why);
        op_cancel(inner);
}

static void ensure_cancel(struct op *op)
{
        ensure_stop(container_of(op, struct service_req, op)->_impl, ERR_CANCELED, "canceled");
}

void ensure__step_begin(struct ensure_op *e, struct op *op, op_done_fn *done)
{
        memset(&e->u, 0, sizeof(e->u));
        e->inner = op;
        op_init(op, done);
}

bool ensure__step_done(struct ensure_op *e)
{
        e->inner = NULL;
        if (!e->over)
                return true;
        ensure__end(e, e->result, &e->err);
        return false;
}

/* --- create --- */

/* A failure after the create was answered Pending is reported here. */
static void settle_new(struct ensure_op *e, const struct sandbox *record)
{
        struct err err;

        if (record && record->status.state == STATE_RUNNING)
                return ensure__set_git(e);
        if (record && service_is_transitional(record))
                return ensure_continue(e);
        e->x->created = false;
        e->x->id[0] = '\0';
        if (!record || record->status.state != STATE_FAILED)
                return ensure_fail(e, ERR_CONFLICT, "the sandbox was deleted meanwhile");
        return ensure__end(e,
                           err_set(&err, ERR_UNAVAILABLE, "the sandbox could not be created: %.*s",
                                   STR_ARG(record->status.message)),
                           &err);
}

static void keep_id(struct ensure_op *e, struct str id)
{
        size_t n = MIN_OF(id.n, sizeof(e->x->id) - 1);

        memcpy(e->x->id, id.p, n);
        e->x->id[n] = '\0';
}

static void found(struct op *op, int result);

static void find(struct ensure_op *e)
{
        ensure__step_begin(e, &e->u.get.req.op, found);
        e->u.get.unlocked = !e->locked;
        registry_find_by_owner(e->service->config.registry, &e->u.get, e->x->owner);
}

static void create_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.create.req.op);
        struct service_create *c = &e->u.create;

        if (!ensure__step_done(e))
                return;
        if (result == 0) {
                e->x->created = true;
                keep_id(e, str_from(c->id));
                settle_new(e, c->req.record);
        } else if (result == ERR_RETURN(ERR_EXISTS) && !e->x->must_be_new
                   && e->rounds++ < ROUNDS_MAX) {
                find(e);
        } else {
                memcpy(e->x->other_id, c->other_id, sizeof(e->x->other_id));
                e->x->problems = c->problems;
                e->x->req.retry_after = c->req.retry_after;
                ensure__end(e, result, &c->req.err);
        }
}

static void create(struct ensure_op *e)
{
        struct service_create *c = &e->u.create;

        e->x->id[0] = '\0';
        ensure__step_begin(e, &c->req.op, create_done);
        c->caller = e->x->caller;
        c->request = e->x->request;
        c->arena = e->x->arena;
        c->owner = e->x->owner;
        c->owner_bound = true;
        c->git_configured = e->x->git != NULL;
        service_create(e->service, c);
}

/* --- an existing sandbox --- */

static void await_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.await.req.op);
        struct err err = e->u.await.req.err;

        if (!ensure__step_done(e))
                return;
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND))
                ensure_continue(e);
        else
                ensure__end(e, result, &err);
}

static void command_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.command.req.op);
        struct err err = e->u.command.req.err;

        if (!ensure__step_done(e))
                return;
        /* ERR_CONFLICT: another request was faster, and it is in another state now. */
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)
            || result == ERR_RETURN(ERR_CONFLICT))
                ensure_continue(e);
        else
                ensure__end(e, result, &err);
}

static void command(struct ensure_op *e, void (*run)(struct service *, struct service_command *))
{
        ensure__step_begin(e, &e->u.command.req.op, command_done);
        e->u.command.caller = e->x->caller;
        e->u.command.id = str_from(e->x->id);
        run(e->service, &e->u.command);
}

static void inspect_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.inspect.req.op);
        struct driver_health health = e->u.inspect.health;
        struct err err = e->u.inspect.req.err;

        if (!ensure__step_done(e))
                return;
        switch (ensure__judge(result, &health)) {
        case ENSURE_RESUME:
                return command(e, service_resume);
        case ENSURE_DELETE:
                log_fields(e->service->config.log, LOG_WARN,
                           "agent does not respond, replacing the sandbox",
                           LOG_F_STR("sandbox", str_from(e->x->id)),
                           LOG_F_STR("status", str_from(runtime_status_to_string(health.status))));
                return command(e, service_delete);
        case ENSURE_CREATE:
        case ENSURE_WAIT:
        case ENSURE_PING:
        default:
                (void) err_wrap(&err,
                                "its agent does not respond, and the runtime cannot tell why");
                err.code = ERR_UNAVAILABLE;
                return ensure__end(e, ERR_RETURN(ERR_UNAVAILABLE), &err);
        }
}

static void ping_again(struct deadline *d)
{
        ensure_continue(container_of(d, struct ensure_op, again));
}

static void ping_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.ping.req.op);
        usec_t now = clock_mono(e->service->config.clock);

        if (!ensure__step_done(e))
                return;
        if (result == 0)
                return ensure__set_git(e);
        e->pings++;
        if (e->pings >= PINGS_MAX)
                return ensure_continue(e);
        deadline_set(&e->service->schedule, &e->again,
                     usec_add(now, PING_FIRST << MIN_OF(e->pings - 1, 8u)));
}

/* Chooses the next step by the record as it is now. What was just created is not created again. */
static void ensure_continue(struct ensure_op *e)
{
        struct service *s = e->service;
        const struct sandbox *record = service_find(s, e->x->caller, str_from(e->x->id));
        enum ensure_step step = ensure__step(record);
        struct driver *d;

        if (e->x->created && step != ENSURE_WAIT)
                return settle_new(e, record);
        if (step != ENSURE_PING && e->rounds++ > ROUNDS_MAX)
                return ensure_fail(e, ERR_UNAVAILABLE, "the sandbox keeps changing its state");
        if (step == ENSURE_CREATE)
                return create(e);
        if (step == ENSURE_WAIT) {
                ensure__step_begin(e, &e->u.await.req.op, await_done);
                e->u.await.caller = e->x->caller;
                e->u.await.id = str_from(e->x->id);
                e->u.await.wait = WAIT_MAX;
                return service_await(s, &e->u.await);
        }
        if (step == ENSURE_RESUME || step == ENSURE_DELETE)
                return command(e, step == ENSURE_RESUME ? service_resume : service_delete);
        d = service__driver(s, record->driver);
        sandbox_free(e->record);
        e->record = sandbox_copy(record);
        if (!d || !e->record)
                return ensure_fail(e, ERR_UNAVAILABLE,
                                   "the driver of this sandbox is not enabled on this server");
        if (e->pings >= PINGS_MAX) {
                ensure__step_begin(e, &e->u.inspect.req.op, inspect_done);
                return driver_start(d, driver_inspect_req(&e->u.inspect, e->record));
        }
        ensure__step_begin(e, &e->u.ping.req.op, ping_done);
        e->u.ping.req.timeout = PING_TIMEOUT;
        return agent_ping(s->config.agents, &e->u.ping, d, e->record);
}

/* --- a sandbox of another node --- */

static void lost_failed(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.lose.req.op);
        struct err err = e->u.lose.req.err;

        if (result == 0)
                remote_node__lost(e->service, str_from(e->remote_id));
        if (!ensure__step_done(e))
                return;
        /* ERR_CONFLICT: another node was faster, or that node is back. */
        if (result < 0 && result != ERR_RETURN(ERR_CONFLICT) && result != ERR_RETURN(ERR_NOT_FOUND))
                ensure__end(e, result, &err);
        else if (!e->locked)
                lock(e);
        else if (e->rounds++ < ROUNDS_MAX)
                find(e);
        else
                ensure_fail(e, ERR_UNAVAILABLE, "the sandbox keeps changing its state");
}

static void node_found(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.node.req.op);
        const struct nodes_find *f = &e->u.node;
        struct err err = f->req.err;

        if (!ensure__step_done(e))
                return;
        if (result < 0) {
                ensure__end(e, result, &err);
        } else if (f->status == NODE_LIVE) {
                remote_node__copy(&e->x->remote_node, f);
                ensure__end(e,
                            err_set(&err, ERR_UNAVAILABLE,
                                    "the sandbox of this owner is on node '%s'", f->id),
                            &err);
        } else if (f->status == NODE_LOST) {
                ensure__step_begin(e, &e->u.lose.req.op, lost_failed);
                registry_fail_lost(e->service->config.registry, &e->u.lose, str_from(e->remote_id));
        } else {
                ensure__end(e, remote_node__silent(f, &err), &err);
        }
}

/* --- the beginning --- */

/* The record is not one of this node, and no other node can be asked for it: nothing is given up. */
static int not_here(const struct sandbox *record, struct err *e)
{
        if (sandbox_is_foreign(record))
                return err_set(e, ERR_CONFLICT,
                               "the sandbox '%.*s' of this owner was created by PURISTA's own "
                               "service and cannot be reached from here; destroy it there, or "
                               "remove its entry from the store",
                               STR_ARG(record->id));
        return err_set(e, ERR_UNAVAILABLE, "the sandbox of this owner is on node '%.*s'",
                       STR_ARG(record->node));
}

static void found(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.get.req.op);
        const struct sandbox *record = e->u.get.record;
        struct service_ensure *x = e->x;
        struct err err = e->u.get.req.err;
        bool remote = result == 0 && remote_node__has(e->service, record);

        if (!ensure__step_done(e))
                return;
        if (!e->locked && !remote)
                return lock(e);
        if (result == ERR_RETURN(ERR_NOT_FOUND))
                return create(e);
        if (result < 0)
                return ensure__end(e, result, &err);
        if (remote) {
                memcpy(e->remote_id, record->id.p, record->id.n);
                e->remote_id[record->id.n] = '\0';
                ensure__step_begin(e, &e->u.node.req.op, node_found);
                return nodes_find(e->service->config.nodes, &e->u.node, record->node);
        }
        keep_id(e, record->id);
        if (x->must_be_new && !state_is_ending((enum state) record->status.state)) {
                memcpy(x->other_id, x->id, sizeof(x->other_id));
                result = err_set(&err, ERR_EXISTS, "the owner has a sandbox already: '%s'",
                                 x->other_id);
        } else if (service_find(e->service, x->caller, record->id)) {
                return ensure_continue(e);
        } else {
                result = not_here(record, &err);
        }
        x->id[0] = '\0';
        return ensure__end(e, result, &err);
}

/* --- the lock --- */

static void renewed(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, lock.req.op);
        struct service *s = e->service;

        e->renewing = false;
        if (e->over)
                ensure__end(e, e->result, &e->err);
        else if (result == ERR_RETURN(ERR_CONFLICT))
                ensure_stop(e, ERR_UNAVAILABLE, "the owner's lock was lost; try again");
        else /* after a store error the lease has two more chances */
                deadline_set(&s->schedule, &e->renew,
                             usec_add(clock_mono(s->config.clock), RENEW_EVERY));
}

static void renew(struct deadline *d)
{
        struct ensure_op *e = container_of(d, struct ensure_op, renew);

        e->renewing = true;
        op_init(&e->lock.req.op, renewed);
        registry_lock_renew(e->service->config.registry, &e->lock);
}

static void locked(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, lock.req.op);
        struct service *s = e->service;
        struct err err = e->lock.req.err;

        e->locked = result == 0;
        if (!ensure__step_done(e))
                return;
        if (result < 0) {
                ensure__end(e, result, &err);
                return;
        }
        deadline_set(&s->schedule, &e->renew, usec_add(clock_mono(s->config.clock), RENEW_EVERY));
        find(e);
}

static void lock(struct ensure_op *e)
{
        e->lock.lease = REGISTRY_LEASE;
        e->lock.wait = WAIT_MAX;
        e->inner = &e->lock.req.op;
        op_init(e->inner, locked);
        registry_lock_owner(e->service->config.registry, &e->lock, e->x->owner);
}

void ensure__stop(struct service *s)
{
        list_for_each (n, &s->ensures)
                ensure_stop(container_of(n, struct ensure_op, node), ERR_UNAVAILABLE,
                            "the server is stopping");
}

void service_ensure(struct service *s, struct service_ensure *x)
{
        struct ensure_op *e;
        int r;

        req__begin(s, &x->req, ensure_cancel);
        x->id[0] = x->other_id[0] = '\0';
        x->created = false;
        x->problems = (struct problems){ 0 };
        x->remote_node.id[0] = '\0';
        r = service__ready(s, &x->req.err);
        if (r == 0)
                r = owner_check(x->owner, &x->req.err);
        if (r < 0) {
                req__finish(&x->req, NULL, r, &x->req.err);
                return;
        }
        e = xnew(struct ensure_op);
        e->service = s;
        e->x = x;
        deadline_init(&e->renew, renew);
        deadline_init(&e->again, ping_again);
        x->req._impl = e;
        list_append(&s->ensures, &e->node);
        s->stats.under_way++;
        if (s->config.nodes)
                find(e);
        else
                lock(e);
}
