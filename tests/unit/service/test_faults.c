/* SPDX-License-Identifier: Apache-2.0 */

/* One script of commands, broken off or disturbed at every point; then registry, runtime and quotas
 * must agree, and nothing that was promised may be lost. */

#include "service/service.h"

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

/* --- the script --- */

enum step_kind { STEP_CREATE, STEP_PAUSE, STEP_RESUME, STEP_RENEW, STEP_DELETE, STEP_TIME };

struct step {
        enum step_kind kind;
        int caller; /* which sandbox, or seconds */
};

static const struct step script[] = {
        { STEP_CREATE, 0 }, { STEP_CREATE, 1 }, { STEP_PAUSE, 0 },  { STEP_RENEW, 1 },
        { STEP_RESUME, 0 }, { STEP_CREATE, 2 }, { STEP_PAUSE, 2 },  { STEP_DELETE, 0 },
        { STEP_DELETE, 2 }, { STEP_CREATE, 3 }, { STEP_TIME, 100 }, /* 1 and 3 expire */
        { STEP_CREATE, 4 },
};

#define N_WHO 5

struct play {
        size_t at; /* the step that is under way, or next */
        bool busy;
        struct creating *creating;
        struct commanding *commanding;
        char ids[N_WHO][64];
        bool promised[N_WHO]; /* it was created, and neither deleted nor expired */
        bool deleted[N_WHO];
        unsigned failures;
};

static struct play play;

static void begin_command(service_command_fn *f, int caller)
{
        play.commanding = world_command_start(&w, f, play.ids[caller]);
}

static void renew(struct service *s, struct service_command *c)
{
        c->expires = w.clock.wall_now + 90 * USEC_PER_SEC;
        service_renew(s, c);
}

static void begin_step(const struct step *x)
{
        static service_command_fn *const functions[] = {
                [STEP_PAUSE] = service_pause,
                [STEP_RESUME] = service_resume,
                [STEP_RENEW] = renew,
                [STEP_DELETE] = service_delete,
        };

        play.busy = true;
        if (x->kind == STEP_CREATE)
                play.creating = world_create_start(&w, &(struct create_options){ .timeout = 90 });
        else if (x->kind == STEP_TIME)
                service_world_advance(&w, (usec_t) x->caller * USEC_PER_SEC);
        else
                begin_command(functions[x->kind], x->caller);
        if (x->kind == STEP_TIME)
                memset(play.promised, 0, sizeof(play.promised));
        if (x->kind == STEP_DELETE)
                play.promised[x->caller] = false;
}

static void end_create(int caller)
{
        struct made m = world_create_end(TAKE_PTR(play.creating));

        (void) snprintf(play.ids[caller], sizeof(play.ids[caller]), "%s", m.id[0] ? m.id : "none");
        play.promised[caller] = m.result == 0;
        play.failures += m.result < 0;
}

static void end_command(const struct step *x)
{
        int r = world_command_end(TAKE_PTR(play.commanding));

        if (x->kind == STEP_DELETE)
                play.deleted[x->caller] = r == 0;
        play.failures += r < 0;
}

static bool step_is_done(void)
{
        if (play.creating)
                return world_create_is_done(play.creating);
        if (play.commanding)
                return world_command_is_done(play.commanding);
        return service_stats(w.service).under_way == 0;
}

static void end_step(void)
{
        const struct step *x = &script[play.at++];

        if (play.creating)
                end_create(x->caller);
        else if (play.commanding)
                end_command(x);
        play.busy = false;
}

/* Whether there is anything left to do. */
static bool play_on(void)
{
        if (play.busy && step_is_done())
                end_step();
        if (play.at == ARRAY_SIZE(script))
                return false;
        if (!play.busy)
                begin_step(&script[play.at]);
        return true;
}

/* --- what must hold --- */

static bool fits(int state, int status)
{
        if (state_is_final((enum state) state))
                return status == RUNTIME_GONE;
        return (state == STATE_RUNNING && status == RUNTIME_RUNNING)
               || (state == STATE_PAUSED && status == RUNTIME_PAUSED);
}

static uint64_t charged(void)
{
        return w.service->tenants.sandboxes;
}

static void check_world(void)
{
        size_t in_runtime = 0;

        for (const struct sandbox *r = registry_next(w.registry, STR_NULL); r;
             r = registry_next(w.registry, r->id)) {
                int status = driver_fake_status(w.runtime, r->id);

                in_runtime += status != RUNTIME_GONE;
                if (!fits(r->status.state, status))
                        CHECK_FAIL_("%.*s is %s, in the runtime %s", STR_ARG(r->id),
                                    state_to_string(r->status.state),
                                    runtime_status_to_string(status));
        }
        check_i64_eq(driver_fake_count(w.runtime), in_runtime);
        check_i64_eq(charged(), world_live(&w));
        for (int i = 0; i < N_WHO; i++) {
                if (play.deleted[i])
                        check_i64_eq(world_state(&w, play.ids[i]), -1);
                if (play.promised[i])
                        check_true(world_state(&w, play.ids[i]) == STATE_RUNNING
                                   || world_state(&w, play.ids[i]) == STATE_PAUSED);
        }
}

static void begin_world(void)
{
        memset(&play, 0, sizeof(play));
        service_world_open(&w, NULL);
}

/* --- crashes --- */

struct killer {
        struct net_task task;
        unsigned left;
        bool after;
};

/* Runs once in each batch of tasks: the finest grain there is. */
static void kill_task(struct net_task *t)
{
        struct killer *k = container_of(t, struct killer, task);

        if (k->left-- > 0) {
                net_task_queue(&w.loop, t);
                return;
        }
        store_failing_plan(w.store, &(struct store_failing_plan){ .when = STORE_FAILING_FROM,
                                                                  .n = 1,
                                                                  .after = k->after });
        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM, .n = 1 });
        k->after = false;
        k->left = UINT32_MAX; /* dead */
}

/* True if it was killed before the script's end. */
static bool play_until_killed(unsigned batches, bool after)
{
        struct killer k = { .left = batches, .after = after };
        bool killed;

        net_task_init(&k.task, kill_task);
        net_task_queue(&w.loop, &k.task);
        while (k.left != UINT32_MAX && play_on())
                service_world_turn(&w);
        killed = k.left == UINT32_MAX;
        net_task_cancel(&k.task);
        return killed;
}

static void end_play(void)
{
        if (play.creating) {
                service_world_until(&w, world_create_is_done(play.creating));
                end_create(script[play.at].caller);
        }
        if (play.commanding) {
                service_world_until(&w, world_command_is_done(play.commanding));
                end_command(&script[play.at]);
        }
}

static void crash_at_every_point(bool after, bool reboot, unsigned delay)
{
        bool killed = true;
        char name[64];

        for (unsigned n = 0; killed; n++) {
                (void) snprintf(name, sizeof(name), "killed after %u batches%s", n,
                                after ? ", a write under way" : "");
                check_case(name);
                begin_world();
                driver_fake_delay(w.runtime, delay);
                killed = play_until_killed(n, after);
                if (killed) {
                        service_world_crash(&w);
                        end_play();
                        if (reboot)
                                service_world_reboot(&w);
                        check_i64_eq(service_world_up(&w), 0);
                }
                service_world_idle(&w);
                check_world();
                service_world_close(&w);
                if (!killed)
                        check_true(n > 20);
        }
}

static void after_a_crash_at_any_point_all_agree(void **state)
{
        crash_at_every_point(false, false, 0);
}

static void after_a_crash_in_slow_calls_all_agree(void **state)
{
        crash_at_every_point(false, false, 2);
}

static void after_a_crash_and_a_reboot_all_agree(void **state)
{
        crash_at_every_point(true, true, 1);
}

/* --- one fault --- */

/* Retries come after a second, then two, then four. */
static void settle(void)
{
        for (int i = 0; i < 8; i++) {
                service_world_idle(&w);
                service_world_advance(&w, 10 * USEC_PER_SEC);
        }
        service_world_idle(&w);
        memset(play.promised, 0, sizeof(play.promised)); /* their time may be over */
}

static void play_to_the_end(void)
{
        while (play_on())
                service_world_turn(&w);
}

static void store_fails_at_every_write(enum err_code code, bool after)
{
        unsigned failed = 1;
        char name[64];

        for (unsigned n = 1; failed; n++) {
                (void) snprintf(name, sizeof(name), "write %u: %s", n,
                                err_code_to_string((int) code));
                check_case(name);
                begin_world();
                store_failing_plan(w.store, &(struct store_failing_plan){ .when = STORE_FAILING_NTH,
                                                                          .n = n,
                                                                          .after = after,
                                                                          .writes_only = true,
                                                                          .code = code });
                play_to_the_end();
                failed = store_failing_count(w.store);
                settle();
                check_world();
                service_world_close(&w);
        }
}

static void a_write_that_fails_leaves_nothing_behind(void **state)
{
        store_fails_at_every_write(ERR_EXHAUSTED, false);
        store_fails_at_every_write(ERR_UNAVAILABLE, false);
        store_fails_at_every_write(ERR_UNAVAILABLE, true);
}

static void driver_fails_at_every_call(enum err_code code, bool after)
{
        unsigned failed = 1;
        char name[64];

        for (unsigned n = 1; failed; n++) {
                (void) snprintf(name, sizeof(name), "call %u: %s%s", n,
                                err_code_to_string((int) code), after ? ", after" : "");
                check_case(name);
                begin_world();
                driver_failing_plan(w.driver,
                                    &(struct driver_failing_plan){ .when = DRIVER_FAILING_NTH,
                                                                   .n = n,
                                                                   .after = after,
                                                                   .code = code });
                play_to_the_end();
                failed = driver_failing_count(w.driver);
                settle();
                check_world();
                service_world_close(&w);
        }
}

static void a_call_that_fails_leaves_nothing_behind(void **state)
{
        driver_fails_at_every_call(ERR_UNAVAILABLE, false);
        driver_fails_at_every_call(ERR_UNAVAILABLE, true);
        driver_fails_at_every_call(ERR_TIMEOUT, true);
}

/* --- many faults --- */

static void whatever_fails_how_often_in_the_end_all_agree(void **state)
{
        for (unsigned seed = 1; seed <= 100; seed++) {
                char name[64];

                (void) snprintf(name, sizeof(name), "seed %u", seed);
                check_case(name);
                begin_world();
                store_failing_plan(w.store,
                                   &(struct store_failing_plan){ .when = STORE_FAILING_RANDOM,
                                                                 .n = 150,
                                                                 .seed = seed,
                                                                 .after = seed % 2 });
                driver_failing_plan(w.driver,
                                    &(struct driver_failing_plan){ .when = DRIVER_FAILING_RANDOM,
                                                                   .n = 200,
                                                                   .seed = seed,
                                                                   .after = seed % 3 == 0 });
                play_to_the_end();
                store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
                driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
                settle();
                check_world();
                service_world_close(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(after_a_crash_at_any_point_all_agree),
                cmocka_unit_test(after_a_crash_in_slow_calls_all_agree),
                cmocka_unit_test(after_a_crash_and_a_reboot_all_agree),
                cmocka_unit_test(a_write_that_fails_leaves_nothing_behind),
                cmocka_unit_test(a_call_that_fails_leaves_nothing_behind),
                cmocka_unit_test(whatever_fails_how_often_in_the_end_all_agree),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
