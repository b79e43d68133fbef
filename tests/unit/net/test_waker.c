/* SPDX-License-Identifier: Apache-2.0 */
#include "net/waker.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/clock_fake.h"

static struct net_loop loop;
static struct waker waker;
static int fired_count;
static bool is_closed;

static void fired(struct waker *w)
{
        check_true(w == &waker);
        fired_count++;
}

static void closed(struct waker *w)
{
        is_closed = true;
}

static int open_with(const struct clock *clock)
{
        int r = net_loop_init(&loop, clock);

        fired_count = 0;
        is_closed = false;
        return r < 0 ? r : waker_open(&waker, &loop, clock, fired);
}

static int set_up(void **state)
{
        return open_with(&clock_system);
}

static int tear_down(void **state)
{
        waker_close(&waker, closed);
        net_loop_done(&loop);
        check_true(is_closed);
        return 0;
}

static void give_up(uv_timer_t *t)
{
        *(bool *) t->data = true;
}

/* A waker does not keep the loop alive; a timer does, and ends the wait if nothing comes. */
static void turn_for(unsigned ms, int until)
{
        uv_timer_t guard;
        bool over = false;

        (void) uv_timer_init(&loop.uv, &guard);
        guard.data = &over;
        (void) uv_timer_start(&guard, give_up, ms, 0);
        while (!over && fired_count < until)
                net_loop_run_once(&loop, true);
        uv_close((uv_handle_t *) &guard, NULL);
        net_loop_run_once(&loop, false);
}

static usec_t now(void)
{
        return clock_mono(&clock_system);
}

static void it_fires_once_and_not_before_its_time(void **state)
{
        usec_t at = now() + 20 * USEC_PER_MSEC;

        waker_set(&waker, at);
        turn_for(5000, 1);
        check_i64_eq(fired_count, 1);
        check_true(now() >= at);
        turn_for(30, 2);
        check_i64_eq(fired_count, 1);
}

static void a_time_that_has_passed_fires_in_the_next_iteration(void **state)
{
        waker_set(&waker, 0);
        check_i64_eq(fired_count, 0);
        turn_for(5000, 1);
        check_i64_eq(fired_count, 1);
        waker_set(&waker, now() - USEC_PER_SEC);
        turn_for(5000, 2);
        check_i64_eq(fired_count, 2);
}

static void setting_it_anew_takes_the_place_of_the_old_time(void **state)
{
        waker_set(&waker, now() + 10 * USEC_PER_MSEC);
        waker_set(&waker, now() + 3600 * USEC_PER_SEC);
        turn_for(40, 1);
        check_i64_eq(fired_count, 0);
        waker_set(&waker, now() + USEC_PER_MSEC);
        turn_for(5000, 1);
        check_i64_eq(fired_count, 1);
}

static void the_end_of_time_is_no_error(void **state)
{
        waker_set(&waker, USEC_INFINITY - 1);
        turn_for(5, 1);
        check_i64_eq(fired_count, 0);
}

static void another_clock_is_translated(void **state)
{
        struct clock_fake fake;

        clock_fake_init(&fake, 7, 0);
        check_i64_eq(open_with(&fake.clock), 0);
        waker_set(&waker, 7 + 3600 * USEC_PER_SEC);
        turn_for(20, 1);
        check_i64_eq(fired_count, 0);
        waker_set(&waker, 7 + 5 * USEC_PER_MSEC);
        turn_for(5000, 1);
        check_i64_eq(fired_count, 1);
        (void) tear_down(state);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(it_fires_once_and_not_before_its_time, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_time_that_has_passed_fires_in_the_next_iteration,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(setting_it_anew_takes_the_place_of_the_old_time,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_end_of_time_is_no_error, set_up, tear_down),
                cmocka_unit_test(another_clock_is_translated),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
