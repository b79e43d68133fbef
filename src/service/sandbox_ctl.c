/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The controller of one sandbox: its two locks (sandbox_op.c), its deadline, and what it costs its tenant.
 *
 * There is one for each record, and for each create that has no record yet. Everything but the locks follows from
 * the record: sandbox_ctl__settle is called whenever the record has changed, and computes it anew.
 */

#include "service/service_impl.h"

#include "base/base.h"

static void ctl_due(struct deadline *d);

struct sandbox_ctl *sandbox_ctl__get(const struct service *s, struct str id)
{
        struct map_node *n = map_get(&s->ctls, id);

        return n ? container_of(n, struct sandbox_ctl, by_id) : NULL;
}

struct sandbox_ctl *sandbox_ctl__obtain(struct service *s, struct str id)
{
        struct sandbox_ctl *ctl = sandbox_ctl__get(s, id);

        if (ctl)
                return ctl;
        ASSERT(sandbox_id_is_valid(id));
        ctl = xnew(struct sandbox_ctl);
        ctl->service = s;
        memcpy(ctl->id, id.p, id.n);
        list_init(&ctl->waiting);
        list_init(&ctl->writers);
        deadline_init(&ctl->deadline, ctl_due);
        map_add(&s->ctls, &ctl->by_id, str_of(ctl->id, id.n));
        return ctl;
}

const struct sandbox *sandbox_ctl__record(const struct sandbox_ctl *ctl)
{
        return registry_peek(ctl->service->config.registry, ctl->by_id.key);
}

static void ctl_free(struct sandbox_ctl *ctl)
{
        struct service *s = ctl->service;

        deadline_clear(&s->schedule, &ctl->deadline);
        tenants_uncharge(&s->tenants, &ctl->charge);
        tenants_remove_tombstone(&s->tenants, &ctl->tombstone);
        history_done(&ctl->history);
        map_remove(&s->ctls, &ctl->by_id);
        free(ctl);
}

/* --- the deadline --- */

static usec_t deadline_of(const struct sandbox_ctl *ctl, const struct sandbox *record,
                          const struct timestamp *now)
{
        enum state state = (enum state) record->status.state;

        if (state_is_final(state)) {
                /* On the wall clock, which also counts after a restart: no sandbox's end depends on it. */
                usec_t since = (usec_t) record->status.changed_ms * USEC_PER_MSEC;
                usec_t age = now->wall > since ? now->wall - since : 0;
                usec_t ttl = ctl->early ? 0 : ctl->service->config.tombstone_for;

                return usec_add(now->mono, ttl > age ? ttl - age : 0);
        }
        if (state == STATE_STOPPING || !record->expiry)
                return USEC_INFINITY;
        return expiry_deadline(record->expiry, now);
}

static void start_background(struct sandbox_ctl *ctl, enum command c)
{
        struct sandbox_op *o = sandbox_op__new(ctl->service, ctl, c);

        o->background = true;
        sandbox_op__start(o);
}

static void ctl_due(struct deadline *d)
{
        struct sandbox_ctl *ctl = container_of(d, struct sandbox_ctl, deadline);
        const struct sandbox *record = sandbox_ctl__record(ctl);
        struct timestamp now = service__now(ctl->service);
        enum state state;

        if (!record || ctl->n_preempting > 0)
                return;
        state = (enum state) record->status.state;
        if (!state_is_ending(state) && record->expiry && expiry_is_due(record->expiry, &now)) {
                ctl->retry_at = 0;
                start_background(ctl, COMMAND_EXPIRE);
        } else if (!ctl->current) { /* else its end sets the deadline again */
                ctl->retry_at = 0;
                if (state_is_final(state) && deadline_of(ctl, record, &now) <= now.mono)
                        start_background(ctl, COMMAND_FORGET);
                else
                        reconcile__sandbox(ctl, NULL);
        }
}

/* --- what follows from the record --- */

static void settle_tombstone(struct sandbox_ctl *ctl, const struct sandbox *record)
{
        struct service *s = ctl->service;
        struct sandbox_ctl *oldest;
        struct tombstone *excess;

        tenants_uncharge(&s->tenants, &ctl->charge);
        if (!ctl->early)
                tenants_add_tombstone(&s->tenants, &ctl->tombstone, record->tenant,
                                      record->status.changed_ms);
        excess = tenants_excess_tombstone(&ctl->tombstone, s->config.tombstones_max);
        if (!excess)
                return;
        oldest = container_of(excess, struct sandbox_ctl, tombstone);
        tenants_remove_tombstone(&s->tenants, excess);
        oldest->early = true;
        deadline_set(&s->schedule, &oldest->deadline, clock_mono(s->config.clock));
}

void sandbox_ctl__settle(struct sandbox_ctl *ctl)
{
        struct service *s = ctl->service;
        const struct sandbox *record = sandbox_ctl__record(ctl);
        bool registers = ctl->current && ctl->current->registers;
        struct timestamp now = service__now(s);
        usec_t at;

        if (!record) {
                deadline_clear(&s->schedule, &ctl->deadline);
                if (!registers) { /* else there will be one */
                        tenants_uncharge(&s->tenants, &ctl->charge);
                        tenants_remove_tombstone(&s->tenants, &ctl->tombstone);
                }
                if (ctl->n_ops == 0)
                        ctl_free(ctl);
                return;
        }
        if (state_is_final((enum state) record->status.state))
                settle_tombstone(ctl, record);
        else if (!ctl->charge.tenant)
                tenants_charge_existing(&s->tenants, record->tenant, &record->limits, &ctl->charge);
        at = deadline_of(ctl, record, &now);
        /* What is overdue and has failed is not tried again at once. */
        if (ctl->retry_at > 0)
                at = at <= now.mono ? ctl->retry_at : MIN_OF(at, ctl->retry_at);
        if (ctl->n_preempting > 0)
                at = USEC_INFINITY; /* a delete or an expiry is under way */
        deadline_set(&s->schedule, &ctl->deadline, at);
}

void sandbox_ctl__free_all(struct service *s)
{
        for (const struct sandbox *r = registry_next(s->config.registry, STR_NULL); r;
             r = registry_next(s->config.registry, r->id)) {
                struct sandbox_ctl *ctl = sandbox_ctl__get(s, r->id);

                if (ctl)
                        ctl_free(ctl);
        }
        ASSERT(s->ctls.n == 0); /* without operations, no controller is left without its record */
}
