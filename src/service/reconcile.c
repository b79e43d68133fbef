/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: making the records agree with the runtimes.
 *
 * The problem: hutchd may be killed at any moment, sandboxes die by themselves, and someone may remove them behind
 * hutchd's back. The record of each sandbox and its runtime status then disagree. What to do about each combination is
 * the crash table in decide.c; this file finds the disagreements.
 *
 * One sandbox is compared when its driver reports a death, and when an operation on it failed (reconcile__sandbox).
 * All are compared at the start, before the first command, and every reconcile_every (a run):
 *
 *         scan all drivers ─► index the results by id ─► walk the records ─► walk what was found and has no record
 *
 * A run works in slices, because there may be tens of thousands. What agrees costs a comparison. What does not becomes
 * an operation under the sandbox's operation lock, at most BACKGROUND_MAX at a time.
 *
 * The invariant: only a current observation changes a record. A scan is old by the time it is compared; a sandbox that
 * was created or deleted meanwhile must not be taken for gone, or for new. So the operation asks the driver again,
 * except at the start, when nothing else runs. Death reports are hints in the same way: they supply the reason if the
 * runtime has forgotten it.
 *
 * A driver whose scan fails says nothing about its sandboxes: they stay as they are, and the next run comes soon.
 *
 * Crash: a run keeps nothing. The next start runs again.
 */

#include "service/service_impl.h"

#include "base/base.h"

#define RECONCILE_SLICE USEC_PER_MSEC
#define RECONCILE_RETRY (10 * USEC_PER_SEC)

/* --- one sandbox --- */

void reconcile__sandbox(struct sandbox_ctl *ctl, const struct driver_health *health)
{
        struct sandbox_op *o;
        struct str cut;

        list_for_each (n, &ctl->waiting)
                if (container_of(n, struct sandbox_op, lock_node)->args.command
                    == COMMAND_RECONCILE)
                        return;
        o = sandbox_op__new(ctl->service, ctl, COMMAND_RECONCILE);
        o->background = true;
        if (health) {
                cut = str_utf8_cut(health->message, sizeof(o->health_message));
                o->args.health = *health;
                o->args.health.message = str_of(o->health_message, cut.n);
                if (cut.n > 0)
                        memcpy(o->health_message, cut.p, cut.n);
        }
        sandbox_op__start(o);
}

/* --- a run over all --- */

struct found {
        struct map_node by_id;
        struct list node; /* reconcile_run.found */
        struct sandbox *record;
        int status;
};

struct scanning {
        struct driver_scan scan;
        struct reconcile_run *run;
        struct driver_slot *slot;
        bool ok;
        struct driver_found *results; /* moved out of the scan, consumed in slices */
        size_t n, taken;
};

struct reconcile_run {
        struct service *service;
        struct service_start *start; /* NULL: a periodic run */
        struct scanning scans[SERVICE_DRIVERS_MAX];
        size_t n_scans;
        size_t scans_left;
        struct map by_id; /* struct found */
        struct list found;
        char after[SANDBOX_ID_MAX + 1]; /* the last record that was compared */
        bool walked;                    /* all records were */
        size_t ops;                     /* in progress */
        struct service_start counts;
        struct net_task step;
};

static void found_free(struct reconcile_run *r, struct found *f)
{
        map_remove(&r->by_id, &f->by_id);
        list_remove(&f->node);
        sandbox_free(f->record);
        free(f);
}

static void run_end(struct reconcile_run *r)
{
        struct service *s = r->service;
        struct service_start *start = r->start;
        usec_t wait = s->config.reconcile_every ? s->config.reconcile_every : USEC_INFINITY;

        net_task_cancel(&r->step);
        for (size_t i = 0; i < r->n_scans; i++) {
                struct scanning *x = &r->scans[i];

                for (; x->taken < x->n; x->taken++)
                        sandbox_free(x->results[x->taken].record);
                free(x->results);
                if (!x->ok)
                        wait = MIN_OF(wait, RECONCILE_RETRY);
                else if (s->phase < PHASE_STOPPING)
                        snapshot__reconcile(s, x->slot->driver);
        }
        while (!list_empty(&r->found))
                found_free(r, container_of(list_first(&r->found), struct found, node));
        map_done(&r->by_id);
        s->reconcile = NULL;
        s->stats.reconciles++;
        if (start) {
                start->adopted = r->counts.adopted;
                start->added = r->counts.added;
                start->gone = r->counts.gone;
                start->undone = r->counts.undone;
                start->finished = r->counts.finished;
                if (s->phase == PHASE_STARTING)
                        s->phase = PHASE_READY;
                op_finish(&start->op, s->phase == PHASE_READY ? 0
                                                              : err_set(&start->err, ERR_CANCELED,
                                                                        "the server is stopping"));
        }
        if (s->phase == PHASE_READY)
                deadline_set(&s->schedule, &s->reconcile_due,
                             usec_add(clock_mono(s->config.clock), wait));
        free(r);
        service__settle(s);
}

/* --- operations of a run --- */

static void run_op_ended(struct sandbox_op *o)
{
        struct reconcile_run *r = o->ended_data;
        const struct sandbox *record = sandbox_ctl__record(o->ctl);
        bool final = record && state_is_final((enum state) record->status.state);

        r->ops--;
        net_task_queue(r->service->config.loop, &r->step);
        if (o->decision.next == NEXT_LATER)
                return; /* not settled: another operation will follow */
        if (o->was == STATE_PENDING && final)
                r->counts.undone++;
        else if (o->was == STATE_STOPPING)
                r->counts.finished++;
        else if (!record || final)
                r->counts.gone += !state_is_final((enum state) o->was);
        else
                r->counts.adopted++;
}

static void run_start_op(struct reconcile_run *r, struct sandbox_ctl *ctl, struct found *f,
                         const struct command_args *args)
{
        struct sandbox_op *o = sandbox_op__new(r->service, ctl, COMMAND_RECONCILE);
        const struct sandbox *record = sandbox_ctl__record(ctl);

        r->ops++;
        o->args = *args;
        o->found = f ? TAKE_PTR(f->record) : NULL;
        o->was = record ? record->status.state : STATE_PENDING;
        o->background = true;
        o->ended = run_op_ended;
        o->ended_data = r;
        sandbox_op__start(o);
}

/* --- comparing --- */

static const struct scanning *scan_of(const struct reconcile_run *r, struct str driver)
{
        for (size_t i = 0; i < r->n_scans; i++)
                if (str_eq(str_from(driver_name(r->scans[i].slot->driver)), driver))
                        return &r->scans[i];
        return NULL;
}

/* Whether the scan is all there is to know: at the start. But only inspect says why a sandbox has died; and one that
 * seems gone may be among those that the scan could not read. */
static bool scan_suffices(const struct reconcile_run *r, const struct scanning *x, int status)
{
        return r->start && status != RUNTIME_ENDED && status != RUNTIME_DEAD
               && (status != RUNTIME_GONE || x->scan.skipped == 0);
}

static void reconcile_record(struct reconcile_run *r, const struct sandbox *record)
{
        struct service *s = r->service;
        struct sandbox_ctl *ctl = sandbox_ctl__obtain(s, record->id);
        struct map_node *n = map_get(&r->by_id, record->id);
        struct found *f = n ? container_of(n, struct found, by_id) : NULL;
        const struct scanning *scan = scan_of(r, record->driver);
        struct command_args args = { .command = COMMAND_RECONCILE,
                                     .found = f != NULL,
                                     .health_known = true,
                                     .health.status = f ? f->status : RUNTIME_GONE };

        if (r->start)
                sandbox_ctl__settle(ctl);
        if (scan && scan->ok) {
                struct timestamp now = service__now(s);
                struct decision d = decide(&now, record, &args, NULL);

                if (d.next == NEXT_DONE && !d.changes && !d.renews) {
                        r->counts.adopted += state_is_live((enum state) record->status.state);
                } else if (ctl->n_ops == 0 && ctl->retry_at == 0) {
                        args.health_known = scan_suffices(r, scan, args.health.status);
                        run_start_op(r, ctl, f, &args);
                }
        }
        if (f)
                found_free(r, f);
}

static void reconcile_found(struct reconcile_run *r, struct found *f)
{
        struct service *s = r->service;
        struct command_args args = { .command = COMMAND_RECONCILE,
                                     .found = true,
                                     .health.status = f->status };

        if (!registry_peek(s->config.registry, f->record->id)
            && !sandbox_ctl__get(s, f->record->id)) {
                r->counts.added += r->start != NULL;
                args.health_known = scan_suffices(r, scan_of(r, f->record->driver), f->status);
                run_start_op(r, sandbox_ctl__obtain(s, f->record->id), f, &args);
        }
        found_free(r, f);
}

/* --- the walk --- */

/* One result of a scan into the index; false if all are there. */
static bool index_next(struct reconcile_run *r)
{
        for (size_t i = 0; i < r->n_scans; i++) {
                struct scanning *x = &r->scans[i];
                struct driver_found *result;
                struct found *f;

                if (x->taken == x->n)
                        continue;
                result = &x->results[x->taken++];
                if (!str_eq(result->record->driver, str_from(driver_name(x->slot->driver)))
                    || map_get(&r->by_id, result->record->id)) {
                        sandbox_freep(&result->record);
                        return true;
                }
                f = xnew(struct found);
                f->record = TAKE_PTR(result->record);
                f->status = result->status;
                list_append(&r->found, &f->node);
                map_add(&r->by_id, &f->by_id, f->record->id);
                return true;
        }
        return false;
}

/* NULL when all records were compared. */
static const struct sandbox *next_record(struct reconcile_run *r)
{
        const struct sandbox *record =
                r->walked ? NULL
                          : registry_next(r->service->config.registry,
                                          r->after[0] ? str_from(r->after) : STR_NULL);

        r->walked = !record;
        if (record) {
                memcpy(r->after, record->id.p, record->id.n);
                r->after[record->id.n] = '\0';
        }
        return record;
}

static void run_step(struct net_task *t)
{
        struct reconcile_run *r = container_of(t, struct reconcile_run, step);
        uint64_t begun = uv_hrtime();
        bool stopping = r->service->phase >= PHASE_STOPPING;
        const struct sandbox *record;

        while (!stopping && r->ops < BACKGROUND_MAX) {
                if (index_next(r))
                        ;
                else if ((record = next_record(r)))
                        reconcile_record(r, record);
                else if (!list_empty(&r->found))
                        reconcile_found(r, container_of(list_first(&r->found), struct found, node));
                else
                        break;
                if ((uv_hrtime() - begun) / 1000 >= RECONCILE_SLICE) {
                        net_task_queue(r->service->config.loop, t);
                        return;
                }
        }
        if (r->ops == 0 && (stopping || (r->walked && list_empty(&r->found))))
                run_end(r);
}

/* --- scans --- */

static void scanned(struct op *op, int result)
{
        struct scanning *x = container_of(op, struct scanning, scan.req.op);
        struct reconcile_run *r = x->run;
        const struct log_ctx *log = r->service->config.log;

        x->ok = result == 0;
        if (result < 0)
                (void) log_err(result, log, "scan of driver '%s' failed: %s",
                               driver_name(x->slot->driver), x->scan.req.err.message);
        if (x->ok) { /* moved: the scan frees its results when this returns */
                x->n = x->scan.n;
                x->results = xcalloc(MAX_OF(x->n, 1u), sizeof(*x->results));
                for (size_t i = 0; i < x->n; i++) {
                        x->results[i] = x->scan.found[i];
                        x->scan.found[i].record = NULL;
                }
        }
        if (x->scan.skipped > 0)
                log_warn(log, "driver '%s' has %zu sandboxes that cannot be read, ignoring",
                         driver_name(x->slot->driver), x->scan.skipped);
        if (--r->scans_left == 0)
                net_task_queue(r->service->config.loop, &r->step);
}

static void run_start(struct service *s, struct service_start *start)
{
        struct reconcile_run *r = xnew(struct reconcile_run);

        r->service = s;
        r->start = start;
        map_init(&r->by_id);
        list_init(&r->found);
        net_task_init(&r->step, run_step);
        s->reconcile = r;
        r->n_scans = r->scans_left = s->n_drivers;
        for (size_t i = 0; i < r->n_scans; i++) {
                struct scanning *x = &r->scans[i];

                x->run = r;
                x->slot = &s->drivers[i];
                op_init(&x->scan.req.op, scanned);
                driver_start(x->slot->driver, driver_scan_req(&x->scan));
        }
        if (r->n_scans == 0)
                net_task_queue(s->config.loop, &r->step);
}

void reconcile__due(struct deadline *d)
{
        struct service *s = container_of(d, struct service, reconcile_due);

        if (!s->reconcile)
                run_start(s, NULL);
}

void reconcile__stop(struct service *s)
{
        struct reconcile_run *r = s->reconcile;

        if (!r)
                return;
        for (size_t i = 0; i < r->n_scans; i++)
                if (op_pending(&r->scans[i].scan.req.op))
                        op_cancel(&r->scans[i].scan.req.op);
        if (r->scans_left == 0)
                net_task_queue(s->config.loop, &r->step);
}

void service_start(struct service *s, struct service_start *st)
{
        ASSERT(s->phase == PHASE_NEW);
        s->phase = PHASE_STARTING;
        op_begin(&st->op, s->config.loop, /* cancel= */ NULL);
        run_start(s, st);
}
