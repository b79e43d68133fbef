/* SPDX-License-Identifier: Apache-2.0 */
#include "net/alarm.h"

#include "base/base.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static struct alarms alarms;
static char fired[16];

struct thing {
        struct alarm alarm;
        char name;
        struct thing *next, *cleared; /* when it fires: set this one, clear that one */
};

static void fire(struct alarm *a)
{
        struct thing *t = container_of(a, struct thing, alarm);

        fired[strlen(fired)] = t->name;
        if (t->next)
                alarm_set(&alarms, &t->next->alarm, net_loop_now(&loop), fire);
        if (t->cleared)
                alarm_clear(&alarms, &t->cleared->alarm);
}

static void set_in_ms(struct thing *t, unsigned ms)
{
        alarm_set(&alarms, &t->alarm, net_loop_now(&loop) + ms * USEC_PER_MSEC, fire);
}

static int set_up(void **state)
{
        int r = net_loop_init(&loop, &clock_system);

        alarms_init(&alarms, &loop);
        memset(fired, 0, sizeof(fired));
        return r;
}

static int tear_down(void **state)
{
        alarms_done(&alarms);
        net_loop_done(&loop);
        return 0;
}

static void they_fire_in_order(void **state)
{
        struct thing a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

        set_in_ms(&c, 3);
        set_in_ms(&a, 1);
        set_in_ms(&b, 1);
        check_z_eq(fired, ""); /* not from inside alarm_set */
        net_loop_run(&loop);
        check_z_eq(fired, "abc");
}

static void a_cleared_one_does_not_fire(void **state)
{
        struct thing a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

        set_in_ms(&a, 0);
        set_in_ms(&b, 1);
        set_in_ms(&c, 3600 * 1000);
        alarm_clear(&alarms, &a.alarm);
        alarm_clear(&alarms, &a.alarm);
        b.cleared = &c; /* which is what the loop would wait for */
        net_loop_run(&loop);
        check_z_eq(fired, "b");
}

static void one_may_set_another(void **state)
{
        struct thing a = { .name = 'a' }, b = { .name = 'b' };

        a.next = &b;
        set_in_ms(&a, 0);
        net_loop_run(&loop);
        check_z_eq(fired, "ab");
        set_in_ms(&a, 0); /* it is not set any more, so it may be set again */
        net_loop_run(&loop);
        check_z_eq(fired, "abab");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(they_fire_in_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_cleared_one_does_not_fire, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_may_set_another, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
