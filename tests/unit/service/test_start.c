/* SPDX-License-Identifier: Apache-2.0 */

/* Records against the runtime: at the start, from time to time, and when something dies. */

#include "service/service.h"

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, &(struct service_config){ .reconcile_every = 60 * USEC_PER_SEC });
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static const struct create_options plain = { .timeout = 6000 };

static void restart(void)
{
        service_world_down(&w);
        check_i64_eq(service_world_up(&w), 0);
}

static const char *reason_of(const char *id)
{
        static char reason[REASON_MAX + 1];
        const struct sandbox *r = world_find(&w, id);

        (void) snprintf(reason, sizeof(reason), "%.*s", r ? (int) r->status.reason.n : 0,
                        r ? r->status.reason.p : "");
        return reason;
}

/* --- the start --- */

static void running_sandboxes_are_adopted_and_missing_ones_failed(void **state)
{
        struct made runs = world_create(&w, &plain), rests = world_create(&w, &plain),
                    gone = world_create(&w, &plain);

        check_i64_eq(world_command(&w, service_pause, rests.id), 0);
        service_world_down(&w);
        check_true(driver_fake_vanish(w.runtime, str_from(gone.id)));
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.adopted, 2);
        check_i64_eq(w.started.gone, 1);
        check_i64_eq(world_state(&w, runs.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, rests.id), STATE_PAUSED);
        check_i64_eq(world_state(&w, gone.id), STATE_FAILED);
        check_z_eq(reason_of(gone.id), "GONE");
        check_i64_eq(w.service->tenants.sandboxes, 2);
        check_i64_eq(world_command(&w, service_resume, rests.id), 0);
}

/* Its record beside it can't be read any more; ours can. */
static void what_a_scan_cannot_read_is_not_taken_for_gone(void **state)
{
        struct made spoiled = world_create(&w, &plain), gone = world_create(&w, &plain);

        service_world_down(&w);
        check_true(driver_fake_spoil(w.runtime, str_from(spoiled.id)));
        check_true(driver_fake_vanish(w.runtime, str_from(gone.id)));
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.adopted, 1);
        check_i64_eq(w.started.gone, 1);
        check_i64_eq(world_state(&w, spoiled.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, gone.id), STATE_FAILED);
        check_i64_eq(world_command(&w, service_delete, spoiled.id), 0);
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void what_has_died_meanwhile_says_why(void **state)
{
        struct made ended = world_create(&w, &plain), dead = world_create(&w, &plain);

        service_world_down(&w);
        check_true(driver_fake_kill(w.runtime, str_from(ended.id),
                                    &(struct driver_health){ .status = RUNTIME_ENDED,
                                                             .reason = "EXITED" }));
        check_true(driver_fake_kill(w.runtime, str_from(dead.id),
                                    &(struct driver_health){ .status = RUNTIME_DEAD,
                                                             .reason = "OOM_KILLED",
                                                             .message = STR("too big") }));
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(world_state(&w, ended.id), STATE_TERMINATED);
        check_i64_eq(world_state(&w, dead.id), STATE_FAILED);
        check_z_eq(reason_of(dead.id), "OOM_KILLED");
        check_str_eq(world_find(&w, dead.id)->status.message, "too big");
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void unknown_sandboxes_are_added(void **state)
{
        struct made a = world_create(&w, &plain), b = world_create(&w, &plain),
                    spoiled = world_create(&w, &plain);

        service_world_down(&w);
        service_world_lose_records(&w);
        check_true(driver_fake_spoil(w.runtime, str_from(spoiled.id)));
        check_true(driver_fake_kill(w.runtime, str_from(b.id),
                                    &(struct driver_health){ .status = RUNTIME_DEAD }));
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.added, 2);
        check_i64_eq(world_state(&w, a.id), STATE_RUNNING);
        check_str_eq(world_find(&w, a.id)->tenant, "t");
        check_i64_eq(world_state(&w, b.id), STATE_FAILED); /* adopted as it was: not finished */
        check_i64_eq(world_state(&w, spoiled.id), -1);
        check_i64_eq(driver_fake_status(w.runtime, str_from(b.id)), RUNTIME_GONE);
        check_i64_eq(driver_fake_status(w.runtime, str_from(spoiled.id)), RUNTIME_RUNNING);
        check_i64_eq(w.service->tenants.sandboxes, 1);
        check_i64_eq(world_command(&w, service_delete, a.id), 0);
}

static void what_the_runtime_cannot_read_back_is_not_taken_for_gone(void **state)
{
        struct made m = world_create(&w, &plain), gone = world_create(&w, &plain);

        service_world_down(&w);
        check_true(driver_fake_spoil(w.runtime, str_from(m.id)));
        check_true(driver_fake_vanish(w.runtime, str_from(gone.id)));
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, gone.id), STATE_FAILED);
        check_i64_eq(world_command(&w, service_delete, m.id), 0);
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void of_a_create_that_was_cut_off_what_answers_is_kept(void **state)
{
        struct creating *c = world_create_start(&w, &plain);
        struct made m;

        /* The runtime has made it; that it runs was not written. */
        service_world_until(&w, driver_fake_count(w.runtime) == 1);
        service_world_crash(&w);
        (void) world_create_end(c);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.adopted, 1);
        (void) snprintf(m.id, sizeof(m.id), "%.*s",
                        STR_ARG(registry_next(w.registry, STR_NULL)->id));
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_true(world_find(&w, m.id)->handle.p != NULL);
}

static void of_a_create_that_was_cut_off_what_does_not_run_is_undone(void **state)
{
        struct creating *c;
        const struct sandbox *r;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        c = world_create_start(&w, &plain);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        service_world_crash(&w);
        (void) world_create_end(c);
        driver_fake_release(w.runtime);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.undone, 1);
        r = registry_next(w.registry, STR_NULL);
        check_i64_eq(r->status.state, STATE_FAILED);
        check_str_eq(r->status.reason, "INTERRUPTED");
}

static void a_driver_that_does_not_answer_does_not_keep_us_from_starting(void **state)
{
        struct made m = world_create(&w, &plain), gone = world_create(&w, &plain);

        service_world_down(&w);
        check_true(driver_fake_vanish(w.runtime, str_from(gone.id)));
        w.scans_to_fail = 1;
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, gone.id), STATE_RUNNING); /* unknown */
        check_i64_eq(w.service->tenants.sandboxes, 2);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_until(&w, world_state(&w, gone.id) == STATE_FAILED);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
}

static void before_the_start_is_over_nothing_is_taken(void **state)
{
        check_i64_eq(w.service->phase, PHASE_READY);
        w.service->phase = PHASE_STARTING;
        check_i64_eq(world_create(&w, &plain).result, ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(world_command(&w, service_delete, "a"), ERR_RETURN(ERR_UNAVAILABLE));
        w.service->phase = PHASE_READY;
}

/* Held in the scan, or in what follows from it. */
static void a_stop_ends_a_start_wherever_it_is(void **state)
{
        static const enum driver_call calls[] = { DRIVER_CALL_SCAN, DRIVER_CALL_INSPECT,
                                                  DRIVER_CALL_DESTROY };
        int result;

        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                struct made m = world_create(&w, &plain);

                service_world_down(&w);
                check_true(driver_fake_kill(w.runtime, str_from(m.id),
                                            &(struct driver_health){ .status = RUNTIME_DEAD }));
                driver_fake_hold(w.runtime, 1U << calls[i]);
                service_world_begin(&w);
                service_world_until(&w, driver_fake_held(w.runtime, calls[i]) == 1);
                check_false(service_world_has_started(&result));
                service_world_down(&w);
                check_true(service_world_has_started(&result));
                check_i64_eq(result, ERR_RETURN(ERR_CANCELED));
                driver_fake_release(w.runtime);
                check_i64_eq(service_world_up(&w), 0);
                check_i64_eq(world_state(&w, m.id), STATE_FAILED);
                check_i64_eq(driver_fake_count(w.runtime), 0);
        }
}

static void a_stop_ends_a_run(void **state)
{
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SCAN);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_SCAN) == 1);
        service_world_down(&w);
        driver_fake_release(w.runtime);
        check_i64_eq(service_world_up(&w), 0);
}

/* --- from time to time --- */

static void run_reconcile(void)
{
        uint64_t before = service_stats(w.service).reconciles;

        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_until(&w, service_stats(w.service).reconciles > before);
        service_world_idle(&w);
}

static bool changed;

static void change_done(struct op *op, int result)
{
        check_i64_eq(result, 0);
        changed = true;
}

/* The driver knows, the service does not. */
static void behind_our_back(struct driver_req *(*f)(struct driver_pause *, const struct sandbox *),
                            const char *id)
{
        struct sandbox *copy = sandbox_copy(world_find(&w, id));
        struct driver_pause p = { 0 };

        changed = false;
        op_init(&p.req.op, change_done);
        driver_start(w.driver, f(&p, copy));
        service_world_until(&w, changed);
        sandbox_free(copy);
}

static void what_has_changed_behind_our_back_is_seen(void **state)
{
        struct made runs = world_create(&w, &plain), gone = world_create(&w, &plain),
                    paused = world_create(&w, &plain);

        check_true(driver_fake_vanish(w.runtime, str_from(gone.id)));
        behind_our_back(driver_pause_req, paused.id);
        run_reconcile();
        check_i64_eq(world_state(&w, runs.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, gone.id), STATE_FAILED);
        check_i64_eq(world_state(&w, paused.id), STATE_PAUSED);
        behind_our_back(driver_resume_req, paused.id);
        run_reconcile();
        check_i64_eq(world_state(&w, paused.id), STATE_RUNNING);
}

static void changes_during_a_run_are_not_mistaken(void **state)
{
        struct made old = world_create(&w, &plain), m;
        uint64_t runs = service_stats(w.service).reconciles;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SCAN);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_SCAN) == 1);
        m = world_create(&w, &plain); /* the scan has begun */
        driver_fake_release(w.runtime);
        service_world_until(&w, service_stats(w.service).reconciles > runs);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, old.id), STATE_RUNNING);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);

        /* In every turn of a scan: a sandbox made, and one deleted. */
        for (int turns = 0; turns < 12; turns++) {
                runs = service_stats(w.service).reconciles;
                service_world_advance(&w, 60 * USEC_PER_SEC);
                for (int i = 0; i < turns; i++)
                        service_world_turn(&w);
                check_i64_eq(world_command(&w, service_delete, old.id), 0);
                old = m;
                m = world_create(&w, &plain);
                service_world_until(&w, service_stats(w.service).reconciles > runs);
                service_world_idle(&w);
                check_i64_eq(world_state(&w, old.id), STATE_RUNNING);
                check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
                check_i64_eq(world_live(&w), 2);
                check_i64_eq(driver_fake_count(w.runtime), 2);
        }
}

static void many_are_reconciled_in_slices(void **state)
{
        for (int i = 0; i < 300; i++)
                check_i64_eq(world_create(&w, &plain).result, 0);
        restart();
        check_i64_eq(w.started.adopted, 300);
        service_world_down(&w);
        driver_fake_world_free(w.runtime); /* as after a reboot */
        w.runtime = driver_fake_world_new();
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.gone, 300);
        check_i64_eq(world_live(&w), 0);
}

/* --- deaths --- */

static void a_death_is_reported_within_two_iterations(void **state)
{
        static const struct {
                struct driver_health how;
                enum state state;
                const char *reason;
        } cases[] = {
                { { .status = RUNTIME_ENDED, .reason = "EXITED", .message = STR("status 0") },
                  STATE_TERMINATED,
                  "EXITED" },
                { { .status = RUNTIME_DEAD, .reason = "OOM_KILLED" }, STATE_FAILED, "OOM_KILLED" },
                { { .status = RUNTIME_DEAD }, STATE_FAILED, "DIED" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct made m = world_create(&w, &plain);

                check_case(cases[i].reason);
                check_true(driver_fake_kill(w.runtime, str_from(m.id), &cases[i].how));
                service_world_until(&w, world_state(&w, m.id) == (int) cases[i].state);
                service_world_idle(&w);
                check_z_eq(reason_of(m.id), cases[i].reason);
                check_i64_eq(driver_fake_count(w.runtime), 0);
                check_i64_eq(w.service->tenants.sandboxes, 0);
                check_i64_eq(service_stats(w.service).died, i + 1);
        }
}

static void what_dies_while_it_is_deleted_is_deleted(void **state)
{
        struct made m = world_create(&w, &plain);
        struct commanding *d;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_DESTROY);
        d = world_command_start(&w, service_delete, m.id);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_DESTROY) == 1);
        check_true(driver_fake_kill(w.runtime, str_from(m.id),
                                    &(struct driver_health){ .status = RUNTIME_DEAD }));
        for (int i = 0; i < 5; i++)
                service_world_turn(&w);
        driver_fake_release(w.runtime);
        service_world_until(&w, world_command_is_done(d));
        check_i64_eq(world_command_end(d), 0);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), -1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(running_sandboxes_are_adopted_and_missing_ones_failed),
                T(what_a_scan_cannot_read_is_not_taken_for_gone),
                T(what_has_died_meanwhile_says_why),
                T(unknown_sandboxes_are_added),
                T(what_the_runtime_cannot_read_back_is_not_taken_for_gone),
                T(of_a_create_that_was_cut_off_what_answers_is_kept),
                T(of_a_create_that_was_cut_off_what_does_not_run_is_undone),
                T(a_driver_that_does_not_answer_does_not_keep_us_from_starting),
                T(before_the_start_is_over_nothing_is_taken),
                T(a_stop_ends_a_start_wherever_it_is),
                T(a_stop_ends_a_run),
                T(what_has_changed_behind_our_back_is_seen),
                T(changes_during_a_run_are_not_mistaken),
                T(many_are_reconciled_in_slices),
                T(a_death_is_reported_within_two_iterations),
                T(what_dies_while_it_is_deleted_is_deleted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
