/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records against the runtime: of one sandbox, after news or a failure, and of all, at the start and
 * from time to time.
 *
 * The look over all asks every driver what it has, puts that in order, then walks the records, then what
 * was found and has none; a slice at a time. What agrees costs a comparison. What does not becomes a job in its sandbox's turn; except
 * at the start, when nothing else happens, that job asks the driver again: the scan is old by then,
 * and a sandbox that was made or deleted while it ran is not to be taken for gone, or for new.
 */

#include "service/service_impl.h"

#include "base/base.h"

#define RECONCILE_SLICE USEC_PER_MSEC
#define RECONCILE_RETRY (10 * USEC_PER_SEC)

/* --- one --- */

static bool reconcile_waits(const struct sandbox_ctl *ctl)
{
        list_for_each (n, &ctl->waiting)
                if (container_of(n, struct sandbox_op, lock_node)->args.command
                    == COMMAND_RECONCILE)
                        return true;
        return false;
}

void reconcile__sandbox(struct sandbox_ctl *ctl, const struct driver_health *health)
{
        struct sandbox_op *o;
        struct str cut;

        if (reconcile_waits(ctl))
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

/* --- all --- */

struct found {
        struct map_node by_id;
        struct list node; /* look->found */
        struct sandbox *record;
        int life;
};

struct scanning {
        struct driver_scan scan;
        struct reconcile_run *run;
        struct driver_slot *slot;
        bool ok;
        struct driver_found *results; /* taken over from the scan, to be taken in slices */
        size_t n, taken;
};

struct reconcile_run {
        struct service *service;
        struct service_start *start; /* NULL: one of those from time to time */
        struct scanning scans[SERVICE_DRIVERS_MAX];
        size_t scans_left;
        struct map by_id;
        struct list found;
        char after[SANDBOX_ID_MAX + 1]; /* the last record that was looked at */
        bool walked;
        size_t ops;
        struct service_start counts;
        struct net_task step;
};

static void found_free(struct reconcile_run *l, struct found *f)
{
        map_remove(&l->by_id, &f->by_id);
        list_remove(&f->node);
        sandbox_free(f->record);
        free(f);
}

static void results_free(struct scanning *x)
{
        for (; x->taken < x->n; x->taken++)
                sandbox_free(x->results[x->taken].record);
        free(x->results);
}

/* Soon, if a driver could not tell what it has. */
static usec_t next_reconcile(const struct reconcile_run *l)
{
        const struct service *s = l->service;
        usec_t wait = s->config.reconcile_every ? s->config.reconcile_every : USEC_INFINITY;

        for (size_t i = 0; i < s->n_drivers; i++)
                if (!l->scans[i].ok)
                        wait = MIN_OF(wait, RECONCILE_RETRY);
        return usec_add(clock_mono(s->config.clock), wait);
}

static void reconcile_end(struct reconcile_run *l)
{
        struct service *s = l->service;
        struct service_start *start = l->start;

        net_task_cancel(&l->step);
        for (size_t i = 0; i < s->n_drivers; i++) {
                results_free(&l->scans[i]);
                if (l->scans[i].ok && s->phase < PHASE_STOPPING)
                        snapshot__reconcile(s, l->scans[i].slot->driver);
        }
        while (!list_empty(&l->found))
                found_free(l, container_of(list_first(&l->found), struct found, node));
        map_done(&l->by_id);
        s->reconcile = NULL;
        s->stats.reconciles++;
        if (start) {
                start->adopted = l->counts.adopted;
                start->added = l->counts.added;
                start->gone = l->counts.gone;
                start->undone = l->counts.undone;
                start->finished = l->counts.finished;
                if (s->phase == PHASE_STARTING)
                        s->phase = PHASE_READY;
                op_finish(&start->op, s->phase == PHASE_READY ? 0
                                                              : err_set(&start->err, ERR_CANCELED,
                                                                        "the server is stopping"));
        }
        if (s->phase == PHASE_READY)
                deadline_set(&s->schedule, &s->reconcile_due, next_reconcile(l));
        free(l);
        service__settle(s);
}

/* --- the jobs of a look --- */

static void count(struct reconcile_run *l, const struct sandbox_op *o)
{
        const struct sandbox *record = sandbox_ctl__record(o->ctl);
        bool final = record && state_is_final((enum state) record->status.state);

        if (o->decision.next == NEXT_LATER)
                return;
        if (o->was == STATE_PENDING && final)
                l->counts.undone++;
        else if (o->was == STATE_STOPPING)
                l->counts.finished++;
        else if (!record || final)
                l->counts.gone += !state_is_final((enum state) o->was);
        else
                l->counts.adopted++;
}

static void reconcile_op_ended(struct sandbox_op *o)
{
        struct reconcile_run *l = o->ended_data;

        count(l, o);
        l->ops--;
        net_task_queue(l->service->config.loop, &l->step);
}

static void start_op(struct reconcile_run *l, struct sandbox_ctl *ctl, struct found *f,
                     const struct command_args *w)
{
        struct sandbox_op *o = sandbox_op__new(l->service, ctl, COMMAND_RECONCILE);

        l->ops++;
        o->args = *w;
        o->found = f ? TAKE_PTR(f->record) : NULL;
        o->was = w->found && !sandbox_ctl__record(ctl) ? STATE_PENDING
                                                       : sandbox_ctl__record(ctl)->status.state;
        o->background = true;
        o->ended = reconcile_op_ended;
        o->ended_data = l;
        sandbox_op__start(o);
}

/* --- what is to be done about one --- */

static const struct scanning *scan_of(const struct reconcile_run *l, struct str driver)
{
        for (size_t i = 0; i < l->service->n_drivers; i++)
                if (str_eq(str_from(driver_name(l->scans[i].slot->driver)), driver))
                        return &l->scans[i];
        return NULL;
}

static struct command_args args_of(const struct found *f)
{
        return (struct command_args){ .command = COMMAND_RECONCILE,
                                      .found = f != NULL,
                                      .health_known = true,
                                      .health.life = f ? f->life : RUNTIME_GONE };
}

/* Why one has died, only the driver can tell; and whether one is gone that may be among those that the
 * scan couldn't read. */
static bool has_more_to_tell(const struct scanning *x, int life)
{
        return life == RUNTIME_ENDED || life == RUNTIME_DEAD
               || (life == RUNTIME_GONE && x->scan.skipped > 0);
}

static bool agrees(const struct service *s, const struct sandbox *record,
                   const struct command_args *w)
{
        struct timestamp now = service__now(s);
        struct decision d = decide(&now, record, w, NULL);

        return d.next == NEXT_DONE && !d.changes && !d.renews;
}

static void reconcile_record(struct reconcile_run *l, const struct sandbox *record)
{
        struct service *s = l->service;
        struct sandbox_ctl *ctl = sandbox_ctl__obtain(s, record->id);
        struct map_node *n = map_get(&l->by_id, record->id);
        struct found *f = n ? container_of(n, struct found, by_id) : NULL;
        const struct scanning *scan = scan_of(l, record->driver);
        struct command_args w = args_of(f);

        if (l->start)
                sandbox_ctl__settle(ctl);
        if (scan && scan->ok && agrees(s, record, &w)) {
                l->counts.adopted += state_is_live((enum state) record->status.state);
        } else if (scan && scan->ok && ctl->n_ops == 0 && ctl->retry_at == 0) {
                w.health_known = l->start && !has_more_to_tell(scan, w.health.life);
                start_op(l, ctl, f, &w);
        }
        if (f)
                found_free(l, f);
}

static void reconcile_found(struct reconcile_run *l, struct found *f)
{
        struct service *s = l->service;
        struct command_args w = args_of(f);

        if (!registry_peek(s->config.registry, f->record->id)
            && !sandbox_ctl__get(s, f->record->id)) {
                l->counts.added += l->start != NULL;
                w.health_known = l->start
                                 && !has_more_to_tell(scan_of(l, f->record->driver), f->life);
                start_op(l, sandbox_ctl__obtain(s, f->record->id), f, &w);
        }
        found_free(l, f);
}

/* --- the walk --- */

static void take_found(struct scanning *x, struct driver_found *found)
{
        struct reconcile_run *l = x->run;
        struct str driver = str_from(driver_name(x->slot->driver));
        struct found *f;

        if (!str_eq(found->record->driver, driver) || map_get(&l->by_id, found->record->id)) {
                sandbox_freep(&found->record);
                return;
        }
        f = xnew(struct found);
        f->record = TAKE_PTR(found->record);
        f->life = found->life;
        list_append(&l->found, &f->node);
        map_add(&l->by_id, &f->by_id, f->record->id);
}

static bool take_next(struct reconcile_run *l)
{
        for (size_t i = 0; i < l->service->n_drivers; i++) {
                struct scanning *x = &l->scans[i];

                if (x->taken == x->n)
                        continue;
                take_found(x, &x->results[x->taken++]);
                return true;
        }
        return false;
}

static bool reconcile_next(struct reconcile_run *l)
{
        struct service *s = l->service;
        const struct sandbox *record;

        if (take_next(l))
                return true;
        if (!l->walked) {
                record = registry_next(s->config.registry,
                                       l->after[0] ? str_from(l->after) : STR_NULL);
                if (record) {
                        memcpy(l->after, record->id.p, record->id.n);
                        l->after[record->id.n] = '\0';
                        reconcile_record(l, record);
                        return true;
                }
                l->walked = true;
        }
        if (list_empty(&l->found))
                return false;
        reconcile_found(l, container_of(list_first(&l->found), struct found, node));
        return true;
}

static void reconcile_step(struct net_task *t)
{
        struct reconcile_run *l = container_of(t, struct reconcile_run, step);
        uint64_t begun = uv_hrtime();
        bool stopping = l->service->phase >= PHASE_STOPPING;

        while (!stopping && l->ops < BACKGROUND_MAX) {
                if (!reconcile_next(l))
                        break;
                if ((uv_hrtime() - begun) / 1000 >= RECONCILE_SLICE) {
                        net_task_queue(l->service->config.loop, t);
                        return;
                }
        }
        if (l->ops == 0 && (stopping || (l->walked && list_empty(&l->found))))
                reconcile_end(l);
}

/* --- scans --- */

/* Ours before they are freed with the scan; nothing is done about them yet, there may be many. */
static void take_over(struct scanning *x)
{
        x->n = x->scan.n;
        x->results = xcalloc(MAX_OF(x->n, 1u), sizeof(*x->results));
        for (size_t i = 0; i < x->n; i++) {
                x->results[i] = x->scan.found[i];
                x->scan.found[i].record = NULL;
        }
}

static void scanned(struct op *op, int result)
{
        struct scanning *x = container_of(op, struct scanning, scan.req.op);
        struct reconcile_run *l = x->run;
        const struct log_ctx *log = l->service->config.log;

        x->ok = result == 0;
        if (result < 0)
                (void) log_err(result, log, "driver '%s' cannot tell what it has: %s",
                               driver_name(x->slot->driver), x->scan.req.err.message);
        else
                take_over(x);
        if (x->scan.skipped > 0)
                log_warn(log, "driver '%s' has %zu sandboxes that cannot be read: left alone",
                         driver_name(x->slot->driver), x->scan.skipped);
        if (--l->scans_left == 0)
                net_task_queue(l->service->config.loop, &l->step);
}

static void reconcile_start(struct service *s, struct service_start *start)
{
        struct reconcile_run *l = xnew(struct reconcile_run);

        l->service = s;
        l->start = start;
        map_init(&l->by_id);
        list_init(&l->found);
        net_task_init(&l->step, reconcile_step);
        s->reconcile = l;
        l->scans_left = s->n_drivers;
        for (size_t i = 0; i < s->n_drivers; i++) {
                struct scanning *x = &l->scans[i];

                x->run = l;
                x->slot = &s->drivers[i];
                op_init(&x->scan.req.op, scanned);
                driver_scan(x->slot->driver, &x->scan);
        }
        if (s->n_drivers == 0)
                net_task_queue(s->config.loop, &l->step);
}

void reconcile__due(struct deadline *d)
{
        struct service *s = container_of(d, struct service, reconcile_due);

        if (!s->reconcile)
                reconcile_start(s, NULL);
}

void reconcile__stop(struct service *s)
{
        struct reconcile_run *l = s->reconcile;

        if (!l)
                return;
        for (size_t i = 0; i < s->n_drivers; i++)
                if (op_pending(&l->scans[i].scan.req.op))
                        op_cancel(&l->scans[i].scan.req.op);
        if (l->scans_left == 0)
                net_task_queue(s->config.loop, &l->step);
}

/* --- the start --- */

void service_start(struct service *s, struct service_start *st)
{
        ASSERT(s->phase == PHASE_NEW);
        s->phase = PHASE_STARTING;
        op_begin(&st->op, s->config.loop, /* cancel= */ NULL);
        reconcile_start(s, st);
}
