/* SPDX-License-Identifier: Apache-2.0 */
#include "service/decide.h"

#include "base/base.h"
#include "model/extensions.h"
#include "model/text.h"
#include "service/service.h"

static const char *const command_names[] = {
        [COMMAND_CREATE] = "create",     [COMMAND_DELETE] = "delete",
        [COMMAND_PAUSE] = "pause",       [COMMAND_RESUME] = "resume",
        [COMMAND_RENEW] = "renew",       [COMMAND_PATCH] = "patch",
        [COMMAND_ACCESS] = "access",     [COMMAND_EXPIRE] = "expire",
        [COMMAND_FORGET] = "forget",     [COMMAND_RECONCILE] = "reconcile",
        [COMMAND_SNAPSHOT] = "snapshot",
};
ENUM_TABLE(command, command_names, COMMAND_MAX_);

bool command_preempts(enum command c)
{
        return c == COMMAND_DELETE || c == COMMAND_EXPIRE;
}

bool command_only_writes(enum command c)
{
        return c == COMMAND_RENEW || c == COMMAND_PATCH || c == COMMAND_ACCESS;
}

struct decide_ctx {
        const struct timestamp *now;
        const struct sandbox *record;
        const struct command_args *args;
        const struct call_result *result;
        enum state state;
};

/* --- building blocks --- */

static struct decision done(void)
{
        return (struct decision){ .next = NEXT_DONE };
}

static struct decision later(void)
{
        return (struct decision){ .next = NEXT_LATER, .fails = true };
}

static struct decision unregister(void)
{
        return (struct decision){ .next = NEXT_UNREGISTER };
}

static struct decision call(enum call call)
{
        return (struct decision){ .next = NEXT_CALL, .call = call };
}

static struct decision become(const struct decide_ctx *m, enum state state, const char *reason,
                              struct str message)
{
        return (struct decision){
                .next = NEXT_DONE,
                .changes = true,
                .step = { .state = state,
                          .reason = reason ? str_from(reason) : STR_NULL,
                          .message = message,
                          .at_ms = (int64_t) (m->now->wall / USEC_PER_MSEC) },
                .event = "sandbox.state",
        };
}

static struct decision then_call(struct decision d, enum call call)
{
        d.next = NEXT_CALL;
        d.call = call;
        return d;
}

static struct decision failing(struct decision d)
{
        d.fails = true;
        return d;
}

static struct decision wrong_state(const struct decide_ctx *m, const char *what)
{
        struct decision d = { .next = NEXT_REFUSE };

        (void) err_set(&d.err, ERR_CONFLICT, "the sandbox is %s and cannot be %s",
                       state_to_string((int) m->state), what);
        return d;
}

static struct decision refuse(enum err_code code, const char *why)
{
        struct decision d = { .next = NEXT_REFUSE };

        (void) err_set(&d.err, code, "%s", why);
        return d;
}

/* --- parts of first decisions --- */

/* The tombstone of a lost node: whatever is left of the sandbox is on that node, no driver here has it. */
static bool is_lost(const struct decide_ctx *m)
{
        return m->state == STATE_FAILED && str_eq(m->record->status.reason, STR(REASON_NODE_LOST));
}

bool state_is_ending(enum state s)
{
        return s == STATE_STOPPING || state_is_final(s);
}

static struct decision begin_renew(const struct decide_ctx *m)
{
        struct decision d = { .next = NEXT_DONE, .renews = true, .event = "sandbox.renewed" };

        if (state_is_ending(m->state))
                return wrong_state(m, "renewed");
        if (!m->record->expiry)
                return refuse(ERR_CONFLICT, "the sandbox never expires and cannot be renewed");
        if (expiry_at(m->now, m->args->expires, &d.expiry, &d.err) < 0)
                d.next = NEXT_REFUSE;
        return d;
}

static struct decision begin_access(const struct decide_ctx *m)
{
        struct decision d = { .next = NEXT_DONE, .renews = true, .event = "sandbox.renewed" };
        usec_t by = extensions_renew_by(&m->record->extensions);

        if (m->state != STATE_RUNNING || !m->record->expiry || by == 0)
                return done();
        d.expiry = expiry_after(m->now, by);
        if (expiry_deadline(m->record->expiry, m->now) >= expiry_deadline(&d.expiry, m->now))
                return done();
        return d;
}

static struct decision begin_expire(const struct decide_ctx *m)
{
        const struct expiry *x = m->record->expiry;

        /* It has just ended in another way, which may have left the destroy to us. */
        if (state_is_ending(m->state))
                return call(CALL_DESTROY);
        if (!x || !expiry_is_due(x, m->now)) /* renewed meanwhile */
                return done();
        return then_call(become(m, STATE_STOPPING, REASON_EXPIRED, STR("the sandbox expired")),
                         CALL_DESTROY);
}

/* --- record against runtime --- */

/* A reason is a driver's constant, but it has passed through our memory: it must not fail the write. */
static struct decision died(const struct decide_ctx *m, const struct driver_health *h)
{
        bool good = h->reason && text_is_label(str_from(h->reason), REASON_MAX);
        struct decision d;

        if (h->status == RUNTIME_ENDED)
                d = become(m, STATE_TERMINATED, REASON_EXITED, h->message);
        else
                d = become(m, STATE_FAILED, good ? h->reason : REASON_DIED, h->message);
        return then_call(d, CALL_DESTROY);
}

enum rule {
        RULE_STAY,
        RULE_CLEAR_AWAY,
        RULE_ADOPT,
        RULE_RUNS,
        RULE_RESTS,
        RULE_TWO_STEPS, /* from Running to Paused and back there are two steps */
        RULE_DIED,
        RULE_VANISHED,
};

/* Stopping is not here: whatever the runtime shows, it is to be destroyed. */
static const enum rule rules[STATE_MAX_][RUNTIME_STATUS_MAX_] = {
        [STATE_PENDING] = { RULE_ADOPT, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY,
                            RULE_CLEAR_AWAY },
        [STATE_RUNNING] = { RULE_STAY, RULE_TWO_STEPS, RULE_DIED, RULE_DIED, RULE_VANISHED },
        [STATE_PAUSING] = { RULE_RUNS, RULE_RESTS, RULE_DIED, RULE_DIED, RULE_VANISHED },
        [STATE_PAUSED] = { RULE_TWO_STEPS, RULE_STAY, RULE_DIED, RULE_DIED, RULE_VANISHED },
        [STATE_RESUMING] = { RULE_RUNS, RULE_RESTS, RULE_DIED, RULE_DIED, RULE_VANISHED },
        [STATE_TERMINATED] = { RULE_CLEAR_AWAY, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY,
                               RULE_STAY },
        [STATE_FAILED] = { RULE_CLEAR_AWAY, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY, RULE_CLEAR_AWAY,
                           RULE_STAY },
};

static struct decision by_status(const struct decide_ctx *m, const struct driver_health *h)
{
        const struct driver_health *reported = &m->args->health;
        struct decision d;

        if (m->state == STATE_STOPPING)
                return call(CALL_DESTROY);
        if (h->status < 0 || h->status >= RUNTIME_STATUS_MAX_)
                return later();
        switch (rules[m->state][h->status]) {
        case RULE_STAY:
                return done();
        case RULE_CLEAR_AWAY:
                return call(CALL_DESTROY);
        case RULE_ADOPT: /* without the driver's handle no request could be sent into it */
                return call(m->args->found ? CALL_PING : CALL_DESTROY);
        case RULE_RUNS:
                return become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
        case RULE_RESTS:
                return become(m, STATE_PAUSED, REASON_PAUSED, STR_NULL);
        case RULE_TWO_STEPS:
                d = become(m, m->state == STATE_RUNNING ? STATE_PAUSING : STATE_RESUMING, NULL,
                           STR_NULL);
                d.next = NEXT_AGAIN;
                return d;
        case RULE_DIED:
                return died(m, h);
        case RULE_VANISHED:
        default:
                if (reported->status == RUNTIME_ENDED || reported->status == RUNTIME_DEAD)
                        return died(m, reported);
                return become(m, STATE_FAILED, REASON_GONE, STR("the runtime no longer has it"));
        }
}

/* --- first decisions --- */

static struct decision decide_first(const struct decide_ctx *m)
{
        enum command c = m->args->command;
        struct decision lacks = { .next = NEXT_REFUSE };

        switch (c) {
        case COMMAND_CREATE:
                return m->state == STATE_PENDING ? call(CALL_CREATE) : done();
        case COMMAND_DELETE:
                if (is_lost(m))
                        return unregister();
                if (state_is_ending(m->state))
                        return call(CALL_DESTROY);
                return then_call(become(m, STATE_STOPPING, REASON_DELETED, STR_NULL), CALL_DESTROY);
        case COMMAND_PAUSE:
        case COMMAND_SNAPSHOT:
                if (m->state != STATE_RUNNING)
                        return wrong_state(m, c == COMMAND_PAUSE ? "paused" : "snapshotted");
                if (driver_caps_check(m->record->driver, m->args->caps,
                                      c == COMMAND_PAUSE ? DRIVER_PAUSE : DRIVER_SNAPSHOT,
                                      &lacks.err)
                    < 0)
                        return lacks;
                if (c == COMMAND_SNAPSHOT)
                        return call(CALL_SNAPSHOT);
                return then_call(become(m, STATE_PAUSING, NULL, STR_NULL), CALL_PAUSE);
        case COMMAND_RESUME:
                if (m->state != STATE_PAUSED)
                        return wrong_state(m, "resumed");
                return then_call(become(m, STATE_RESUMING, NULL, STR_NULL), CALL_RESUME);
        case COMMAND_RENEW:
                return begin_renew(m);
        case COMMAND_PATCH:
                if (state_is_ending(m->state))
                        return wrong_state(m, "changed");
                return (struct decision){ .patches = true, .event = "sandbox.metadata" };
        case COMMAND_ACCESS:
                return begin_access(m);
        case COMMAND_EXPIRE:
                return begin_expire(m);
        case COMMAND_FORGET:
                if (is_lost(m))
                        return unregister();
                return state_is_final(m->state) ? call(CALL_DESTROY) : done();
        case COMMAND_RECONCILE:
                if (m->state == STATE_STOPPING)
                        return call(CALL_DESTROY);
                return m->args->health_known ? by_status(m, &m->args->health) : call(CALL_INSPECT);
        case COMMAND_MAX_:
        case COMMAND_INVALID_:
        default:
                ASSERT(!"a command that does not exist");
        }
}

/* --- decisions after a driver call --- */

static const char *create_reason(int result)
{
        static const char *const reasons[ERR_CODE_MAX_] = {
                [ERR_INVALID] = "INVALID_REQUEST",
                [ERR_NOT_FOUND] = "IMAGE_NOT_FOUND",
                [ERR_EXHAUSTED] = "RESOURCES_EXHAUSTED",
                [ERR_UNSUPPORTED] = "UNSUPPORTED",
                [ERR_UNAVAILABLE] = "RUNTIME_UNAVAILABLE",
                [ERR_TIMEOUT] = "CREATE_TIMEOUT",
                [ERR_CANCELED] = "CANCELED",
        };
        const char *reason = reasons[err_code_from_errno(result)];

        return reason ? reason : "CREATE_FAILED";
}

static struct decision after_create(const struct decide_ctx *m)
{
        struct decision d;

        if (m->state != STATE_PENDING)
                return done();
        /* Drivers promise to leave nothing behind; a runtime that was interrupted may have. */
        if (m->result->result < 0)
                return then_call(failing(become(m, STATE_FAILED, create_reason(m->result->result),
                                                str_from(m->result->err->message))),
                                 CALL_DESTROY);
        d = become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
        d.sets_handle = true;
        return d;
}

/* After a failure it stays Stopping as long as the runtime has it, so the record says why. A call that we canceled
 * ourselves says nothing about the runtime. */
static struct decision after_destroy(const struct decide_ctx *m)
{
        struct str reason = m->record->status.reason;
        struct decision d = later();

        if (m->result->result < 0) {
                struct str why = str_from(m->result->err->message);

                d.explains = m->state == STATE_STOPPING
                             && m->result->result != ERR_RETURN(ERR_CANCELED)
                             && !str_eq(m->record->status.message, why);
                if (!d.explains)
                        return d;
                d.step = (struct status_step){ .state = STATE_STOPPING,
                                               .reason = reason,
                                               .message = why };
                d.event = "sandbox.state";
                return d;
        }
        if (m->args->command == COMMAND_DELETE || m->args->command == COMMAND_FORGET)
                return unregister();
        if (m->state == STATE_STOPPING)
                return str_eq(reason, STR(REASON_EXPIRED))
                               ? become(m, STATE_TERMINATED, REASON_EXPIRED,
                                        STR("the sandbox expired"))
                               : unregister();
        if (state_is_final(m->state))
                return done();
        /* Pending, or the state that a write left that seemed to have failed. */
        return become(m, STATE_FAILED, REASON_INTERRUPTED,
                      STR("create was interrupted and has been undone"));
}

/* ERR_CONFLICT means that it is so already. After any other failure it is unknown what the runtime did: inspect. Later,
 * if a delete or expiry waits: that one may find that the sandbox was renewed, or may fail to write its intent. */
static struct decision after_pause(const struct decide_ctx *m)
{
        bool pause = m->result->call == CALL_PAUSE;

        if (m->result->result == 0 || m->result->result == ERR_RETURN(ERR_CONFLICT))
                return pause ? become(m, STATE_PAUSED, REASON_PAUSED, STR_NULL)
                             : become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
        return m->args->preempted ? later() : call(CALL_INSPECT);
}

static struct decision after_inspect(const struct decide_ctx *m)
{
        int hoped = m->args->command == COMMAND_PAUSE    ? RUNTIME_PAUSED
                    : m->args->command == COMMAND_RESUME ? RUNTIME_RUNNING
                                                         : m->result->health.status;
        struct decision d;

        if (m->result->result < 0)
                return later();
        d = by_status(m, &m->result->health);
        d.fails |= m->result->health.status != hoped;
        return d;
}

static struct decision after_ping(const struct decide_ctx *m)
{
        struct decision d;

        if (m->result->result < 0)
                return call(CALL_DESTROY);
        d = become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
        d.sets_handle = true;
        return d;
}

/* The sandbox is as it was; the failure belongs into the snapshot's record. */
static struct decision after_snapshot(const struct decide_ctx *m)
{
        struct decision d = done();

        if (m->result->result < 0)
                return failing(d);
        d.event = "sandbox.snapshot";
        return d;
}

/* --- dispatch --- */

typedef struct decision decide_fn(const struct decide_ctx *m);

static decide_fn *const afters[CALL_MAX_] = {
        [CALL_CREATE] = after_create,     [CALL_DESTROY] = after_destroy,
        [CALL_PAUSE] = after_pause,       [CALL_RESUME] = after_pause,
        [CALL_INSPECT] = after_inspect,   [CALL_PING] = after_ping,
        [CALL_SNAPSHOT] = after_snapshot,
};

struct decision decide(const struct timestamp *now, const struct sandbox *record,
                       const struct command_args *args, const struct call_result *result)
{
        struct decide_ctx m = { .now = now, .record = record, .args = args, .result = result };
        struct decision d;
        enum state next;

        if (!record)
                return args->command >= COMMAND_ACCESS
                               ? done()
                               : refuse(ERR_NOT_FOUND, "there is no such sandbox");
        m.state = (enum state) record->status.state;
        d = result ? afters[result->call](&m) : decide_first(&m);
        next = d.changes ? d.step.state : m.state;
        /* A sandbox that goes on after a reboot needs its deadline on the new boot's clock. */
        if (args->command == COMMAND_RECONCILE && record->expiry && !state_is_ending(next)
            && (d.next == NEXT_DONE || d.next == NEXT_AGAIN)) {
                d.expiry = *record->expiry;
                d.renews = expiry_adopt(&d.expiry, now);
        }
        return d;
}

struct decision decide_unwritten(const struct command_args *args, const struct call_result *result)
{
        /* It runs, and after the next start only the runtime would know: undo it now. */
        if (result && result->call == CALL_CREATE && result->result == 0)
                return call(CALL_DESTROY);
        /* The intent was not written, so nothing was begun. Background commands are tried again. */
        if (!result && args->command < COMMAND_ACCESS)
                return failing(done());
        return later();
}

int service_check_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e)
{
        enum state s = (enum state) record->status.state;

        if (s == STATE_RUNNING)
                return 0;
        if (state_is_ending(s))
                return err_set(e, ERR_NOT_FOUND, "the sandbox is %s", state_to_string((int) s));
        if (s == STATE_PAUSED)
                return err_set(e, ERR_CONFLICT, "the sandbox is Paused; resume it first");
        *ret_retry_after = USEC_PER_SEC;
        return err_set(e, ERR_UNAVAILABLE, "the sandbox is %s; try again shortly",
                       state_to_string((int) s));
}
