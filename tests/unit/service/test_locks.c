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

static const struct create_options plain = { .timeout = 600 };

static void hold(enum driver_call call)
{
        driver_fake_hold(w.runtime, 1U << call);
}

static void until_held(enum driver_call call)
{
        service_world_until(&w, driver_fake_held(w.runtime, call) == 1);
}

/* The only record there is. */
static const char *only_id(void)
{
        static char id[64];
        const struct sandbox *r = registry_next(w.registry, STR_NULL);

        check_true(r != NULL);
        (void) snprintf(id, sizeof(id), "%.*s", STR_ARG(r->id));
        return id;
}

static int await(struct commanding *c)
{
        service_world_until(&w, world_command_is_done(c));
        return world_command_end(c);
}

/* --- delete overtakes --- */

static void a_delete_ends_a_create_that_is_under_way(void **state)
{
        struct creating *c;
        struct made m;
        char id[64];

        hold(DRIVER_CALL_CREATE);
        c = world_create_start(&w, &plain);
        until_held(DRIVER_CALL_CREATE);
        (void) snprintf(id, sizeof(id), "%s", only_id());
        check_i64_eq(world_command(&w, service_delete, id), 0);
        service_world_until(&w, world_create_is_done(c));
        m = world_create_end(c);
        check_i64_eq(m.result, ERR_RETURN(ERR_CONFLICT));
        check_true(strstr(m.err.message, "deleted") != NULL);
        check_i64_eq(world_state(&w, id), -1);
        check_i64_eq(driver_fake_count(w.runtime), 0);
        check_i64_eq(w.service->tenants.sandboxes, 0);
        check_i64_eq(w.service->ctls.n, 0);
}

static void a_delete_can_come_at_any_step_of_a_create(void **state)
{
        for (int turns = 0, done = 0; !done; turns++) {
                struct creating *c = world_create_start(&w, &plain);
                struct commanding *d = NULL;

                driver_fake_delay(w.runtime, 3);
                for (int i = 0; i < turns; i++)
                        service_world_turn(&w);
                done = world_create_is_done(c);
                if (registry_next(w.registry, STR_NULL))
                        d = world_command_start(&w, service_delete, only_id());
                service_world_until(&w, world_create_is_done(c));
                (void) world_create_end(c);
                if (d)
                        check_i64_eq(await(d), 0);
                service_world_idle(&w);
                if (!d)
                        check_i64_eq(world_command(&w, service_delete, only_id()), 0);
                check_i64_eq(driver_fake_count(w.runtime), 0);
                check_i64_eq(w.service->ctls.n, 0);
        }
}

static void a_delete_ends_a_pause_and_goes_before_those_that_wait(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *pause, *resume, *delete;

        hold(DRIVER_CALL_PAUSE);
        pause = world_command_start(&w, service_pause, m.id);
        until_held(DRIVER_CALL_PAUSE);
        resume = world_command_start(&w, service_resume, m.id);
        delete = world_command_start(&w, service_delete, m.id);
        check_i64_eq(await(delete), 0);
        check_i64_eq(await(pause), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(await(resume), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void who_deletes_what_is_being_deleted_waits_for_the_same_end(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *first, *second;

        hold(DRIVER_CALL_DESTROY);
        first = world_command_start(&w, service_delete, m.id);
        until_held(DRIVER_CALL_DESTROY);
        check_i64_eq(world_state(&w, m.id), STATE_STOPPING);
        second = world_command_start(&w, service_delete, m.id);
        for (int i = 0; i < 5; i++)
                service_world_turn(&w);
        check_false(world_command_is_done(first) || world_command_is_done(second));
        driver_fake_release(w.runtime);
        check_i64_eq(await(first), 0);
        check_i64_eq(await(second), 0);
        check_i64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_DESTROY), 1);
}

static void a_delete_goes_on_when_its_caller_has_gone(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *pause, *delete;

        hold(DRIVER_CALL_PAUSE);
        pause = world_command_start(&w, service_pause, m.id);
        until_held(DRIVER_CALL_PAUSE);
        delete = world_command_start(&w, service_delete, m.id);
        world_command_cancel(delete);
        check_i64_eq(await(delete), ERR_RETURN(ERR_CANCELED));
        (void) await(pause);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), -1);
}

/* --- turns --- */

static void commands_on_one_sandbox_run_one_after_the_other(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *pause, *resume;

        hold(DRIVER_CALL_PAUSE);
        pause = world_command_start(&w, service_pause, m.id);
        resume = world_command_start(&w, service_resume, m.id);
        until_held(DRIVER_CALL_PAUSE);
        check_i64_eq(world_state(&w, m.id), STATE_PAUSING);
        check_i64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_RESUME), 0);
        driver_fake_release(w.runtime);
        check_i64_eq(await(pause), 0);
        check_i64_eq(await(resume), 0);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(driver_fake_status(w.runtime, str_from(m.id)), RUNTIME_RUNNING);
}

static void renewing_and_patching_wait_for_no_driver(void **state)
{
        struct creating *c;
        const char *id;

        hold(DRIVER_CALL_CREATE);
        c = world_create_start(&w, &plain);
        until_held(DRIVER_CALL_CREATE);
        id = only_id();
        check_i64_eq(world_renew(&w, id, w.clock.wall_now + 5000 * USEC_PER_SEC), 0);
        check_i64_eq(world_patch(&w, id, "k", "v"), 0);
        check_i64_eq(world_state(&w, id), STATE_PENDING);
        driver_fake_release(w.runtime);
        service_world_until(&w, world_create_is_done(c));
        check_i64_eq(world_create_end(c).result, 0);
        check_i64_eq(world_find(&w, id)->expiry->mono_usec, w.clock.mono_now + 5000 * USEC_PER_SEC);
        check_i64_eq(world_find(&w, id)->metadata.n, 1);
}

static void many_that_write_at_once_all_do(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *all[20];

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                all[i] = world_command_start(&w, i % 2 ? service_pause : service_resume, m.id);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                check_i64_eq(await(all[i]), i == 0 ? ERR_RETURN(ERR_CONFLICT) : 0);
        check_i64_eq(world_state(&w, m.id), STATE_PAUSED);
}

static void what_has_not_begun_goes_with_its_caller(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *pause, *resume;

        hold(DRIVER_CALL_PAUSE);
        pause = world_command_start(&w, service_pause, m.id);
        until_held(DRIVER_CALL_PAUSE);
        resume = world_command_start(&w, service_resume, m.id);
        world_command_cancel(resume);
        check_i64_eq(await(resume), ERR_RETURN(ERR_CANCELED));
        world_command_cancel(pause); /* has begun */
        check_i64_eq(await(pause), ERR_RETURN(ERR_CANCELED));
        driver_fake_release(w.runtime);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), STATE_PAUSED);
        check_i64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_RESUME), 0);
}

/* What the store has is not what the registry knows, so the patch is written twice; when that is
 * found out, its caller is gone with its memory. */
static void a_patch_that_has_begun_needs_its_caller_no_more(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *c;

        store_failing_plan(w.store, &(struct store_failing_plan){
                                            .when = STORE_FAILING_FROM, .n = 1, .after = true });
        check_true(world_patch(&w, m.id, "a", "1") < 0);
        store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
        c = world_patch_start(&w, m.id, "b", "2");
        world_command_cancel(c);
        check_i64_eq(await(c), ERR_RETURN(ERR_CANCELED));
        service_world_idle(&w);
        check_i64_eq(world_find(&w, m.id)->metadata.n, 2);
}

/* The gate is full, so a sandbox whose driver is not there any more waits in it, too. */
static void who_comes_while_a_refusal_is_due_gets_his_turn(void **state)
{
        struct made all[BACKGROUND_MAX + 2];
        struct commanding *delete, *pause;

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                all[i] = world_create(&w, &plain);
        hold(DRIVER_CALL_DESTROY);
        service_world_advance(&w, 600 * USEC_PER_SEC);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_DESTROY) == BACKGROUND_MAX);
        service_world_until(&w, registry_count(w.registry, STR_NULL, STR_NULL, STATE_STOPPING)
                                        == ARRAY_SIZE(all));
        w.service->n_drivers = 0;
        delete = world_command_start(&w, service_delete, all[BACKGROUND_MAX].id);
        pause = world_command_start(&w, service_pause, all[BACKGROUND_MAX + 1].id);
        check_i64_eq(await(delete), ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(await(pause), ERR_RETURN(ERR_CONFLICT));
        w.service->n_drivers = 1;
        driver_fake_release(w.runtime);
        service_world_idle(&w);
        service_world_advance(&w, 10 * USEC_PER_SEC);
        service_world_idle(&w);
        check_i64_eq(driver_fake_count(w.runtime), 0);
        check_i64_eq(world_live(&w), 0);
}

static void a_queue_has_an_end(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *all[SANDBOX_OPS_MAX + 1];

        hold(DRIVER_CALL_PAUSE);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                all[i] = world_command_start(&w, service_pause, m.id);
        check_i64_eq(await(all[SANDBOX_OPS_MAX]), ERR_RETURN(ERR_UNAVAILABLE));
        driver_fake_release(w.runtime);
        check_i64_eq(await(all[0]), 0);
        for (size_t i = 1; i < SANDBOX_OPS_MAX; i++)
                check_i64_eq(await(all[i]), ERR_RETURN(ERR_CONFLICT));
}

/* --- the end --- */

static void a_stop_ends_what_is_under_way_and_the_next_start_goes_on(void **state)
{
        struct made m = world_create(&w, &plain);
        struct creating *c;
        struct commanding *d, *p;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE | 1U << DRIVER_CALL_DESTROY);
        c = world_create_start(&w, &plain);
        d = world_command_start(&w, service_delete, m.id);
        p = world_command_start(&w, service_pause, m.id);
        until_held(DRIVER_CALL_CREATE);
        until_held(DRIVER_CALL_DESTROY);
        service_world_down(&w);
        check_true(world_create_is_done(c) && world_command_is_done(d) && world_command_is_done(p));
        check_i64_eq(world_create_end(c).result, ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(world_command_end(d), ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(world_command_end(p), ERR_RETURN(ERR_UNAVAILABLE));
        driver_fake_release(w.runtime);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(world_state(&w, m.id), -1);
        check_i64_eq(driver_fake_count(w.runtime), 0);
        check_i64_eq(w.started.finished, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_delete_ends_a_create_that_is_under_way),
                T(a_delete_can_come_at_any_step_of_a_create),
                T(a_delete_ends_a_pause_and_goes_before_those_that_wait),
                T(who_deletes_what_is_being_deleted_waits_for_the_same_end),
                T(a_delete_goes_on_when_its_caller_has_gone),
                T(commands_on_one_sandbox_run_one_after_the_other),
                T(renewing_and_patching_wait_for_no_driver),
                T(many_that_write_at_once_all_do),
                T(what_has_not_begun_goes_with_its_caller),
                T(a_patch_that_has_begun_needs_its_caller_no_more),
                T(who_comes_while_a_refusal_is_due_gets_his_turn),
                T(a_queue_has_an_end),
                T(a_stop_ends_what_is_under_way_and_the_next_start_goes_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
