/* SPDX-License-Identifier: Apache-2.0 */
#include "service/schedule.h"

#include <endian.h>

#include "base/base.h"

static struct deadline *first(const struct schedule *s)
{
        struct tree_node *n = tree_from(&s->deadlines, STR(""));

        return n ? container_of(n, struct deadline, node) : NULL;
}

/* The timer is not moved when the first deadline is cleared or becomes later: it fires at the old time, finds nothing
 * due, and is set for the new first. */
static void arm(struct schedule *s)
{
        const struct deadline *d = first(s);

        if (!d || s->closing || s->armed <= d->at)
                return;
        s->armed = d->at;
        waker_set(&s->waker, d->at);
}

void schedule_run_due(struct schedule *s)
{
        usec_t now = clock_mono(s->clock);
        unsigned n = 0;
        struct deadline *d;

        if (s->armed <= now)
                s->armed = USEC_INFINITY; /* it has fired, or is about to */
        while (!s->closing && (d = first(s)) && d->at <= now) {
                if (n == SCHEDULE_BATCH
                    || (n > 0
                        && uv_hrtime() / 1000 >= usec_add(net_loop_now(s->loop), SCHEDULE_SLICE))) {
                        net_task_queue(s->loop, &s->remainder);
                        return;
                }
                n++;
                deadline_clear(s, d);
                d->reached(d);
        }
        arm(s);
}

static void waker_fired(struct waker *a)
{
        struct schedule *s = container_of(a, struct schedule, waker);

        s->armed = USEC_INFINITY;
        schedule_run_due(s);
}

static void run_remainder(struct net_task *t)
{
        schedule_run_due(container_of(t, struct schedule, remainder));
}

int schedule_open(struct schedule *s, struct net_loop *l, const struct clock *clock)
{
        *s = (struct schedule){ .loop = l, .clock = clock, .armed = USEC_INFINITY };
        tree_init(&s->deadlines);
        net_task_init(&s->remainder, run_remainder);
        return waker_open(&s->waker, l, clock, waker_fired);
}

static void waker_closed(struct waker *a)
{
        struct schedule *s = container_of(a, struct schedule, waker);

        s->closed(s);
}

void schedule_close(struct schedule *s, void (*closed)(struct schedule *s))
{
        s->closing = true;
        s->closed = closed;
        net_task_cancel(&s->remainder);
        waker_close(&s->waker, waker_closed);
}

void deadline_init(struct deadline *d, deadline_fn *reached)
{
        *d = (struct deadline){ .reached = reached };
}

void deadline_set(struct schedule *s, struct deadline *d, usec_t at)
{
        deadline_clear(s, d);
        if (at == USEC_INFINITY)
                return;
        d->at = at;
        d->key[0] = htobe64(at);
        d->key[1] = htobe64(s->numbers++); /* no two keys are equal */
        tree_add(&s->deadlines, &d->node, str_of((const char *) d->key, sizeof(d->key)));
        arm(s);
}

void deadline_clear(struct schedule *s, struct deadline *d)
{
        tree_remove(&s->deadlines, &d->node);
}
