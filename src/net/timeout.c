/* SPDX-License-Identifier: Apache-2.0 */
#include "net/timeout.h"

#include "base/base.h"

static void timer_cb(uv_timer_t *h);

/* The timer is not changed when the head is cleared or set again, which happens for every request. It
 * fires at the old time, finds nothing due, and is started for the new head. */
static void arm(struct timeout_kind *k)
{
        struct timeout *t = timeout_oldest(k);
        usec_t now = net_loop_now(k->loop), wait;

        if (!t || uv_is_active((uv_handle_t *) &k->timer))
                return;
        wait = t->deadline > now ? t->deadline - now : 0;
        (void) uv_timer_start(&k->timer, timer_cb, wait / USEC_PER_MSEC + 1, 0);
}

static void timer_cb(uv_timer_t *h)
{
        struct timeout_kind *k = container_of(h, struct timeout_kind, timer);
        usec_t now = net_loop_now(k->loop);
        struct timeout *t;

        while ((t = timeout_oldest(k)) && t->deadline <= now) {
                timeout_clear(t);
                k->expired(t);
        }
        arm(k);
}

void timeout_kind_init(struct timeout_kind *k, struct net_loop *l, usec_t length,
                       timeout_fn *expired)
{
        k->loop = l;
        k->length = length;
        k->expired = expired;
        list_init(&k->queue);
        (void) uv_timer_init(&l->uv, &k->timer);
        uv_unref((uv_handle_t *) &k->timer);
}

void timeout_kind_close(struct timeout_kind *k)
{
        while (!list_empty(&k->queue))
                timeout_clear(timeout_oldest(k));
        uv_close((uv_handle_t *) &k->timer, NULL);
}

void timeout_init(struct timeout *t)
{
        list_init(&t->node);
        t->kind = NULL;
}

void timeout_set(struct timeout *t, struct timeout_kind *k)
{
        list_remove(&t->node);
        t->kind = k;
        t->deadline = usec_add(net_loop_now(k->loop), k->length);
        list_append(&k->queue, &t->node);
        arm(k);
}

void timeout_clear(struct timeout *t)
{
        list_remove(&t->node);
        t->kind = NULL;
}

struct timeout *timeout_oldest(struct timeout_kind *k)
{
        struct list *n = list_first(&k->queue);

        return n ? container_of(n, struct timeout, node) : NULL;
}
