/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one sandbox of an owner. One step after the other, each of them an operation of its own (`inner`),
 * all while the owner's lock is held:
 *
 *         lock ─ find ─┬─ create ──────────────┬─ await ─┬─ git ─ end
 *                      └─ await, resume, ping ─┴─────────┘
 *                           │ silent: ping again, later and later
 *                           └─ inspect ─ delete ─ create
 *
 * On a store that several nodes share the owner is looked up before that, without the lock: what another node
 * has, that node is to be asked for, and it takes the lock itself. What is found to be another's while the lock is
 * held leads there, too.
 *
 * The lease is renewed beside that. Its loss ends the whole: somebody else may be at work by now.
 */

#include "base/base.h"
#include "service/service_impl.h"

#define WAIT_MAX     (5 * 60 * USEC_PER_SEC) /* for the lock, and for a sandbox that is being made */
#define RENEW_EVERY  (REGISTRY_LEASE / 3)
#define PING_TIMEOUT (5 * USEC_PER_SEC)
#define PING_FIRST   (250 * USEC_PER_MSEC) /* to the second try; then twice as long each time */
#define PINGS_MAX    6
#define ROUNDS_MAX   8 /* somebody else makes, pauses or deletes it again and again */
#define GIT_TIMEOUT  (30 * USEC_PER_SEC)

struct ensure_op {
        struct list node; /* service->ensuring */
        struct service *service;
        struct service_ensure *x;

        struct registry_lock lock;
        bool locked, renewing, over;
        struct deadline renew;
        struct deadline again; /* the next ping */
        unsigned pings, rounds;

        struct op *inner;       /* what is under way; NULL: a due is waited for */
        struct sandbox *record; /* what the driver looks at */
        struct json_pair git_env[GIT_VARIABLES];
        char git_socket[sizeof(((struct agent_git *) NULL)->socket)];
        union {
                struct registry_get get;
                struct service_create create;
                struct service_command command;
                struct service_await await;
                struct service_exec exec;
                struct service_git_credential git;
                struct agent_ping ping;
                struct driver_inspect inspect;
                struct nodes_find node;
                struct registry_fail_lost lose;
        } u;
        char others[SANDBOX_ID_MAX + 1]; /* the sandbox of another node */

        int result; /* once it is over */
        struct err err;
};

static void look(struct ensure_op *e);
static void create(struct ensure_op *e);

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
        return health->life == RUNTIME_PAUSED ? ENSURE_RESUME : ENSURE_DELETE;
}

/* --- the end --- */

static struct str id_of(const struct ensure_op *e)
{
        return str_from(e->x->id);
}

static void leave(struct ensure_op *e)
{
        struct service *s = e->service;
        struct service_ensure *x = e->x;
        struct sandbox_ctl *p = x->id[0] ? sandbox_ctl__get(s, id_of(e)) : NULL;

        if (e->locked)
                registry_unlock(s->config.registry, &e->lock);
        list_remove(&e->node);
        s->stats.under_way--;
        sandbox_free(e->record);
        req__finish(&x->req, p, e->result, &e->err);
        free(e);
        service__settle(s);
}

/* A renewal that is under way can't be stopped, and the lock can't be given back before its end. */
static void end(struct ensure_op *e, int result, const struct err *err)
{
        if (!e->over) {
                e->over = true;
                e->result = result;
                if (result < 0)
                        e->err = *err;
        }
        deadline_clear(&e->service->schedule, &e->renew);
        deadline_clear(&e->service->schedule, &e->again);
        if (!e->inner && !e->renewing)
                leave(e);
}

/* Ends it from outside: what is under way is canceled, and its end is the end. */
static void stop(struct ensure_op *e, enum err_code code, const char *why)
{
        struct err err;
        int r = err_set(&err, code, "%s", why);
        struct op *inner = e->inner;

        if (e->over)
                return;
        if (inner) { /* first: an end from inside op_cancel must not find it over already */
                e->over = true;
                e->result = r;
                e->err = err;
                op_cancel(inner);
                return;
        }
        end(e, r, &err);
}

static void ensure_cancel(struct op *op)
{
        stop(container_of(op, struct service_req, op)->_impl, ERR_CANCELED, "nobody waits for it");
}

/* The first thing that every `done` below does. */
static bool goes_on(struct ensure_op *e)
{
        e->inner = NULL;
        if (!e->over)
                return true;
        end(e, e->result, &e->err);
        return false;
}

static void begin(struct ensure_op *e, struct op *op, op_done_fn *done)
{
        memset(&e->u, 0, sizeof(e->u));
        e->inner = op;
        op_init(op, done);
}

/* --- git --- */

static void deleted_for_git(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.command.req.op);

        (void) result; /* what is left of it, the service looks after; the error is git's */
        e->inner = NULL;
        e->x->id[0] = '\0';
        e->x->created = false;
        end(e, e->result, &e->err);
}

/* What is new and half made is not left behind: the owner could not tell it from a whole one. */
static void git_failed(struct ensure_op *e, int result, const struct err *err)
{
        if (!e->x->created) {
                end(e, result, err);
                return;
        }
        e->over = true;
        e->result = result;
        e->err = *err;
        begin(e, &e->u.command.req.op, deleted_for_git);
        e->u.command.caller = e->x->caller;
        e->u.command.id = id_of(e);
        service_delete(e->service, &e->u.command);
}

static void git_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.exec.req.op);
        struct err err = { 0 };
        int r = git__result(&e->u.exec, result, &err);

        agent_exec_done(&e->u.exec.exec);
        if (!goes_on(e))
                return;
        if (r < 0)
                git_failed(e, r, &err);
        else
                end(e, 0, NULL);
}

static void configure_git(struct ensure_op *e)
{
        begin(e, &e->u.exec.req.op, git_done);
        git__command(e->x->git, e->git_socket, &e->u.exec.exec, e->git_env);
        e->u.exec.caller = e->x->caller;
        e->u.exec.id = id_of(e);
        e->u.exec.exec.req.timeout = GIT_TIMEOUT;
        service_exec(e->service, &e->u.exec);
}

static void git_handed(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.git.req.op);
        struct err err = e->u.git.req.err;

        if (!goes_on(e))
                return;
        if (result == ERR_RETURN(ERR_NOT_FOUND))
                result = err_set(&err, ERR_UNSUPPORTED,
                                 "the agent of this sandbox can't keep a token for git; make the "
                                 "sandbox anew, or leave out gitConfig.token");
        if (result < 0) {
                git_failed(e, result, &err);
                return;
        }
        memcpy(e->git_socket, e->u.git.git.socket, sizeof(e->git_socket));
        configure_git(e);
}

static void set_git(struct ensure_op *e)
{
        const struct git_identity *git = e->x->git;

        if (!git) {
                end(e, 0, NULL);
                return;
        }
        if (git->secret_token.n == 0)
                return configure_git(e);
        begin(e, &e->u.git.req.op, git_handed);
        e->u.git.caller = e->x->caller;
        e->u.git.id = id_of(e);
        e->u.git.git.host = STR(GIT_HOST);
        e->u.git.git.username = STR(GIT_USER);
        e->u.git.git.secret_password = git->secret_token;
        e->u.git.git.req.timeout = GIT_TIMEOUT;
        service_set_git_credential(e->service, &e->u.git);
}

/* --- making --- */

/* Made, but is it there? What failed after it was told Pending is told here. */
static void settle_new(struct ensure_op *e, const struct sandbox *record)
{
        struct err err;

        if (record && record->status.state == STATE_RUNNING)
                return set_git(e);
        if (record && service_is_transitional(record))
                return look(e);
        e->x->created = false;
        e->x->id[0] = '\0';
        if (record && record->status.state == STATE_FAILED)
                end(e,
                    err_set(&err, ERR_UNAVAILABLE, "the sandbox could not be made: %.*s",
                            STR_ARG(record->status.message)),
                    &err);
        else
                end(e, err_set(&err, ERR_CONFLICT, "the sandbox was deleted meanwhile"), &err);
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
        begin(e, &e->u.get.req.op, found);
        e->u.get.unlocked = !e->locked;
        registry_find_by_owner(e->service->config.registry, &e->u.get, e->x->owner);
}

static void create_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.create.req.op);
        struct service_create *c = &e->u.create;

        if (!goes_on(e))
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
                end(e, result, &c->req.err);
        }
}

static void create(struct ensure_op *e)
{
        struct service_create *c = &e->u.create;

        e->x->id[0] = '\0';
        begin(e, &c->req.op, create_done);
        c->caller = e->x->caller;
        c->request = e->x->request;
        c->arena = e->x->arena;
        c->owner = e->x->owner;
        c->owner_bound = true;
        c->git_configured = e->x->git != NULL;
        service_create(e->service, c);
}

/* --- one that is there --- */

static void moved(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.await.req.op);
        struct err err = e->u.await.req.err;

        if (!goes_on(e))
                return;
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND))
                look(e);
        else
                end(e, result, &err);
}

static void await(struct ensure_op *e)
{
        begin(e, &e->u.await.req.op, moved);
        e->u.await.caller = e->x->caller;
        e->u.await.id = id_of(e);
        e->u.await.wait = WAIT_MAX;
        service_await(e->service, &e->u.await);
}

static void commanded(struct ensure_op *e, int result, const struct err *err)
{
        /* ERR_CONFLICT: somebody was faster, and it is in another state now. */
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)
            || result == ERR_RETURN(ERR_CONFLICT))
                look(e);
        else
                end(e, result, err);
}

static void command_done(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.command.req.op);
        struct err err = e->u.command.req.err;

        if (goes_on(e))
                commanded(e, result, &err);
}

static void command(struct ensure_op *e, void (*run)(struct service *, struct service_command *))
{
        begin(e, &e->u.command.req.op, command_done);
        e->u.command.caller = e->x->caller;
        e->u.command.id = id_of(e);
        run(e->service, &e->u.command);
}

static void give_up(struct ensure_op *e, const struct driver_health *health)
{
        log_fields(e->service->config.log, LOG_WARN,
                   "a sandbox of an owner is given up: its agent does not answer",
                   LOG_F_STR("sandbox", id_of(e)),
                   LOG_F_STR("life", str_from(runtime_status_to_string(health->life))));
        command(e, service_delete);
}

static void inspected(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.inspect.req.op);
        struct driver_health health = e->u.inspect.health;
        struct err err = e->u.inspect.req.err;

        if (!goes_on(e))
                return;
        switch (ensure__judge(result, &health)) {
        case ENSURE_RESUME:
                return command(e, service_resume);
        case ENSURE_DELETE:
                return give_up(e, &health);
        case ENSURE_CREATE:
        case ENSURE_WAIT:
        case ENSURE_PING:
        default:
                (void) err_wrap(&err, "its agent does not answer, and the runtime can't tell why");
                err.code = ERR_UNAVAILABLE;
                return end(e, ERR_RETURN(ERR_UNAVAILABLE), &err);
        }
}

static void inspect(struct ensure_op *e, struct driver *d)
{
        begin(e, &e->u.inspect.req.op, inspected);
        driver_inspect(d, &e->u.inspect, e->record);
}

static void ping_again(struct deadline *d)
{
        look(container_of(d, struct ensure_op, again));
}

static void pinged(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.ping.req.op);
        usec_t now = clock_mono(e->service->config.clock);

        if (!goes_on(e))
                return;
        if (result == 0)
                return set_git(e);
        e->pings++;
        if (e->pings >= PINGS_MAX)
                return look(e);
        deadline_set(&e->service->schedule, &e->again,
                     usec_add(now, PING_FIRST << MIN_OF(e->pings - 1, 8u)));
}

static void ping(struct ensure_op *e, const struct sandbox *record)
{
        struct driver *d = service__driver(e->service, record->driver);
        struct err err;

        sandbox_free(e->record);
        e->record = sandbox_copy(record);
        if (!d || !e->record) {
                end(e,
                    err_set(&err, ERR_UNAVAILABLE,
                            "the driver of this sandbox is not enabled on this server"),
                    &err);
                return;
        }
        if (e->pings >= PINGS_MAX)
                return inspect(e, d);
        begin(e, &e->u.ping.req.op, pinged);
        e->u.ping.req.timeout = PING_TIMEOUT;
        agent_ping(e->service->config.agents, &e->u.ping, d, e->record);
}

/* The sandbox as it is now. What was just made is not made again. */
static void look(struct ensure_op *e)
{
        const struct sandbox *record = service_find(e->service, e->x->caller, id_of(e));
        enum ensure_step step = ensure__step(record);
        struct err err;

        if (e->x->created && step != ENSURE_WAIT)
                return settle_new(e, record);
        if (step != ENSURE_PING && e->rounds++ > ROUNDS_MAX)
                return end(e, err_set(&err, ERR_UNAVAILABLE, "the sandbox does not come to rest"),
                           &err);
        switch (step) {
        case ENSURE_CREATE:
                return create(e);
        case ENSURE_WAIT:
                return await(e);
        case ENSURE_RESUME:
                return command(e, service_resume);
        case ENSURE_DELETE:
                return command(e, service_delete);
        case ENSURE_PING:
        default:
                return ping(e, record);
        }
}

/* --- one of another node --- */

static void lock(struct ensure_op *e);

static void was_lost(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.lose.req.op);
        struct err err = e->u.lose.req.err;

        if (result == 0)
                remote_node__lost(e->service, str_from(e->others));
        if (!goes_on(e))
                return;
        /* ERR_CONFLICT: another node was faster, or that node is back. */
        if (result < 0 && result != ERR_RETURN(ERR_CONFLICT) && result != ERR_RETURN(ERR_NOT_FOUND))
                end(e, result, &err);
        else if (!e->locked)
                lock(e);
        else if (e->rounds++ < ROUNDS_MAX)
                find(e);
        else
                end(e, err_set(&err, ERR_UNAVAILABLE, "the sandbox does not come to rest"), &err);
}

static void node_found(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.node.req.op);
        const struct nodes_find *f = &e->u.node;
        struct err err = f->req.err;

        if (!goes_on(e))
                return;
        if (result < 0) {
                end(e, result, &err);
        } else if (f->status == NODE_LIVE) {
                remote_node__copy(&e->x->remote_node, f);
                end(e,
                    err_set(&err, ERR_UNAVAILABLE,
                            "the sandbox of this owner is looked after by node '%s'", f->id),
                    &err);
        } else if (f->status == NODE_LOST) {
                begin(e, &e->u.lose.req.op, was_lost);
                registry_fail_lost(e->service->config.registry, &e->u.lose, str_from(e->others));
        } else {
                end(e, remote_node__silent(f, &err), &err);
        }
}

static void look_elsewhere(struct ensure_op *e, const struct sandbox *record)
{
        struct str node = record->node;

        memcpy(e->others, record->id.p, record->id.n);
        e->others[record->id.n] = '\0';
        begin(e, &e->u.node.req.op, node_found);
        nodes_find(e->service->config.nodes, &e->u.node, node);
}

/* --- the beginning --- */

/* Another node looks after it, or none. Nobody else can say how it is: nothing is given up. */
static void not_here(struct ensure_op *e, const struct sandbox *record)
{
        struct err err;

        if (sandbox_is_foreign(record))
                (void) err_set(&err, ERR_CONFLICT,
                               "the sandbox '%.*s' of this owner was made by PURISTA's own service "
                               "and can't be reached from here; destroy it there, or remove its "
                               "entry from the store",
                               STR_ARG(record->id));
        else
                (void) err_set(&err, ERR_UNAVAILABLE,
                               "the sandbox of this owner is looked after by node '%.*s'",
                               STR_ARG(record->node));
        end(e, ERR_RETURN(err.code), &err);
}

static void take(struct ensure_op *e, const struct sandbox *record)
{
        bool ends = state_is_ending((enum state) record->status.state);
        struct err err;

        if (remote_node__has(e->service, record))
                return look_elsewhere(e, record);
        keep_id(e, record->id);
        if (e->x->must_be_new && !ends) {
                memcpy(e->x->other_id, e->x->id, sizeof(e->x->other_id));
                e->x->id[0] = '\0';
                end(e,
                    err_set(&err, ERR_EXISTS, "the owner has a sandbox already: '%s'",
                            e->x->other_id),
                    &err);
        } else if (service_find(e->service, e->x->caller, record->id)) {
                look(e);
        } else {
                e->x->id[0] = '\0';
                not_here(e, record);
        }
}

static void found(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.get.req.op);
        const struct sandbox *record = e->u.get.record;
        struct err err = e->u.get.req.err;

        if (!goes_on(e))
                return;
        if (!e->locked && (result < 0 || !remote_node__has(e->service, record)))
                lock(e);
        else if (result == 0)
                take(e, record);
        else if (result == ERR_RETURN(ERR_NOT_FOUND))
                create(e);
        else
                end(e, result, &err);
}

static void renewed(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, lock.req.op);
        struct service *s = e->service;

        e->renewing = false;
        if (e->over)
                end(e, e->result, &e->err);
        else if (result == ERR_RETURN(ERR_CONFLICT))
                stop(e, ERR_UNAVAILABLE, "the owner's lock was lost; ask again");
        else /* else the store is away: the lease has two more chances */
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
        struct err err = e->lock.req.err;
        struct service *s = e->service;

        e->locked = result == 0;
        if (!goes_on(e))
                return;
        if (result < 0) {
                end(e, result, &err);
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
        struct list *next;

        for (struct list *n = s->ensures.next; n != &s->ensures; n = next) {
                next = n->next;
                stop(container_of(n, struct ensure_op, node), ERR_UNAVAILABLE,
                     "the server is stopping");
        }
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
