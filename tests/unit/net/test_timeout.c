/* SPDX-License-Identifier: Apache-2.0 */
#include "net/timeout.h"

#include "base/base.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static struct timeout_kind kind, other;

struct thing {
        struct timeout timeout;
        int order; /* in which it expired; 0: it did not */
};

static int expired_count;

static void expired(struct timeout *t)
{
        struct thing *th = container_of(t, struct thing, timeout);

        check_true(t->kind == NULL);
        th->order = ++expired_count;
}

static int set_up(void **state)
{
        int r = net_loop_init(&loop, &clock_system);

        timeout_kind_init(&kind, &loop, 5 * USEC_PER_MSEC, expired);
        timeout_kind_init(&other, &loop, 3600 * USEC_PER_SEC, expired);
        expired_count = 0;
        return r;
}

static int tear_down(void **state)
{
        timeout_kind_close(&kind);
        timeout_kind_close(&other);
        net_loop_done(&loop);
        return 0;
}

/* Timers of this kind do not keep the loop alive, so give it something that does. */
static void nothing(uv_timer_t *t)
{
        (void) t;
}

static void run_until(const int *counter, int value)
{
        uv_timer_t guard;

        (void) uv_timer_init(&loop.uv, &guard);
        (void) uv_timer_start(&guard, nothing, 5000, 0);
        while (*counter < value && uv_is_active((uv_handle_t *) &guard))
                net_loop_run_once(&loop, true);
        uv_close((uv_handle_t *) &guard, NULL);
        net_loop_run_once(&loop, false);
}

static void they_end_in_the_order_they_were_set(void **state)
{
        struct thing a = { 0 }, b = { 0 }, c = { 0 };

        timeout_init(&a.timeout);
        timeout_init(&b.timeout);
        timeout_init(&c.timeout);
        timeout_set(&a.timeout, &kind);
        timeout_set(&b.timeout, &kind);
        timeout_set(&c.timeout, &kind);
        check_true(timeout_oldest(&kind) == &a.timeout);
        timeout_set(&a.timeout, &kind); /* starts anew: now the last */
        check_true(timeout_oldest(&kind) == &b.timeout);
        timeout_clear(&c.timeout);
        run_until(&expired_count, 2);
        check_i64_eq(b.order, 1);
        check_i64_eq(a.order, 2);
        check_i64_eq(c.order, 0);
        check_true(timeout_oldest(&kind) == NULL);
}

static void moving_to_another_kind_leaves_the_first(void **state)
{
        struct thing a = { 0 }, b = { 0 };

        timeout_init(&a.timeout);
        timeout_init(&b.timeout);
        timeout_set(&a.timeout, &kind);
        timeout_set(&b.timeout, &kind);
        timeout_set(&a.timeout, &other);
        run_until(&expired_count, 1);
        check_i64_eq(b.order, 1);
        check_i64_eq(a.order, 0);
        check_true(timeout_oldest(&other) == &a.timeout);
        timeout_clear(&a.timeout);
        timeout_clear(&a.timeout);
}

static void one_set_after_the_timer_slept_still_ends(void **state)
{
        struct thing a = { 0 }, b = { 0 };

        timeout_init(&a.timeout);
        timeout_init(&b.timeout);
        timeout_set(&a.timeout, &kind);
        run_until(&expired_count, 1);
        timeout_set(&b.timeout, &kind);
        run_until(&expired_count, 2);
        check_i64_eq(b.order, 2);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LOOP_TEST(they_end_in_the_order_they_were_set),
                LOOP_TEST(moving_to_another_kind_leaves_the_first),
                LOOP_TEST(one_set_after_the_timer_slept_still_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
