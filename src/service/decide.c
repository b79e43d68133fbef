/* SPDX-License-Identifier: Apache-2.0 */
#include "service/decide.h"

#include "base/base.h"
#include "model/extensions.h"
#include "model/text.h"

static const char *const command_names[] = {
        [COMMAND_CREATE] = "create",  [COMMAND_DELETE] = "delete",     [COMMAND_PAUSE] = "pause",
        [COMMAND_RESUME] = "resume",  [COMMAND_RENEW] = "renew",       [COMMAND_PATCH] = "patch",
        [COMMAND_ACCESS] = "access",  [COMMAND_EXPIRE] = "expire",     [COMMAND_FORGET] = "forget",
        [COMMAND_RECONCILE] = "look", [COMMAND_SNAPSHOT] = "snapshot",
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

/* What is to be decided. */
struct decide_ctx {
        const struct timestamp *now;
        const struct sandbox *record;
        const struct command_args *w;
        const struct call_result *a;
        enum state state;
};

/* --- the parts that decisions are made of --- */

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

static struct decision call(enum call whom)
{
        return (struct decision){ .next = NEXT_CALL, .call = whom };
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

static struct decision then_call(struct decision d, enum call whom)
{
        d.next = NEXT_CALL;
        d.call = whom;
        return d;
}

static struct decision failing(struct decision d)
{
        d.fails = true;
        return d;
}

static struct decision not_so(const struct decide_ctx *m, const char *what)
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

/* --- how commands begin --- */

static struct decision begin_create(const struct decide_ctx *m)
{
        return m->state == STATE_PENDING ? call(CALL_CREATE) : done();
}

/* What there may be of it is on a node that is gone, and no driver of ours has it. */
static bool is_lost(const struct decide_ctx *m)
{
        return m->state == STATE_FAILED && str_eq(m->record->status.reason, STR(REASON_NODE_LOST));
}

static struct decision begin_delete(const struct decide_ctx *m)
{
        if (is_lost(m))
                return unregister();
        if (m->state == STATE_STOPPING || state_is_final(m->state))
                return call(CALL_DESTROY);
        return then_call(become(m, STATE_STOPPING, REASON_DELETED, STR_NULL), CALL_DESTROY);
}

static struct decision begin_pause(const struct decide_ctx *m)
{
        if (m->state != STATE_RUNNING)
                return not_so(m, "paused");
        if (!(m->w->caps & DRIVER_PAUSE))
                return refuse(ERR_UNSUPPORTED, "the driver of this sandbox cannot pause");
        return then_call(become(m, STATE_PAUSING, NULL, STR_NULL), CALL_PAUSE);
}

static struct decision begin_resume(const struct decide_ctx *m)
{
        if (m->state != STATE_PAUSED)
                return not_so(m, "resumed");
        return then_call(become(m, STATE_RESUMING, NULL, STR_NULL), CALL_RESUME);
}

bool state_is_ending(enum state s)
{
        return s == STATE_STOPPING || state_is_final(s);
}

static struct decision begin_renew(const struct decide_ctx *m)
{
        struct decision d = { .next = NEXT_DONE, .renews = true, .event = "sandbox.renewed" };

        if (state_is_ending(m->state))
                return not_so(m, "renewed");
        if (!m->record->expiry)
                return refuse(ERR_CONFLICT, "the sandbox never expires and cannot be renewed");
        if (expiry_at(m->now, m->w->expires, &d.expiry, &d.err) < 0)
                d.next = NEXT_REFUSE;
        return d;
}

static struct decision begin_patch(const struct decide_ctx *m)
{
        if (state_is_ending(m->state))
                return not_so(m, "changed");
        return (struct decision){ .next = NEXT_DONE, .patches = true, .event = "sandbox.metadata" };
}

static struct decision begin_snapshot(const struct decide_ctx *m)
{
        if (m->state != STATE_RUNNING)
                return not_so(m, "kept");
        if (!(m->w->caps & DRIVER_SNAPSHOT))
                return refuse(ERR_UNSUPPORTED, "the driver of this sandbox cannot take snapshots");
        return call(CALL_SNAPSHOT);
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

        /* It has ended in another way just now; who did that may have left it to us. */
        if (state_is_ending(m->state))
                return call(CALL_DESTROY);
        if (!x || !expiry_is_due(x, m->now)) /* renewed meanwhile */
                return done();
        return then_call(become(m, STATE_STOPPING, REASON_EXPIRED, STR("its time was over")),
                         CALL_DESTROY);
}

static struct decision begin_forget(const struct decide_ctx *m)
{
        if (is_lost(m))
                return unregister();
        return state_is_final(m->state) ? call(CALL_DESTROY) : done();
}

/* --- what the runtime shows --- */

typedef struct decision rule_fn(const struct decide_ctx *m, const struct driver_health *h);

static struct decision stay(const struct decide_ctx *m, const struct driver_health *h)
{
        return done();
}

static struct decision clear_away(const struct decide_ctx *m, const struct driver_health *h)
{
        return call(CALL_DESTROY);
}

/* Without the driver's notes nobody could go into it. */
static struct decision adopt(const struct decide_ctx *m, const struct driver_health *h)
{
        return call(m->w->found ? CALL_PING : CALL_DESTROY);
}

static struct decision runs(const struct decide_ctx *m, const struct driver_health *h)
{
        return become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
}

static struct decision rests(const struct decide_ctx *m, const struct driver_health *h)
{
        return become(m, STATE_PAUSED, REASON_PAUSED, STR_NULL);
}

/* From Running to Paused and back there are two steps. */
static struct decision via(const struct decide_ctx *m, enum state passing)
{
        struct decision d = become(m, passing, NULL, STR_NULL);

        d.next = NEXT_AGAIN;
        return d;
}

static struct decision was_paused(const struct decide_ctx *m, const struct driver_health *h)
{
        return via(m, STATE_PAUSING);
}

static struct decision was_resumed(const struct decide_ctx *m, const struct driver_health *h)
{
        return via(m, STATE_RESUMING);
}

/* A reason is a driver's constant, but it passed through memory of ours and must not kill us. */
static const char *good_reason(const char *reason, const char *otherwise)
{
        return reason && text_is_label(str_from(reason), REASON_MAX) ? reason : otherwise;
}

static struct decision died(const struct decide_ctx *m, const struct driver_health *h)
{
        struct decision d;

        if (h->life == RUNTIME_ENDED)
                d = become(m, STATE_TERMINATED, REASON_EXITED, h->message);
        else
                d = become(m, STATE_FAILED, good_reason(h->reason, REASON_DIED), h->message);
        return then_call(d, CALL_DESTROY);
}

static struct decision vanished(const struct decide_ctx *m, const struct driver_health *h)
{
        const struct driver_health *news = &m->w->health;

        if (news->life == RUNTIME_ENDED || news->life == RUNTIME_DEAD)
                return died(m, news);
        return become(m, STATE_FAILED, REASON_GONE, STR("the runtime does not have it any more"));
}

/* Stopping is not here: whatever the runtime shows, it is to be destroyed. */
static rule_fn *const rules[STATE_MAX_][RUNTIME_STATUS_MAX_] = {
        [STATE_PENDING] = { adopt, clear_away, clear_away, clear_away, clear_away },
        [STATE_RUNNING] = { stay, was_paused, died, died, vanished },
        [STATE_PAUSING] = { runs, rests, died, died, vanished },
        [STATE_PAUSED] = { was_resumed, stay, died, died, vanished },
        [STATE_RESUMING] = { runs, rests, died, died, vanished },
        [STATE_TERMINATED] = { clear_away, clear_away, clear_away, clear_away, stay },
        [STATE_FAILED] = { clear_away, clear_away, clear_away, clear_away, stay },
};

static struct decision by_life(const struct decide_ctx *m, const struct driver_health *h)
{
        if (m->state == STATE_STOPPING)
                return call(CALL_DESTROY);
        if (h->life < 0 || h->life >= RUNTIME_STATUS_MAX_)
                return later();
        return rules[m->state][h->life](m, h);
}

static struct decision begin_reconcile(const struct decide_ctx *m)
{
        if (m->state == STATE_STOPPING)
                return call(CALL_DESTROY);
        return m->w->health_known ? by_life(m, &m->w->health) : call(CALL_INSPECT);
}

/* --- what follows from the driver's answers --- */

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
        /* Drivers promise to leave nothing behind. A runtime that broke off may have. */
        if (m->a->result < 0)
                return then_call(failing(become(m, STATE_FAILED, create_reason(m->a->result),
                                                str_from(m->a->err->message))),
                                 CALL_DESTROY);
        d = become(m, STATE_RUNNING, REASON_RUNNING, STR_NULL);
        d.sets_handle = true;
        return d;
}

/* It is Stopping for as long as the runtime keeps it, so whoever looks at it is told why. A call that
 * we have canceled ourselves says nothing about the runtime. */
static struct decision not_destroyed(const struct decide_ctx *m)
{
        struct str why = str_from(m->a->err->message);
        struct decision d = later();

        if (m->state != STATE_STOPPING || m->a->result == ERR_RETURN(ERR_CANCELED)
            || str_eq(m->record->status.message, why))
                return d;
        d.explains = true;
        d.step = (struct status_step){ .state = STATE_STOPPING,
                                       .reason = m->record->status.reason,
                                       .message = why };
        d.event = "sandbox.state";
        return d;
}

static struct decision after_destroy(const struct decide_ctx *m)
{
        if (m->a->result < 0)
                return not_destroyed(m);
        if (m->w->command == COMMAND_DELETE || m->w->command == COMMAND_FORGET)
                return unregister();
        if (m->state == STATE_STOPPING)
                return str_eq(m->record->status.reason, STR(REASON_EXPIRED))
                               ? become(m, STATE_TERMINATED, REASON_EXPIRED,
                                        STR("its time was over"))
                               : unregister();
        if (state_is_final(m->state))
                return done();
        /* Pending, or what the record has become by a write that seemed to have failed. */
        return become(m, STATE_FAILED, REASON_INTERRUPTED,
                      STR("it was not finished, and has been undone"));
}

/* ERR_CONFLICT says that it is so already, by whomever. Any other failure leaves it open what the
 * runtime did: it is looked at; later, if somebody waits to destroy it: he may find that it was renewed,
 * or that his intent can't be written. */
static struct decision after_pause(const struct decide_ctx *m)
{
        bool pause = m->a->call == CALL_PAUSE;

        if (m->a->result == 0 || m->a->result == ERR_RETURN(ERR_CONFLICT))
                return pause ? rests(m, NULL) : runs(m, NULL);
        return m->w->preempted ? later() : call(CALL_INSPECT);
}

static struct decision after_inspect(const struct decide_ctx *m)
{
        int hoped = m->w->command == COMMAND_PAUSE    ? RUNTIME_PAUSED
                    : m->w->command == COMMAND_RESUME ? RUNTIME_RUNNING
                                                      : m->a->health.life;
        struct decision d;

        if (m->a->result < 0)
                return later();
        d = by_life(m, &m->a->health);
        d.fails |= m->a->health.life != hoped;
        return d;
}

static struct decision after_ping(const struct decide_ctx *m)
{
        struct decision d;

        if (m->a->result < 0)
                return call(CALL_DESTROY);
        d = runs(m, NULL);
        d.sets_handle = true;
        return d;
}

/* The sandbox is as it was; that it failed is for the snapshot's record. */
static struct decision after_snapshot(const struct decide_ctx *m)
{
        struct decision d = done();

        if (m->a->result < 0)
                return failing(d);
        d.event = "sandbox.snapshot";
        return d;
}

/* --- all together --- */

typedef struct decision decide_fn(const struct decide_ctx *m);

static decide_fn *const begins[COMMAND_MAX_] = {
        [COMMAND_CREATE] = begin_create,     [COMMAND_DELETE] = begin_delete,
        [COMMAND_PAUSE] = begin_pause,       [COMMAND_RESUME] = begin_resume,
        [COMMAND_RENEW] = begin_renew,       [COMMAND_PATCH] = begin_patch,
        [COMMAND_ACCESS] = begin_access,     [COMMAND_EXPIRE] = begin_expire,
        [COMMAND_FORGET] = begin_forget,     [COMMAND_RECONCILE] = begin_reconcile,
        [COMMAND_SNAPSHOT] = begin_snapshot,
};

static decide_fn *const afters[CALL_MAX_] = {
        [CALL_CREATE] = after_create,     [CALL_DESTROY] = after_destroy,
        [CALL_PAUSE] = after_pause,       [CALL_RESUME] = after_pause,
        [CALL_INSPECT] = after_inspect,   [CALL_PING] = after_ping,
        [CALL_SNAPSHOT] = after_snapshot,
};

static bool stays_in_runtime(const struct decision *d, enum state now)
{
        enum state next = d->changes ? d->step.state : now;

        return (d->next == NEXT_DONE || d->next == NEXT_AGAIN) && !state_is_ending(next);
}

/* What goes on after a reboot needs its end on the new boot's clock. */
static void adopt_expiry(const struct decide_ctx *m, struct decision *d)
{
        if (!m->record->expiry || !stays_in_runtime(d, m->state))
                return;
        d->expiry = *m->record->expiry;
        d->renews = expiry_adopt(&d->expiry, m->now);
}

struct decision decide(const struct timestamp *now, const struct sandbox *record,
                       const struct command_args *w, const struct call_result *answer)
{
        struct decide_ctx m = { .now = now, .record = record, .w = w, .a = answer };
        struct decision d;

        if (!record)
                return w->command >= COMMAND_ACCESS
                               ? done()
                               : refuse(ERR_NOT_FOUND, "there is no such sandbox");
        m.state = (enum state) record->status.state;
        d = answer ? afters[answer->call](&m) : begins[w->command](&m);
        if (w->command == COMMAND_RECONCILE)
                adopt_expiry(&m, &d);
        return d;
}

struct decision decide_unwritten(const struct command_args *w, const struct call_result *answer)
{
        /* It runs, and nobody would know of it after the next start but the runtime: undone now. */
        if (answer && answer->call == CALL_CREATE && answer->result == 0)
                return call(CALL_DESTROY);
        /* The intent was not written, so nothing was begun. What nobody waits for is tried again. */
        if (!answer && w->command < COMMAND_ACCESS)
                return failing(done());
        return later();
}

int decide_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e)
{
        enum state s = (enum state) record->status.state;

        if (s == STATE_RUNNING)
                return 0;
        if (state_is_ending(s))
                return err_set(e, ERR_NOT_FOUND, "the sandbox is %s", state_to_string((int) s));
        if (s == STATE_PAUSED)
                return err_set(e, ERR_CONFLICT, "the sandbox is Paused: resume it first");
        *ret_retry_after = USEC_PER_SEC;
        return err_set(e, ERR_UNAVAILABLE, "the sandbox is %s: try again in a moment",
                       state_to_string((int) s));
}
