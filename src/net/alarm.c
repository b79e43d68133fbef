/* SPDX-License-Identifier: Apache-2.0 */
#include "net/alarm.h"

#include <endian.h>

#include "base/base.h"

static struct alarm *first_of(const struct alarms *as)
{
        struct tree_node *n = tree_nth(&as->_tree, 0);

        return n ? container_of(n, struct alarm, _node) : NULL;
}

static usec_t time_of(const struct alarm *a)
{
        return be64toh(a->_key[0]);
}

static void timer_cb(uv_timer_t *timer);

static void arm(struct alarms *as)
{
        const struct alarm *first = first_of(as);
        usec_t now = net_loop_now(as->loop), wait;

        if (!first) {
                (void) uv_timer_stop(as->_timer);
                return;
        }
        wait = time_of(first) > now ? time_of(first) - now : 0;
        (void) uv_timer_start(as->_timer, timer_cb, wait / USEC_PER_MSEC + 1, 0);
}

static void timer_cb(uv_timer_t *timer)
{
        struct alarms *as = timer->data;
        usec_t now = net_loop_now(as->loop);
        struct alarm *a;

        while ((a = first_of(as)) && time_of(a) <= now) {
                tree_remove(&as->_tree, &a->_node);
                a->_fire(a);
        }
        arm(as);
}

void alarms_init(struct alarms *as, struct net_loop *loop)
{
        as->loop = loop;
        as->_seq = 0;
        tree_init(&as->_tree);
        as->_timer = xnew(uv_timer_t);
        as->_timer->data = as;
        (void) uv_timer_init(&loop->uv, as->_timer);
}

static void timer_closed(uv_handle_t *h)
{
        free(h);
}

void alarms_done(struct alarms *as)
{
        ASSERT(as->_tree.n == 0);
        uv_close((uv_handle_t *) as->_timer, timer_closed);
}

void alarm_set(struct alarms *as, struct alarm *a, usec_t when, alarm_fn *fire)
{
        a->_fire = fire;
        a->_key[0] = htobe64(when);
        a->_key[1] = htobe64(as->_seq++);
        tree_add(&as->_tree, &a->_node, str_of((const char *) a->_key, sizeof(a->_key)));
        if (first_of(as) == a)
                arm(as);
}

void alarm_clear(struct alarms *as, struct alarm *a)
{
        bool first = first_of(as) == a;

        tree_remove(&as->_tree, &a->_node);
        if (first)
                arm(as);
}
