/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the drivers report about themselves and this host.
 *
 * There is one round at a time, in which every driver is probed once, in parallel. Requests that arrive meanwhile wait
 * for its end. A driver that does not answer in time is reported as not available.
 */

#include "service/service_impl.h"

#include "base/base.h"

/* A busy engine takes seconds to describe itself. */
#define PROBE_TIMEOUT   (15 * USEC_PER_SEC)
#define PROBE_FACTS_MAX 64
#define PROBE_MEMORY    (256 * KiB)

struct part {
        struct driver_probe probe;
        struct probe_round *round;
        size_t i;
        bool late;
};

struct probe_round {
        struct service *service;
        struct part parts[SERVICE_DRIVERS_MAX];
        struct service_driver drivers[SERVICE_DRIVERS_MAX];
        size_t n, left;
        struct list waiters; /* struct service_probe */
        struct deadline timeout;
        struct arena memory; /* of the results */
        size_t refs;         /* requests with the results; the round itself, until it is over */
};

static void round_unref(struct probe_round *r)
{
        if (--r->refs > 0)
                return;
        arena_done(&r->memory);
        free(r);
}

/* --- requests --- */

static void request_step(struct op *op, int result)
{
        struct service_probe *p = container_of(op, struct service_probe, op);
        struct probe_round *r = TAKE_PTR(p->_round);

        op_unwrap(op, &p->_wrap, result); /* may free p */
        if (r)
                round_unref(r);
}

static void request_cancel(struct op *op)
{
        struct service_probe *p = container_of(op, struct service_probe, op);

        list_remove(&p->_node);
        op_finish(op, err_set(&p->err, ERR_CANCELED, "canceled"));
}

/* --- a round --- */

static void round_end(struct probe_round *r)
{
        struct service *s = r->service;

        deadline_clear(&s->schedule, &r->timeout);
        s->probing = NULL;
        for (struct list *n; (n = list_first(&r->waiters));) {
                struct service_probe *p = container_of(n, struct service_probe, _node);

                list_remove(n);
                if (s->phase != PHASE_READY) {
                        op_finish(&p->op, service__ready(s, &p->err));
                        continue;
                }
                p->drivers = r->drivers;
                p->n = r->n;
                p->_round = r;
                r->refs++;
                op_finish(&p->op, 0);
        }
        round_unref(r);
        service__settle(s);
}

static void part_done(struct op *op, int result)
{
        struct part *part = container_of(op, struct part, probe.req.op);
        struct probe_round *r = part->round;
        struct service_driver *d = &r->drivers[part->i];
        const struct driver_probe *p = &part->probe;
        struct arena *a = &r->memory;

        if (result == 0) {
                size_t n = MIN_OF(p->n, (size_t) PROBE_FACTS_MAX);
                struct service_fact *facts = arena_zalloc(a, (n + 1) * sizeof(*facts));

                for (size_t i = 0; facts && i < n; i++)
                        facts[i] = (struct service_fact){
                                .name = str_from(p->facts[i].name),
                                .ok = p->facts[i].ok,
                                .text = arena_dup_str(a, p->facts[i].text),
                        };
                d->facts = (struct json_list){ facts, facts ? n : 0 };
                d->available = p->n > 0 && p->facts[0].ok;
                if (!d->available)
                        d->reason = p->n > 0 ? arena_dup_str(a, p->facts[0].text)
                                             : STR("it reports nothing");
        } else {
                d->reason = part->late ? STR("it did not answer within 15 seconds")
                                       : arena_dup_str(a, str_from(p->req.err.message));
        }
        if (--r->left == 0)
                round_end(r);
}

static void round_timeout(struct deadline *d)
{
        struct probe_round *r = container_of(d, struct probe_round, timeout);

        for (size_t i = 0; i < r->n; i++) {
                if (!op_pending(&r->parts[i].probe.req.op))
                        continue;
                r->parts[i].late = true;
                op_cancel(&r->parts[i].probe.req.op);
        }
}

static struct probe_round *round_begin(struct service *s)
{
        struct probe_round *r = xnew(struct probe_round);
        struct json_strs *caps;

        r->service = s;
        r->n = r->left = s->n_drivers;
        r->refs = 1;
        list_init(&r->waiters);
        arena_init(&r->memory, PROBE_MEMORY);
        deadline_init(&r->timeout, round_timeout);
        deadline_set(&s->schedule, &r->timeout,
                     usec_add(clock_mono(s->config.clock), PROBE_TIMEOUT));
        for (size_t i = 0; i < r->n; i++) {
                struct driver *d = s->drivers[i].driver;
                struct part *part = &r->parts[i];

                r->drivers[i] = (struct service_driver){ .name = str_from(driver_name(d)),
                                                         .is_default = i == 0 };
                caps = &r->drivers[i].caps;
                caps->items = arena_zalloc(&r->memory, DRIVER_CAPS_N * sizeof(struct str));
                for (size_t c = 0; caps->items && c < DRIVER_CAPS_N; c++)
                        if (driver_can(d, driver_cap_table[c].bit))
                                caps->items[caps->n++] = driver_cap_table[c].name;
                part->round = r;
                part->i = i;
                op_init(&part->probe.req.op, part_done);
                driver_start(d, driver_probe_req(&part->probe));
        }
        return r;
}

void service_probe(struct service *s, struct service_probe *p)
{
        int r;

        p->drivers = NULL;
        p->n = 0;
        p->_round = NULL;
        op_wrap(&p->op, &p->_wrap, request_step);
        list_init(&p->_node);
        op_begin(&p->op, s->config.loop, request_cancel);
        r = service__ready(s, &p->err);
        if (r == 0 && s->n_drivers == 0)
                r = err_set(&p->err, ERR_UNAVAILABLE, "no driver is enabled");
        if (r < 0) {
                op_finish(&p->op, r);
                return;
        }
        if (!s->probing)
                s->probing = round_begin(s);
        list_append(&s->probing->waiters, &p->_node);
}

void probe__stop(struct service *s)
{
        struct probe_round *r = s->probing;

        for (size_t i = 0; r && i < r->n; i++)
                op_cancel(&r->parts[i].probe.req.op);
}
