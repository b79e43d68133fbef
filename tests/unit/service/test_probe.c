/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

struct asking {
        struct service_probe probe;
        bool done;
        int result;
        size_t n, facts, caps;
        bool available, is_default;
        char name[32], reason[128], fact[128];
};

static void probe_done(struct op *op, int result)
{
        struct asking *a = container_of(op, struct asking, probe.op);

        a->done = true;
        a->result = result;
        a->n = a->probe.n;
        for (size_t i = 0; i < a->n; i++) {
                const struct service_driver *d = &a->probe.drivers[i];
                const struct service_fact *facts = d->facts.items;

                a->facts = d->facts.n;
                a->caps = d->caps.n;
                a->available = d->available;
                a->is_default = d->is_default;
                (void) snprintf(a->name, sizeof(a->name), "%.*s", STR_ARG(d->name));
                (void) snprintf(a->reason, sizeof(a->reason), "%.*s", STR_ARG(d->reason));
                if (a->facts > 0)
                        (void) snprintf(a->fact, sizeof(a->fact), "%.*s", STR_ARG(facts[0].text));
        }
}

static void begin(struct asking *a)
{
        *a = (struct asking){ 0 };
        op_init(&a->probe.op, probe_done);
        service_probe(w.service, &a->probe);
        check_false(a->done);
}

static void hold(void)
{
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_PROBE);
}

static uint64_t probes(void)
{
        return driver_fake_calls(w.runtime, DRIVER_CALL_PROBE);
}

static void a_driver_says_what_it_can_and_finds(void **state)
{
        struct asking a;

        begin(&a);
        service_world_until(&w, a.done);
        check_i64_eq(a.result, 0);
        check_i64_eq(a.n, 1);
        check_z_eq(a.name, "fake");
        check_true(a.available && a.is_default);
        check_z_eq(a.reason, "");
        check_i64_eq(a.facts, 1);
        check_true(strstr(a.fact, "in memory") != NULL);
        check_true(a.caps >= 5);
}

static void a_driver_that_fails_is_an_answer(void **state)
{
        struct asking a;

        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM,
                                                           .n = 1,
                                                           .calls = 1U << DRIVER_CALL_PROBE });
        begin(&a);
        service_world_until(&w, a.done);
        check_i64_eq(a.result, 0);
        check_i64_eq(a.n, 1);
        check_false(a.available);
        check_true(a.reason[0]);
        check_i64_eq(a.facts, 0);
}

static void parallel_probes_share_a_round(void **state)
{
        struct asking many[5];

        hold();
        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                begin(&many[i]);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_PROBE) == 1);
        check_i64_eq(probes(), 1);
        op_cancel(&many[1].probe.op);
        service_world_until(&w, many[1].done);
        check_i64_eq(many[1].result, ERR_RETURN(ERR_CANCELED));
        check_false(many[0].done);
        driver_fake_release(w.runtime);
        for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
                service_world_until(&w, many[i].done);
                check_i64_eq(many[i].n, i != 1);
        }
        check_i64_eq(probes(), 1);
        begin(&many[0]);
        service_world_until(&w, many[0].done);
        check_i64_eq(probes(), 2);
}

static void a_slow_driver_times_out(void **state)
{
        struct asking a;

        hold();
        begin(&a);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_PROBE) == 1);
        service_world_advance(&w, 14 * USEC_PER_SEC);
        check_false(a.done);
        service_world_advance(&w, 2 * USEC_PER_SEC);
        service_world_until(&w, a.done);
        check_i64_eq(a.result, 0);
        check_false(a.available);
        check_z_eq(a.reason, "it did not answer within 15 seconds");
        driver_fake_release(w.runtime);
        begin(&a);
        service_world_until(&w, a.done);
        check_true(a.available);
}

/* Those who wait leave, or are there still, when the server stops. */
static void a_stop_ends_it(void **state)
{
        struct asking a, gone;

        hold();
        begin(&a);
        begin(&gone);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_PROBE) == 1);
        op_cancel(&gone.probe.op);
        service_world_down(&w);
        check_true(a.done && gone.done);
        check_i64_eq(a.result, ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(a.n, 0);
        driver_fake_release(w.runtime);
        check_i64_eq(service_world_up(&w), 0);
        begin(&a);
        service_world_until(&w, a.done);
        check_i64_eq(a.result, 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                test(a_driver_says_what_it_can_and_finds),
                test(a_driver_that_fails_is_an_answer),
                test(parallel_probes_share_a_round),
                test(a_slow_driver_times_out),
                test(a_stop_ends_it),
        };

        return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
