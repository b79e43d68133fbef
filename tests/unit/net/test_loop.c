/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include "base/base.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static usec_t busy_for;

static uint64_t stats(void)
{
        uint64_t n = 0;

        for (size_t i = 0; i < NET_LOOP_BUCKETS; i++)
                n += loop.stats.buckets[i];
        return n;
}

/* Keeps the loop busy, as a handler must not. */
static void be_busy(uv_timer_t *t)
{
        usec_t until = clock_mono(&clock_system) + busy_for;

        while (clock_mono(&clock_system) < until)
                ;
        uv_stop(&loop.uv);
}

static void run_timer(usec_t busy)
{
        uv_timer_t t;

        busy_for = busy;
        (void) uv_timer_init(&loop.uv, &t);
        (void) uv_timer_start(&t, be_busy, 1, 0);
        while (uv_is_active((uv_handle_t *) &t))
                net_loop_run_once(&loop, true);
        (void) uv_timer_start(&t, be_busy, 1, 0);
        busy_for = 0;
        net_loop_run_once(&loop, true); /* the previous iteration is counted when this one waits */
        uv_close((uv_handle_t *) &t, NULL);
        net_loop_run_once(&loop, false);
}

static void test_a_slow_iteration_is_noticed(void **state)
{
        assert_int_equal(net_loop_init(&loop, &clock_system), 0);
        run_timer(0);
        check_true(stats() > 0);
        check_true(loop.stats.slowest < 1000);
        run_timer(60 * USEC_PER_MSEC);
        check_true(loop.stats.slowest >= 59);
        check_true(loop.stats.msec >= 59);
        check_true(loop.stats.buckets[6] + loop.stats.buckets[7] + loop.stats.buckets[8] > 0);
        net_loop_done(&loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_slow_iteration_is_noticed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
