/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include <time.h>

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, &(struct service_config){ .tombstone_for = 3600 * USEC_PER_SEC,
                                                         .tombstones_max = 3 });
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static void advance(uint64_t seconds)
{
        service_world_advance(&w, seconds * USEC_PER_SEC);
        service_world_idle(&w);
}

/* --- the end of a life, and of its tombstone --- */

static void an_expired_sandbox_is_a_tombstone_for_its_time(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });
        struct made never = world_create(&w, &(struct create_options){ 0 });

        advance(59);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        advance(1);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
        check_str_eq(world_find(&w, m.id)->status.reason, "EXPIRED");
        check_i64_eq(driver_fake_count(w.runtime), 1);
        check_i64_eq(w.service->tenants.sandboxes, 1);
        check_i64_eq(service_stats(w.service).expired, 1);
        advance(3599);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
        advance(1);
        check_i64_eq(world_state(&w, m.id), -1);
        check_i64_eq(world_state(&w, never.id), STATE_RUNNING);
        check_i64_eq(w.service->ctls.n, 1);
}

static void what_is_paused_or_pending_expires_too(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });
        struct creating *c;
        struct made late;

        check_i64_eq(world_command(&w, service_pause, m.id), 0);
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        c = world_create_start(&w, &(struct create_options){ .timeout = 60 });
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_until(&w, world_create_is_done(c));
        late = world_create_end(c);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
        check_i64_eq(world_state(&w, late.id), STATE_FAILED);
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void a_renewed_sandbox_keeps_running(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });

        advance(50);
        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now + 100 * USEC_PER_SEC), 0);
        advance(99);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        advance(1);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now + 100 * USEC_PER_SEC),
                     ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(service_stats(w.service).renewed, 1);
}

static void the_wall_clock_does_not_decide(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });

        w.clock.wall_now += 3600 * USEC_PER_SEC;
        advance(59);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        w.clock.wall_now -= 7200 * USEC_PER_SEC;
        advance(1);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
}

static void deadlines_survive_restarts_and_reboots(void **state)
{
        struct made a = world_create(&w, &(struct create_options){ .timeout = 60 });
        struct made b = world_create(&w, &(struct create_options){ .timeout = 600 });

        advance(30);
        service_world_down(&w);
        clock_fake_advance(&w.clock, 20 * USEC_PER_SEC);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(w.started.adopted, 2);
        advance(9);
        check_i64_eq(world_state(&w, a.id), STATE_RUNNING);
        advance(1);
        check_i64_eq(world_state(&w, a.id), STATE_TERMINATED);

        service_world_down(&w);
        clock_fake_advance(&w.clock, 100 * USEC_PER_SEC); /* on the wall, 160 of 600 are over */
        service_world_reboot(&w);
        check_i64_eq(service_world_up(&w), 0);
        check_str_eq(world_find(&w, b.id)->expiry->boot_id, w.boot_id);
        advance(439);
        check_i64_eq(world_state(&w, b.id), STATE_RUNNING);
        advance(1);
        check_i64_eq(world_state(&w, b.id), STATE_TERMINATED);
}

/* --- failures --- */

/* A pause is canceled for an end that then does not come: what has become of it is looked at. */
static struct commanding *pause_until_its_end(struct made *m)
{
        struct commanding *pause;

        *m = world_create(&w, &(struct create_options){ .timeout = 60 });
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_PAUSE);
        pause = world_command_start(&w, service_pause, m->id);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_PAUSE) == 1);
        return pause;
}

static void an_end_that_was_put_off_leaves_nothing_half_paused(void **state)
{
        struct made m;
        struct commanding *pause = pause_until_its_end(&m);

        service_world_advance(&w, 60 * USEC_PER_SEC);
        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now + 600 * USEC_PER_SEC), 0);
        service_world_idle(&w);
        check_i64_eq(world_command_end(pause), ERR_RETURN(ERR_CONFLICT));
        advance(1);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
}

static void a_delete_that_cannot_begin_leaves_nothing_half_paused(void **state)
{
        struct made m;
        struct commanding *pause = pause_until_its_end(&m);

        store_failing_plan(w.store, &(struct store_failing_plan){ .when = STORE_FAILING_FROM,
                                                                  .n = 1,
                                                                  .code = ERR_EXHAUSTED });
        check_i64_eq(world_command(&w, service_delete, m.id), ERR_RETURN(ERR_INTERNAL));
        store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
        (void) world_command_end(pause);
        advance(1);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
}

static void a_destroy_that_fails_is_tried_again_less_and_less_often(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });
        const unsigned destroy = 1U << DRIVER_CALL_DESTROY;
        int64_t version;
        uint64_t calls;

        driver_failing_plan(w.driver, &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM,
                                                                     .n = 1,
                                                                     .calls = destroy });
        advance(60);
        check_i64_eq(world_state(&w, m.id), STATE_STOPPING);
        check_i64_eq(driver_failing_count(w.driver), 1);
        check_i64_eq(w.service->tenants.sandboxes, 1); /* it is still there */
        check_str_eq(world_find(&w, m.id)->status.reason, "EXPIRED");
        check_str_eq(world_find(&w, m.id)->status.message, "made to fail");
        version = world_find(&w, m.id)->version;
        advance(1);
        check_i64_eq(driver_failing_count(w.driver), 2);
        advance(1);
        check_i64_eq(driver_failing_count(w.driver), 2);
        advance(1);
        check_i64_eq(driver_failing_count(w.driver), 3);
        for (int i = 0; i < 600; i++)
                advance(1);
        check_i64_eq(world_find(&w, m.id)->version,
                     version); /* the same story is not written again */
        calls = driver_failing_count(w.driver);
        check_true(calls > 10 && calls < 20); /* once a minute at last */
        driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
        advance(60);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

static void a_store_that_fails_does_not_keep_anything_alive(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60 });

        store_failing_plan(w.store, &(struct store_failing_plan){ .when = STORE_FAILING_FROM,
                                                                  .n = 1,
                                                                  .code = ERR_EXHAUSTED });
        advance(60);
        advance(10);
        check_true(store_failing_count(w.store) < 20); /* does not spin */
        store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
        advance(60);
        check_i64_eq(world_state(&w, m.id), STATE_TERMINATED);
}

/* --- tombstones --- */

static void the_oldest_tombstones_of_a_tenant_make_room(void **state)
{
        struct made m[5], other;

        other = world_create(&w, &(struct create_options){ .timeout = 60, .tenant = "u" });
        for (int i = 0; i < 5; i++)
                m[i] = world_create(&w, &(struct create_options){ .timeout = 60 + i });
        advance(60);
        for (int i = 0; i < 5; i++)
                advance(1);
        for (int i = 0; i < 5; i++)
                check_i64_eq(world_state(&w, m[i].id), i < 2 ? -1 : STATE_TERMINATED);
        check_i64_eq(world_state(&w, other.id), STATE_TERMINATED);
        /* The same after a restart, by their age. */
        service_world_down(&w);
        w.config.tombstones_max = 1;
        check_i64_eq(service_world_up(&w), 0);
        service_world_advance(&w, 0);
        service_world_idle(&w);
        for (int i = 0; i < 5; i++)
                check_i64_eq(world_state(&w, m[i].id), i < 4 ? -1 : STATE_TERMINATED);
}

/* --- many --- */

/* Sanitizers take their time, and only that of others is measured then. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define MANY 1000
#else
#define MANY 10000
#endif

/* CPU time, not wall time: others share the host. */
static usec_t cpu_time(void)
{
        struct timespec t;

        check_i64_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
        return (usec_t) t.tv_sec * USEC_PER_SEC + (usec_t) t.tv_nsec / 1000;
}

static void make_many(int timeout)
{
        static struct creating *all[MANY];

        for (int i = 0; i < MANY; i++) {
                all[i] = world_create_start(&w, &(struct create_options){ .timeout = timeout });
                if (i % 64 == 63)
                        service_world_idle(&w);
        }
        service_world_idle(&w);
        for (int i = 0; i < MANY; i++)
                check_i64_eq(world_create_end(all[i]).result, 0);
        check_i64_eq(world_live(&w), MANY);
}

static usec_t timed_turn(void)
{
        usec_t from = cpu_time();

        service_world_turn(&w);
        return cpu_time() - from;
}

/* Judged by the number that were begun; the time depends on the load of the host. */
static void many_that_end_at_once_do_not_hold_up_the_loop(void **state)
{
        uint64_t begun = driver_fake_calls(w.runtime, DRIVER_CALL_DESTROY), most = 0;
        usec_t longest = 0;

        w.service->config.tombstones_max = MANY;
        make_many(60);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        while (world_live(&w) > 0) {
                usec_t took = timed_turn();
                uint64_t now = driver_fake_calls(w.runtime, DRIVER_CALL_DESTROY);

                longest = MAX_OF(longest, took);
                most = MAX_OF(most, now - begun);
                begun = now;
        }
        print_message("# %d ended, %llu in one turn; the longest took %llu us\n", MANY,
                      (unsigned long long) most, (unsigned long long) longest);
        check_i64_eq(driver_fake_count(w.runtime), 0);
        check_i64_eq(service_stats(w.service).expired, MANY);
        check_i64_eq(w.service->tenants.sandboxes, 0);
        check_true(most > 0 && most <= 2 * SCHEDULE_BATCH);
}

static void reconciling_many_does_not_hold_up_the_loop(void **state)
{
        uint64_t before;
        usec_t longest = 0;
        unsigned turns = 0;

        make_many(6000);
        before = service_stats(w.service).reconciles;
        service_world_advance(&w, 60 * USEC_PER_SEC);
        while (service_stats(w.service).reconciles == before) {
                usec_t took = timed_turn();

                longest = MAX_OF(longest, took);
                turns++;
        }
        print_message("# reconciling %d took %u iterations; the longest took %llu us\n", MANY,
                      turns, (unsigned long long) longest);
        check_i64_eq(world_live(&w), MANY);
        /* Scan, its answer, and the end take one each: there was more than one slice. */
        check_true(turns > 4);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(an_expired_sandbox_is_a_tombstone_for_its_time),
                T(what_is_paused_or_pending_expires_too),
                T(a_renewed_sandbox_keeps_running),
                T(the_wall_clock_does_not_decide),
                T(deadlines_survive_restarts_and_reboots),
                T(an_end_that_was_put_off_leaves_nothing_half_paused),
                T(a_delete_that_cannot_begin_leaves_nothing_half_paused),
                T(a_destroy_that_fails_is_tried_again_less_and_less_often),
                T(a_store_that_fails_does_not_keep_anything_alive),
                T(the_oldest_tombstones_of_a_tenant_make_room),
                T(many_that_end_at_once_do_not_hold_up_the_loop),
                T(reconciling_many_does_not_hold_up_the_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
