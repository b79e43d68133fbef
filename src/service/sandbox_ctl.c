/* SPDX-License-Identifier: Apache-2.0 */

/* Places: one for each record, and for each create that has none yet. */

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
        struct sandbox_ctl *p = sandbox_ctl__get(s, id);

        if (p)
                return p;
        ASSERT(sandbox_id_is_valid(id));
        p = xnew(struct sandbox_ctl);
        p->service = s;
        memcpy(p->id, id.p, id.n);
        list_init(&p->waiting);
        list_init(&p->writers);
        deadline_init(&p->deadline, ctl_due);
        map_add(&s->ctls, &p->by_id, str_of(p->id, id.n));
        return p;
}

const struct sandbox *sandbox_ctl__record(const struct sandbox_ctl *p)
{
        return registry_peek(p->service->config.registry, p->by_id.key);
}

static void ctl_free(struct sandbox_ctl *p)
{
        struct service *s = p->service;

        deadline_clear(&s->schedule, &p->deadline);
        tenants_uncharge(&s->tenants, &p->charge);
        tenants_remove_tombstone(&s->tenants, &p->tombstone);
        history_done(&p->history);
        map_remove(&s->ctls, &p->by_id);
        free(p);
}

/* --- what is due --- */

/* The wall clock counts here, as it does after a restart: nobody's life depends on it. */
static usec_t tombstone_end(const struct service *s, const struct sandbox *record,
                            const struct timestamp *now)
{
        usec_t since = (usec_t) record->status.changed_ms * USEC_PER_MSEC;
        usec_t age = now->wall > since ? now->wall - since : 0;
        usec_t whole = s->config.tombstone_for;

        return usec_add(now->mono, whole > age ? whole - age : 0);
}

static usec_t deadline_of(const struct sandbox_ctl *p, const struct sandbox *record,
                          const struct timestamp *now)
{
        enum state state = (enum state) record->status.state;

        if (state_is_final(state))
                return p->early ? now->mono : tombstone_end(p->service, record, now);
        if (state == STATE_STOPPING || !record->expiry)
                return USEC_INFINITY;
        return expiry_deadline(record->expiry, now);
}

static void set_deadline(struct sandbox_ctl *p, const struct sandbox *record)
{
        struct timestamp now = service__now(p->service);
        usec_t at = deadline_of(p, record, &now);

        /* What is overdue and failed is not tried again at once. */
        if (p->retry_at > 0)
                at = at <= now.mono ? p->retry_at : MIN_OF(at, p->retry_at);
        if (p->n_preempting > 0)
                at = USEC_INFINITY; /* it is being seen to */
        deadline_set(&p->service->schedule, &p->deadline, at);
}

static void start(struct sandbox_ctl *p, enum command c)
{
        struct sandbox_op *j = sandbox_op__new(p->service, p, c);

        j->background = true;
        sandbox_op__start(j);
}

static void ctl_due(struct deadline *d)
{
        struct sandbox_ctl *p = container_of(d, struct sandbox_ctl, deadline);
        const struct sandbox *record = sandbox_ctl__record(p);
        struct timestamp now = service__now(p->service);
        enum state state;

        if (!record || p->n_preempting > 0)
                return;
        state = (enum state) record->status.state;
        if (!state_is_ending(state) && record->expiry && expiry_is_due(record->expiry, &now)) {
                p->retry_at = 0;
                start(p, COMMAND_EXPIRE);
        } else if (!p->current) { /* else its end will set the time again */
                p->retry_at = 0;
                if (state_is_final(state) && deadline_of(p, record, &now) <= now.mono)
                        start(p, COMMAND_FORGET);
                else
                        reconcile__sandbox(p, NULL);
        }
}

void sandbox_ctl__retry(struct sandbox_ctl *p)
{
        usec_t wait = RETRY_FIRST << MIN_OF(p->failures, 6u);

        p->failures++;
        p->retry_at = usec_add(clock_mono(p->service->config.clock), MIN_OF(wait, RETRY_LAST));
}

/* --- tombstones --- */

static void forget_oldest(struct sandbox_ctl *p)
{
        struct service *s = p->service;
        struct tombstone *g = tenants_excess_tombstone(&p->tombstone, s->config.tombstones_max);
        struct sandbox_ctl *oldest = g ? container_of(g, struct sandbox_ctl, tombstone) : NULL;

        if (!oldest)
                return;
        tenants_remove_tombstone(&s->tenants, g);
        oldest->early = true;
        deadline_set(&s->schedule, &oldest->deadline, clock_mono(s->config.clock));
}

/* --- all that follows from the record --- */

static bool is_registering(const struct sandbox_ctl *p)
{
        return p->current && p->current->creation && p->current->creation->registering;
}

void sandbox_ctl__settle(struct sandbox_ctl *p)
{
        struct service *s = p->service;
        const struct sandbox *record = sandbox_ctl__record(p);

        if (!record) {
                deadline_clear(&s->schedule, &p->deadline);
                if (!is_registering(p)) {
                        tenants_uncharge(&s->tenants, &p->charge);
                        tenants_remove_tombstone(&s->tenants, &p->tombstone);
                }
                if (p->n_ops == 0)
                        ctl_free(p);
                return;
        }
        if (state_is_final((enum state) record->status.state)) {
                tenants_uncharge(&s->tenants, &p->charge);
                if (!p->early)
                        tenants_add_tombstone(&s->tenants, &p->tombstone, record->tenant,
                                              record->status.changed_ms);
                forget_oldest(p);
        } else if (!p->charge.tenant) {
                tenants_charge_existing(&s->tenants, record->tenant, &record->limits, &p->charge);
        }
        set_deadline(p, record);
}

void sandbox_ctl__free_all(struct service *s)
{
        for (const struct sandbox *r = registry_next(s->config.registry, STR_NULL); r;
             r = registry_next(s->config.registry, r->id)) {
                struct sandbox_ctl *p = sandbox_ctl__get(s, r->id);

                if (p)
                        ctl_free(p);
        }
        ASSERT(s->ctls.n == 0); /* without jobs no place is left without its record */
}
