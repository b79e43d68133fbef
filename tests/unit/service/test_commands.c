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

static void a_sandbox_is_made_found_listed_and_deleted(void **state)
{
        struct made m = world_create(&w, &plain);
        const struct registry_query q = { .limit = 10 };
        struct registry_page page;

        check_i64_eq(m.result, 0);
        check_i64_eq(m.state, STATE_RUNNING);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(driver_fake_status(w.runtime, str_from(m.id)), RUNTIME_RUNNING);
        service_list(w.service, world_caller("t"), &q, &page);
        check_i64_eq(page.n, 1);

        check_i64_eq(world_command(&w, service_delete, m.id), 0);
        check_i64_eq(world_state(&w, m.id), -1);
        check_i64_eq(driver_fake_count(w.runtime), 0);
        check_i64_eq(world_command(&w, service_delete, m.id), ERR_RETURN(ERR_NOT_FOUND));
}

/* --- every command in every state --- */

/* Brings one there and holds it there. */
static void bring_to(enum state to, char id[static 64], struct creating **creating,
                     struct commanding **commanding)
{
        static const struct {
                enum driver_call held;
                service_command_fn *f;
        } ways[STATE_MAX_] = {
                [STATE_PAUSING] = { DRIVER_CALL_PAUSE, service_pause },
                [STATE_RESUMING] = { DRIVER_CALL_RESUME, service_resume },
                [STATE_STOPPING] = { DRIVER_CALL_DESTROY, service_delete },
        };

        *creating = NULL;
        *commanding = NULL;
        if (to == STATE_PENDING)
                driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        *creating = world_create_start(&w, &plain);
        if (to == STATE_PENDING) {
                service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        } else {
                service_world_until(&w, world_create_is_done(*creating));
                (void) world_create_end(TAKE_PTR(*creating));
        }
        (void) snprintf(id, 64, "%.*s", STR_ARG(registry_next(w.registry, STR_NULL)->id));
        if (to == STATE_PAUSED || to == STATE_RESUMING)
                check_i64_eq(world_command(&w, service_pause, id), 0);
        if (ways[to].f) {
                driver_fake_hold(w.runtime, 1U << ways[to].held);
                *commanding = world_command_start(&w, ways[to].f, id);
                service_world_until(&w, driver_fake_held(w.runtime, ways[to].held) == 1);
        }
        if (to == STATE_TERMINATED || to == STATE_FAILED) {
                check_true(driver_fake_kill(
                        w.runtime, str_from(id),
                        &(struct driver_health){ .status = to == STATE_FAILED ? RUNTIME_DEAD
                                                                              : RUNTIME_ENDED }));
                service_world_until(&w, world_state(&w, id) == (int) to);
                service_world_idle(&w);
        }
        check_i64_eq(world_state(&w, id), to);
}

static void renew(struct service *s, struct service_command *c)
{
        c->expires = w.clock.wall_now + 100 * USEC_PER_SEC;
        service_renew(s, c);
}

static void patch(struct service *s, struct service_command *c)
{
        static struct json_pair pair = { STR("k"), STR("v") };

        c->patch = (struct json_map){ &pair, 1 };
        service_patch_metadata(s, c);
}

#define CONFLICT  ERR_RETURN(ERR_CONFLICT)
#define NOT_FOUND ERR_RETURN(ERR_NOT_FOUND)

/* What is held is let go when the command has been given. */
static const struct {
        const char *name;
        service_command_fn *f;
        struct {
                int result;
                int state; /* afterwards; -1: gone */
        } in[STATE_MAX_];
} commands[] = {
        { "delete",
          service_delete,
          { { 0, -1 },
            { 0, -1 },
            { 0, -1 },
            { 0, -1 },
            { 0, -1 },
            { 0, -1 },
            { 0, -1 },
            { 0, -1 } } },
        { "pause", /* waits for create, pause and resume */
          service_pause,
          { { 0, STATE_PAUSED },
            { 0, STATE_PAUSED },
            { CONFLICT, STATE_PAUSED },
            { CONFLICT, STATE_PAUSED },
            { 0, STATE_PAUSED },
            { NOT_FOUND, -1 },
            { CONFLICT, STATE_TERMINATED },
            { CONFLICT, STATE_FAILED } } },
        { "resume",
          service_resume,
          { { CONFLICT, STATE_RUNNING },
            { CONFLICT, STATE_RUNNING },
            { 0, STATE_RUNNING },
            { 0, STATE_RUNNING },
            { CONFLICT, STATE_RUNNING },
            { NOT_FOUND, -1 },
            { CONFLICT, STATE_TERMINATED },
            { CONFLICT, STATE_FAILED } } },
        { "renew", /* waits for no lock */
          renew,
          { { 0, STATE_RUNNING },
            { 0, STATE_RUNNING },
            { 0, STATE_PAUSED },
            { 0, STATE_PAUSED },
            { 0, STATE_RUNNING },
            { CONFLICT, -1 },
            { CONFLICT, STATE_TERMINATED },
            { CONFLICT, STATE_FAILED } } },
        { "patch",
          patch,
          { { 0, STATE_RUNNING },
            { 0, STATE_RUNNING },
            { 0, STATE_PAUSED },
            { 0, STATE_PAUSED },
            { 0, STATE_RUNNING },
            { CONFLICT, -1 },
            { CONFLICT, STATE_TERMINATED },
            { CONFLICT, STATE_FAILED } } },
};

static void command_in_state(size_t i, enum state from)
{
        struct creating *creating;
        struct commanding *before, *c;
        char id[64], name[64];

        (void) snprintf(name, sizeof(name), "%s while %s", commands[i].name,
                        state_to_string((int) from));
        check_case(name);
        service_world_open(&w, NULL);
        bring_to(from, id, &creating, &before);
        c = world_command_start(&w, commands[i].f, id);
        service_world_turn(&w);
        driver_fake_release(w.runtime);
        service_world_until(&w, world_command_is_done(c));
        service_world_idle(&w);
        check_i64_eq(world_command_end(c), commands[i].in[from].result);
        check_i64_eq(world_state(&w, id), commands[i].in[from].state);
        if (creating)
                (void) world_create_end(creating);
        if (before)
                (void) world_command_end(before);
        check_i64_eq(driver_fake_count(w.runtime), world_live(&w));
        check_i64_eq(w.service->tenants.sandboxes, world_live(&w));
        service_world_close(&w);
}

static void every_command_can_be_given_in_every_state(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                for (int s = 0; s < STATE_MAX_; s++)
                        command_in_state(i, (enum state) s);
}

/* --- who may --- */

static struct service_command foreign;
static bool foreign_done;
static int foreign_result;

static void as_done(struct op *op, int result)
{
        foreign_result = result;
        foreign_done = true;
}

static int as(const char *tenant, service_command_fn *f, const char *id)
{
        foreign = (struct service_command){ .caller = world_caller(tenant), .id = str_from(id) };
        foreign_done = false;
        op_init(&foreign.req.op, as_done);
        f(w.service, &foreign);
        check_false(foreign_done); /* never from inside the call */
        service_world_until(&w, foreign_done);
        return foreign_result;
}

static void what_one_may_not_see_does_not_exist(void **state)
{
        struct made m = world_create(&w, &plain);
        service_command_fn *const all[] = { service_delete, service_pause, service_resume, renew,
                                            patch };
        struct registry_page page;
        char message[ERR_MESSAGE_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                check_i64_eq(as("u", all[i], m.id), NOT_FOUND);
                (void) snprintf(message, sizeof(message), "%s", foreign.req.err.message);
                check_true(foreign.req.record == NULL);
                check_i64_eq(as("u", all[i], "none"), NOT_FOUND);
                check_z_eq(foreign.req.err.message, message);
                check_i64_eq(as("u", all[i], "../../etc"), NOT_FOUND);
        }
        check_true(!service_find(w.service, world_caller("u"), str_from(m.id)));
        check_true(service_find(w.service, world_caller("t"), str_from(m.id)) != NULL);
        service_list(w.service, world_caller("u"), &(struct registry_query){ .limit = 10 }, &page);
        check_i64_eq(page.n, 0);
        /* Asking for another tenant's does not help. */
        service_list(w.service, world_caller("u"),
                     &(struct registry_query){ .limit = 10, .tenant = STR("t") }, &page);
        check_i64_eq(page.n, 0);
}

/* --- bad arguments and a driver that can't --- */

static void bad_arguments_change_nothing(void **state)
{
        struct made m = world_create(&w, &plain);
        int64_t version = world_find(&w, m.id)->version;

        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now), ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_patch(&w, m.id, "opensandbox.io/x", "y"), ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_patch(&w, m.id, "bad key", "y"), ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_find(&w, m.id)->version, version);
        check_i64_eq(world_patch(&w, m.id, "k", "v"), 0);
        check_i64_eq(world_patch(&w, m.id, "k", NULL), 0);
        check_i64_eq(world_find(&w, m.id)->metadata.n, 0);
}

static void what_never_expires_is_not_renewed(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ 0 });

        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now + USEC_PER_SEC), CONFLICT);
}

static void a_driver_that_cannot_pause_is_not_called(void **state)
{
        struct made m;

        service_world_down(&w);
        driver_fake_set_caps(w.runtime, 0);
        check_i64_eq(service_world_up(&w), 0);
        m = world_create(&w, &plain);
        check_i64_eq(world_command(&w, service_pause, m.id), ERR_RETURN(ERR_UNSUPPORTED));
        check_i64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_PAUSE), 0);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
}

static void a_pause_that_fails_leaves_what_the_runtime_shows(void **state)
{
        static const struct {
                bool after;
                int result;
                enum state state;
        } cases[] = { { false, ERR_RETURN(ERR_TIMEOUT), STATE_RUNNING },
                      { true, 0, STATE_PAUSED } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct made m = world_create(&w, &plain);

                driver_failing_plan(w.driver,
                                    &(struct driver_failing_plan){ .when = DRIVER_FAILING_NTH,
                                                                   .n = 1,
                                                                   .calls = 1U << DRIVER_CALL_PAUSE,
                                                                   .after = cases[i].after,
                                                                   .code = ERR_TIMEOUT });
                check_i64_eq(world_command(&w, service_pause, m.id), cases[i].result);
                check_i64_eq(world_state(&w, m.id), cases[i].state);
        }
}

static void a_delete_that_fails_is_reported_and_retried(void **state)
{
        struct made m = world_create(&w, &plain);

        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_NTH,
                                                           .n = 1,
                                                           .calls = 1U << DRIVER_CALL_DESTROY });
        check_i64_eq(world_command(&w, service_delete, m.id), ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(world_state(&w, m.id), STATE_STOPPING);
        service_world_advance(&w, 2 * USEC_PER_SEC);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), -1);
        check_i64_eq(driver_fake_count(w.runtime), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_sandbox_is_made_found_listed_and_deleted),
                cmocka_unit_test(every_command_can_be_given_in_every_state),
                T(what_one_may_not_see_does_not_exist),
                T(bad_arguments_change_nothing),
                T(what_never_expires_is_not_renewed),
                T(a_driver_that_cannot_pause_is_not_called),
                T(a_pause_that_fails_leaves_what_the_runtime_shows),
                T(a_delete_that_fails_is_reported_and_retried),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
