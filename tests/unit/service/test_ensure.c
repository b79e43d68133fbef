/* SPDX-License-Identifier: Apache-2.0 */

/* The one sandbox of an owner: made once, kept as long as it can be, replaced when it can't. */

#include <stdio.h>

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

/* --- an agent that may be silent --- */

static unsigned silences; /* so many pings are not answered */

static void serve_version(struct http_req *req)
{
        if (silences > 0) {
                silences--;
                http_reply_error(req, 500, "SILENT", "not now");
                return;
        }
        http_reply(req, 200, STR("application/json"),
                   STR("{\"name\":\"fake\",\"version\":\"0\",\"protocol\":1,\"build\":\"\"}"));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/version", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_version },
};
static const struct http_api agent = {
        .name = "agent", .prefix = "", .routes = routes, .n_routes = ARRAY_SIZE(routes)
};

static int set_up(void **state)
{
        silences = 0;
        service_world_open(&w, NULL);
        driver_fake_set_agent(w.runtime, &agent, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

/* --- asking --- */

struct asking {
        struct service_ensure x;
        struct caller caller;
        struct owner owner;
        struct create_request request;
        struct arena arena;
        bool done;
        int result;
        int state; /* enum state, of the record that came back; -1 without one */
};

static void ensure_done(struct op *op, int result)
{
        struct asking *a = container_of(op, struct asking, x.req.op);

        a->result = result;
        a->state = a->x.req.record ? a->x.req.record->status.state : -1;
        a->done = true;
        arena_wipe(&a->arena);
}

static struct asking *ensure_start(const char *project, bool must_be_new)
{
        static const struct str body =
                STR("{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sh\"],"
                    "\"resourceLimits\":{}}");
        struct asking *a = xnew(struct asking);
        struct json_error e;

        arena_init(&a->arena, ARENA_MAX_REQUEST);
        check_i64_eq(json_decode(body, create_fields, 0, &a->arena, &a->request, &e), 0);
        a->caller = *world_caller("t");
        a->owner = (struct owner){ .organization_id = STR("t"),
                                   .project_id = str_from(project),
                                   .user_id = STR("p") };
        a->x = (struct service_ensure){ .caller = &a->caller,
                                        .owner = &a->owner,
                                        .request = &a->request,
                                        .arena = &a->arena,
                                        .must_be_new = must_be_new };
        op_init(&a->x.req.op, ensure_done);
        service_ensure(w.service, &a->x);
        check_false(a->done);
        return a;
}

struct got {
        int result;
        char id[64], other_id[64];
        bool created;
        int state;
};

static struct got ensure_end(struct asking *a)
{
        struct got g = { .result = a->result, .created = a->x.created, .state = a->state };

        check_true(a->done);
        memcpy(g.id, a->x.id, sizeof(g.id));
        memcpy(g.other_id, a->x.other_id, sizeof(g.other_id));
        free(a);
        return g;
}

/* Time goes on while a request waits. */
static struct got ensure_new(const char *project, bool must_be_new)
{
        struct asking *a = ensure_start(project, must_be_new);

        service_world_until(&w, (service_world_advance(&w, 10 * USEC_PER_MSEC), a->done));
        return ensure_end(a);
}

static struct got call(const char *project)
{
        return ensure_new(project, false);
}

/* --- rules --- */

static void each_state_has_its_step(void **state)
{
        static const struct {
                int state;
                enum ensure_step step;
        } cases[] = {
                { STATE_PENDING, ENSURE_WAIT },      { STATE_RUNNING, ENSURE_PING },
                { STATE_PAUSING, ENSURE_WAIT },      { STATE_PAUSED, ENSURE_RESUME },
                { STATE_RESUMING, ENSURE_WAIT },     { STATE_STOPPING, ENSURE_DELETE },
                { STATE_TERMINATED, ENSURE_CREATE }, { STATE_FAILED, ENSURE_CREATE },
        };

        check_i64_eq(ensure__step(NULL), ENSURE_CREATE);
        check_u64_eq(ARRAY_SIZE(cases), STATE_MAX_);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sandbox record = { .status = { .state = cases[i].state } };

                check_i64_eq(ensure__step(&record), cases[i].step);
        }
}

static void nothing_is_given_up_on_a_runtimes_silence(void **state)
{
        static const struct {
                int status;
                enum ensure_step step;
        } cases[] = {
                { RUNTIME_RUNNING, ENSURE_DELETE }, { RUNTIME_PAUSED, ENSURE_RESUME },
                { RUNTIME_ENDED, ENSURE_DELETE },   { RUNTIME_DEAD, ENSURE_DELETE },
                { RUNTIME_GONE, ENSURE_DELETE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct driver_health h = { .status = cases[i].status };

                check_i64_eq(ensure__judge(0, &h), cases[i].step);
                check_i64_eq(ensure__judge(ERR_RETURN(ERR_UNAVAILABLE), &h), ENSURE_WAIT);
        }
}

/* --- the ordinary way --- */

static void an_owner_gets_one_and_keeps_it(void **state)
{
        struct got first = call("a"), again = call("a"), other = call("b");

        check_true(first.result == 0 && first.created && first.state == STATE_RUNNING);
        check_true(again.result == 0 && !again.created);
        check_z_eq(again.id, first.id);
        check_true(other.created && strcmp(other.id, first.id) != 0);
        check_true(world_find(&w, first.id)->owner_bound);
        check_true(world_find(&w, first.id)->expiry == NULL);
}

static void must_be_new_returns_the_existing_id(void **state)
{
        struct got first = ensure_new("a", true), again = ensure_new("a", true);

        check_i64_eq(first.result, 0);
        check_i64_eq(again.result, ERR_RETURN(ERR_EXISTS));
        check_z_eq(again.other_id, first.id);
        check_z_eq(again.id, "");
        check_i64_eq(world_command(&w, service_delete, first.id), 0);
        check_i64_eq(ensure_new("a", true).result, 0);
        check_u64_eq(world_live(&w), 1);
}

struct putting {
        struct store_put put;
        bool done;
};

static void put_done(struct op *op, int result)
{
        struct putting *p = container_of(op, struct putting, put.req.op);

        check_i64_eq(result, 0);
        p->done = true;
}

static void put(const char *key, const char *value)
{
        struct putting p = { 0 };

        op_init(&p.put.req.op, put_done);
        store_start(w.store, store_put_req(&p.put, str_from(key), str_from(value)));
        service_world_until(&w, p.done);
}

static void one_that_puristas_own_service_made_is_not_given_up(void **state)
{
        static const char *const indexes[] = { "sandbox:owner:t:a:p",
                                               "sandbox:owner:t:a:p:shared-project-user" };

        put("sandbox:registry:sb-1",
            "{\"sandboxId\":\"sb-1\",\"organizationId\":\"t\",\"projectId\":\"a\","
            "\"userId\":\"p\",\"containerName\":\"purista-sb-1\",\"createdAt\":7}");
        for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
                struct got ensured, new;

                check_case(indexes[i]);
                put(indexes[i], "\"sb-1\"");
                ensured = call("a");
                check_i64_eq(ensured.result, ERR_RETURN(ERR_CONFLICT));
                check_z_eq(ensured.id, "");
                new = ensure_new("a", true);
                check_i64_eq(new.result, ERR_RETURN(ERR_EXISTS));
                check_z_eq(new.other_id, "sb-1");
                check_true(world_find(&w, "sb-1") == NULL);
        }
        check_u64_eq(world_live(&w), 0);
        check_true(call("b").created);
}

static void many_at_once_make_one(void **state)
{
        struct asking *all[200];
        size_t created = 0;
        struct got g[ARRAY_SIZE(all)];

        driver_fake_delay(w.runtime, 3);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                all[i] = ensure_start("a", false);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                service_world_until(&w, all[i]->done);
                g[i] = ensure_end(all[i]);
                check_i64_eq(g[i].result, 0);
                check_z_eq(g[i].id, g[0].id);
                created += g[i].created;
        }
        check_u64_eq(created, 1);
        check_u64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_CREATE), 1);
}

/* --- states --- */

static void one_that_is_being_made_is_waited_for(void **state)
{
        struct asking *first, *second;
        struct got a, b;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        first = ensure_start("a", false);
        second = ensure_start("a", false);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        /* Longer than a create is waited for, and than the lease of the lock. */
        for (int i = 0; i < 60; i++) {
                service_world_advance(&w, USEC_PER_SEC);
                service_world_turn(&w);
        }
        check_false(first->done || second->done);
        driver_fake_release(w.runtime);
        service_world_until(&w, first->done && second->done);
        a = ensure_end(first);
        b = ensure_end(second);
        check_true(a.result == 0 && a.created && a.state == STATE_RUNNING);
        check_true(b.result == 0 && !b.created);
        check_z_eq(b.id, a.id);
}

static void one_that_can_not_be_made_is_an_error(void **state)
{
        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM,
                                                           .n = 1,
                                                           .calls = 1U << DRIVER_CALL_CREATE,
                                                           .code = ERR_EXHAUSTED });
        check_i64_eq(call("a").result, ERR_RETURN(ERR_EXHAUSTED));
        check_z_eq(call("a").id, "");
        driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
        service_world_idle(&w);
        check_true(call("a").created);
        check_u64_eq(world_live(&w), 1);
}

static void a_paused_one_is_resumed(void **state)
{
        struct got first = call("a"), again;

        check_i64_eq(world_command(&w, service_pause, first.id), 0);
        again = call("a");
        check_true(again.result == 0 && !again.created && again.state == STATE_RUNNING);
        check_z_eq(again.id, first.id);
}

static void one_that_is_going_is_followed_by_another(void **state)
{
        struct got first = call("a"), again;
        struct commanding *deleting;
        struct asking *a;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_DESTROY);
        deleting = world_command_start(&w, service_delete, first.id);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_DESTROY) == 1);
        a = ensure_start("a", true);
        for (int i = 0; i < 20; i++)
                service_world_turn(&w);
        check_false(a->done);
        driver_fake_release(w.runtime);
        service_world_until(&w, a->done && world_command_is_done(deleting));
        again = ensure_end(a);
        check_i64_eq(world_command_end(deleting), 0);
        check_true(again.result == 0 && again.created && strcmp(again.id, first.id) != 0);
        check_u64_eq(world_live(&w), 1);
}

static void one_that_died_is_replaced(void **state)
{
        struct got first = call("a"), again;
        const struct driver_health how = { RUNTIME_DEAD, "OOM_KILLED", STR("by the test") };

        check_true(driver_fake_kill(w.runtime, str_from(first.id), &how));
        service_world_idle(&w);
        again = call("a");
        check_true(again.created && strcmp(again.id, first.id) != 0);
        check_u64_eq(world_live(&w), 1);
}

/* --- an agent that does not answer --- */

static void one_missed_ping_loses_no_data(void **state)
{
        struct got first = call("a"), again;

        for (unsigned n = 1; n <= 5; n++) {
                silences = n;
                again = call("a");
                check_true(again.result == 0 && !again.created);
                check_z_eq(again.id, first.id);
                check_u64_eq(silences, 0);
        }
        check_u64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_DESTROY), 0);
}

static void one_that_stays_silent_is_replaced(void **state)
{
        struct got first = call("a"), again;

        silences = 6;
        again = call("a");
        check_true(again.result == 0 && again.created && strcmp(again.id, first.id) != 0);
        check_i64_eq(driver_fake_status(w.runtime, str_from(first.id)), RUNTIME_GONE);
        check_u64_eq(world_live(&w), 1);
}

static void one_that_vanished_is_replaced(void **state)
{
        struct got first = call("a"), again;

        check_true(driver_fake_vanish(w.runtime, str_from(first.id)));
        again = call("a");
        check_true(again.result == 0 && again.created && strcmp(again.id, first.id) != 0);
        check_u64_eq(world_live(&w), 1);
}

static void a_runtime_without_an_answer_loses_no_data(void **state)
{
        struct got first = call("a"), again;

        driver_failing_plan(w.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM,
                                                           .n = 1,
                                                           .calls = 1U << DRIVER_CALL_CONNECT
                                                                    | 1U << DRIVER_CALL_INSPECT });
        again = call("a");
        check_i64_eq(again.result, ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(world_state(&w, first.id), STATE_RUNNING);
        check_i64_eq(driver_fake_status(w.runtime, str_from(first.id)), RUNTIME_RUNNING);
        driver_failing_plan(w.driver, &(struct driver_failing_plan){ 0 });
        check_z_eq(call("a").id, first.id);
}

/* --- who leaves, what fails --- */

static void cancel_at_any_step_leaves_nothing_undone(void **state)
{
        driver_fake_delay(w.runtime, 2);
        for (int turns = 0; turns < 40; turns++) {
                struct asking *a = ensure_start("a", false);
                struct got g;

                silences = turns % 3;
                for (int i = 0; i < turns && !a->done; i++)
                        service_world_turn(&w);
                op_cancel(&a->x.req.op);
                service_world_until(&w, a->done);
                g = ensure_end(a);
                check_true(g.result == 0 || g.result == ERR_RETURN(ERR_CANCELED));
                service_world_idle(&w);
                check_true(world_live(&w) <= 1);
                if (turns % 7 == 6)
                        check_i64_eq(world_command(&w, service_delete, call("a").id), 0);
        }
        check_i64_eq(call("a").result, 0);
        check_u64_eq(world_live(&w), 1);
}

static void a_stop_ends_those_who_wait(void **state)
{
        struct asking *made, *waits;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        made = ensure_start("a", false);
        waits = ensure_start("a", false);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        service_world_down(&w);
        check_true(made->done && waits->done);
        check_true(ensure_end(made).result < 0 && ensure_end(waits).result < 0);
        driver_fake_release(w.runtime);
        check_i64_eq(service_world_up(&w), 0);
        service_world_idle(&w);
        check_i64_eq(call("a").result, 0);
        check_u64_eq(world_live(&w), 1);
}

/* The lock of the one that died is in the store: its lease has to be over. */
static void a_crash_at_any_step_leaves_one_at_most(void **state)
{
        for (int turns = 0; turns < 30; turns++) {
                struct asking *a = ensure_start("a", false);
                struct got g;

                for (int i = 0; i < turns && !a->done; i++)
                        service_world_turn(&w);
                service_world_crash(&w);
                check_true(a->done);
                (void) ensure_end(a);
                check_i64_eq(service_world_up(&w), 0);
                service_world_idle(&w);
                service_world_advance(&w, 2 * REGISTRY_LEASE);
                g = call("a");
                check_i64_eq(g.result, 0);
                check_u64_eq(world_live(&w), 1);
                check_u64_eq(driver_fake_count(w.runtime), 1);
                check_i64_eq(world_command(&w, service_delete, g.id), 0);
        }
}

static void a_store_that_fails_makes_no_second_one(void **state)
{
        for (unsigned n = 1; n < 25; n++) {
                store_failing_plan(w.store, &(struct store_failing_plan){ .when = STORE_FAILING_NTH,
                                                                          .n = n });
                (void) call("a");
                store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
                service_world_idle(&w);
                service_world_advance(&w, 2 * REGISTRY_LEASE);
                service_world_idle(&w);
                check_i64_eq(call("a").result, 0);
                check_u64_eq(world_live(&w), 1);
                if (n % 3 == 0)
                        check_i64_eq(world_command(&w, service_delete, call("a").id), 0);
        }
}

/* --- whose it is --- */

static void a_sandbox_is_its_owners(void **state)
{
        struct got g = call("a");
        const struct caller owner = { STR("t"), STR("p"), ROLE_USER },
                            other = { STR("t"), STR("q"), ROLE_USER },
                            stranger = { STR("u"), STR("p"), ROLE_USER };
        const struct {
                const struct caller *caller;
                const char *project;
                int result;
        } cases[] = {
                { &owner, NULL, 0 },
                { &owner, "a", 0 },
                { &owner, "b", ERR_RETURN(ERR_FORBIDDEN) },
                { &other, NULL, ERR_RETURN(ERR_FORBIDDEN) },
                { &other, "a", ERR_RETURN(ERR_FORBIDDEN) },
                { &stranger, NULL, ERR_RETURN(ERR_NOT_FOUND) },
                { &stranger, "a", ERR_RETURN(ERR_NOT_FOUND) },
        };
        const struct sandbox *record;
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_i64_eq(service_find_owned(w.service,
                                                &(struct owned){ cases[i].caller, str_from(g.id),
                                                                 str_from(cases[i].project) },
                                                &record, &e),
                             cases[i].result);
        check_i64_eq(service_find_owned(w.service, &(struct owned){ &owner, STR("none"), STR_NULL },
                                        &record, &e),
                     ERR_RETURN(ERR_NOT_FOUND));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                cmocka_unit_test(each_state_has_its_step),
                cmocka_unit_test(nothing_is_given_up_on_a_runtimes_silence),
                WITH_WORLD(an_owner_gets_one_and_keeps_it),
                WITH_WORLD(must_be_new_returns_the_existing_id),
                WITH_WORLD(one_that_puristas_own_service_made_is_not_given_up),
                WITH_WORLD(many_at_once_make_one),
                WITH_WORLD(one_that_is_being_made_is_waited_for),
                WITH_WORLD(one_that_can_not_be_made_is_an_error),
                WITH_WORLD(a_paused_one_is_resumed),
                WITH_WORLD(one_that_is_going_is_followed_by_another),
                WITH_WORLD(one_that_died_is_replaced),
                WITH_WORLD(one_missed_ping_loses_no_data),
                WITH_WORLD(one_that_stays_silent_is_replaced),
                WITH_WORLD(one_that_vanished_is_replaced),
                WITH_WORLD(a_runtime_without_an_answer_loses_no_data),
                WITH_WORLD(cancel_at_any_step_leaves_nothing_undone),
                WITH_WORLD(a_stop_ends_those_who_wait),
                WITH_WORLD(a_crash_at_any_step_leaves_one_at_most),
                WITH_WORLD(a_store_that_fails_makes_no_second_one),
                WITH_WORLD(a_sandbox_is_its_owners),
        };

        return cmocka_run_group_tests_name("ensure", tests, NULL, NULL);
}
