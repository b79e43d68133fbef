/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/driver_failing.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_fake_maker.h"

static int open_failing(struct driver_world *w, const struct driver_setup *setup,
                        struct driver **ret, struct err *e)
{
        struct driver *inner;
        int r = driver_fake_open_in(w->runtime, setup, &inner, e);

        if (r == 0)
                *ret = driver_failing_open(inner);
        return r;
}

static const struct driver_maker maker = DRIVER_FAKE_MAKER("failing", open_failing);
static struct driver_world w;

static int set_up(void **state)
{
        driver_world_open(&w, &maker);
        return 0;
}

static int tear_down(void **state)
{
        driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
        driver_world_close(&w);
        return 0;
}

static void calls_fail_as_planned(void **state)
{
        static const struct {
                const char *name;
                struct driver_failing_plan plan;
                int results[3]; /* of create, inspect, destroy */
                int status;     /* after the create */
        } cases[] = {
                { "never", { 0 }, { 0, 0, 0 }, RUNTIME_RUNNING },
                { "the first",
                  { DRIVER_FAILING_NTH, 1, 0, 0, false, 0 },
                  { CODE(UNAVAILABLE), 0, 0 },
                  RUNTIME_GONE },
                { "the first, after its effect",
                  { DRIVER_FAILING_NTH, 1, 0, 0, true, 0 },
                  { CODE(UNAVAILABLE), 0, 0 },
                  RUNTIME_RUNNING },
                { "the second",
                  { DRIVER_FAILING_NTH, 2, 0, 0, false, ERR_TIMEOUT },
                  { 0, CODE(TIMEOUT), 0 },
                  RUNTIME_RUNNING },
                { "from the second on",
                  { DRIVER_FAILING_FROM, 2, 0, 0, false, ERR_EXHAUSTED },
                  { 0, CODE(EXHAUSTED), CODE(EXHAUSTED) },
                  RUNTIME_RUNNING },
                { "destroy only",
                  { DRIVER_FAILING_FROM, 1, 0, 1U << DRIVER_CALL_DESTROY, false, 0 },
                  { 0, 0, CODE(UNAVAILABLE) },
                  RUNTIME_RUNNING },
                { "all by chance",
                  { DRIVER_FAILING_RANDOM, 1000, 7, 0, false, 0 },
                  { CODE(UNAVAILABLE), CODE(UNAVAILABLE), CODE(UNAVAILABLE) },
                  RUNTIME_GONE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
                unsigned failed = 0;
                int r;

                check_case(cases[i].name);
                driver_failing_plan(w.driver, &cases[i].plan);
                check_i64_eq(driver_world_create(&w, s), cases[i].results[0]);
                check_i64_eq(driver_fake_status(w.runtime, s->id), cases[i].status);
                r = driver_world_status(&w, s);
                check_true(r == cases[i].results[1] || r >= 0);
                check_i64_eq(r < 0 ? r : 0, cases[i].results[1]);
                check_i64_eq(driver_world_destroy(&w, s), cases[i].results[2]);
                for (size_t k = 0; k < 3; k++)
                        failed += cases[i].results[k] < 0;
                check_i64_eq(driver_failing_count(w.driver), failed);
                driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
                check_i64_eq(driver_world_destroy(&w, s), 0);
        }
}

static void a_connection_that_fails_late_is_closed(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        int before;

        check_i64_eq(driver_world_create(&w, s), 0);
        check_i64_eq(driver_world_ping(&w, s), 0);
        before = driver_world_descriptors();
        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ DRIVER_FAILING_FROM, 1, .after = true });
        for (int i = 0; i < 100; i++)
                check_i64_eq(driver_world_connect(&w, s, NULL), CODE(UNAVAILABLE));
        check_i64_eq(driver_failing_count(w.driver), 100);
        driver_world_until(&w, driver_world_descriptors() <= before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(calls_fail_as_planned, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_connection_that_fails_late_is_closed, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
