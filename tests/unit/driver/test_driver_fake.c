/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_fake.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_fake_maker.h"

static const struct driver_maker maker = DRIVER_FAKE_MAKER("fake", fake_open);
static struct driver_world w;

#define runtime ((struct driver_fake_world *) w.runtime)

static int set_up(void **state)
{
        driver_world_open(&w, &maker);
        return 0;
}

static int tear_down(void **state)
{
        driver_world_close(&w);
        return 0;
}

struct creating {
        struct driver_create create;
        bool done;
        int result;
};

static void created(struct op *op, int result)
{
        struct creating *c = container_of(op, struct creating, create.req.op);

        c->result = result;
        c->done = true;
}

static void create(struct creating *c, const struct sandbox *s)
{
        static const struct create_request request;

        *c = (struct creating){ 0 };
        op_init(&c->create.req.op, created);
        driver_start(w.driver, driver_create_req(&c->create, s, &request));
}

static void turn(int n)
{
        while (n-- > 0)
                net_loop_run_once(&w.loop, /* wait= */ false);
}

static void what_is_held_waits_until_it_is_released(void **state)
{
        scoped(sandbox_freep) struct sandbox *a = driver_world_record("sb-a");
        scoped(sandbox_freep) struct sandbox *b = driver_world_record("sb-b");
        struct creating ca, cb;

        driver_fake_hold(runtime, 1U << DRIVER_CALL_CREATE);
        create(&ca, a);
        create(&cb, b);
        turn(5);
        check_i64_eq(driver_fake_held(runtime, DRIVER_CALL_CREATE), 2);
        check_i64_eq(driver_fake_count(runtime), 0);
        check_i64_eq(driver_world_status(&w, a), RUNTIME_GONE); /* others go on */
        check_true(driver_fake_release_one(runtime));
        driver_world_until(&w, ca.done);
        check_false(cb.done);
        check_i64_eq(driver_fake_status(runtime, a->id), RUNTIME_RUNNING);
        op_cancel(&cb.create.req.op);
        driver_world_until(&w, cb.done);
        check_i64_eq(cb.result, CODE(CANCELED));
        check_i64_eq(driver_fake_status(runtime, b->id), RUNTIME_GONE);
        check_false(driver_fake_release_one(runtime));
        driver_fake_release(runtime);
        check_i64_eq(driver_world_create(&w, b), 0);
        check_i64_eq(driver_fake_calls(runtime, DRIVER_CALL_CREATE), 3);
}

static void what_vanishes_is_gone_and_not_told(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        check_i64_eq(driver_world_create(&w, s), 0);
        check_true(driver_fake_vanish(runtime, s->id));
        check_false(driver_fake_vanish(runtime, s->id));
        turn(5);
        check_i64_eq(w.notified, 0);
        check_i64_eq(driver_world_status(&w, s), RUNTIME_GONE);
}

static void vanish_in_died(struct driver_watcher *watcher, struct driver *d, struct str id,
                           const struct driver_health *how)
{
        w.notified++;
        check_true(driver_fake_vanish(runtime, id));
        check_str_eq(id, "sb-1");
        check_str_eq(how->message, "by the test");
}

static void news_outlive_what_they_are_about(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct driver_watcher watcher = { vanish_in_died };

        driver_watch(w.driver, &watcher);
        check_i64_eq(driver_world_create(&w, s), 0);
        fake_kill(&w, s->id, RUNTIME_DEAD);
        driver_world_until(&w, w.notified > 0);
        check_i64_eq(driver_fake_count(runtime), 0);
        driver_watch(w.driver, NULL);
}

static void what_was_not_scanned_causes_no_event(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        char found[64];

        check_i64_eq(driver_world_create(&w, s), 0);
        driver_world_restart(&w);
        fake_kill(&w, s->id, RUNTIME_DEAD);
        turn(5);
        check_i64_eq(w.notified, 0);
        check_i64_eq(driver_world_scan(&w, found, sizeof(found), NULL), 0);
        check_z_eq(found, "sb-1:dead");
}

/* --- agents --- */

static void say_whose(struct http_req *req)
{
        const struct driver_fake_agent *a = driver_fake_agent_of(req);

        ++*(int *) a->data;
        http_reply(req, 200, STR("application/octet-stream"), arena_dup_str(&req->arena, a->id));
}

struct reading {
        struct agent_read read;
        bool done;
        int result;
};

static void read_done(struct op *op, int result)
{
        struct reading *r = container_of(op, struct reading, read.req.op);

        r->result = result;
        r->done = true;
}

static void an_agent_serves_what_a_test_wants(void **state)
{
        static const struct http_route routes[] = {
                { METHOD_GET, "/files/download", .scope = HTTP_SCOPE_PUBLIC, .exec = say_whose },
        };
        static const struct http_api api = {
                .name = "x", .prefix = "", .routes = routes, .n_routes = 1
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct reading r = { .read.path = STR("f") };
        int requests = 0;

        driver_fake_set_agent(runtime, &api, &requests);
        check_i64_eq(driver_world_create(&w, s), 0);
        op_init(&r.read.req.op, read_done);
        agent_read(w.agents, &r.read, w.driver, s);
        driver_world_until(&w, r.done);
        check_i64_eq(r.result, 0);
        check_str_eq(buf_str(&r.read.bytes), "sb-1");
        check_i64_eq(requests, 1);
        agent_read_done(&r.read);
}

/* --- many --- */

static void a_thousand_live_side_by_side(void **state)
{
        for (int i = 0; i < 1000; i++) {
                char id[32];
                struct sandbox *s;

                (void) snprintf(id, sizeof(id), "sb-%d", i);
                s = driver_world_record(id);
                check_i64_eq(driver_world_create(&w, s), 0);
                sandbox_free(s);
        }
        check_i64_eq(driver_fake_count(runtime), 1000);
}

static void a_world_of_its_own_ends_with_the_driver(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct driver_setup setup = { .loop = &w.loop, .installation = STR("own") };
        struct driver *kept = w.driver;
        struct err e;

        for (int i = 0; i < 2; i++) {
                check_i64_eq(driver_fake_open(&setup, &w.driver, &e), 0);
                check_i64_eq(driver_world_status(&w, s), RUNTIME_GONE);
                check_i64_eq(driver_world_create(&w, s), 0);
                check_i64_eq(driver_world_ping(&w, s), 0);
                driver_world_close_driver(&w, w.driver);
        }
        setup.installation = STR("");
        check_i64_eq(driver_fake_open(&setup, &w.driver, &e), CODE(INVALID));
        w.driver = kept;
}

#define FAKE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FAKE_TEST(what_is_held_waits_until_it_is_released),
                FAKE_TEST(what_vanishes_is_gone_and_not_told),
                FAKE_TEST(news_outlive_what_they_are_about),
                FAKE_TEST(what_was_not_scanned_causes_no_event),
                FAKE_TEST(an_agent_serves_what_a_test_wants),
                FAKE_TEST(a_thousand_live_side_by_side),
                FAKE_TEST(a_world_of_its_own_ends_with_the_driver),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
