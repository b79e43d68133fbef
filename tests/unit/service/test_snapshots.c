/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/service_world.h"

#define E(code) ERR_RETURN(ERR_##code)

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

/* --- commands that wait --- */

struct snapshot_call {
        struct service_snapshot call;
        bool done;
        int result;
        char id[64];
        int state; /* enum snapshot_state of what came back; -1 without one */
};

static void call_done(struct op *op, int result)
{
        struct snapshot_call *x = container_of(op, struct snapshot_call, call.req.op);

        x->result = result;
        x->state = x->call.snapshot ? x->call.snapshot->status.state : -1;
        if (x->call.snapshot)
                (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(x->call.snapshot->id));
        x->done = true;
}

typedef void snapshot_fn(struct service *s, struct service_snapshot *x);

static void call_start(struct snapshot_call *x, snapshot_fn *f, const char *tenant, const char *id)
{
        *x = (struct snapshot_call){ .call = { .caller = world_caller(tenant),
                                               .id = str_from(id) } };
        op_init(&x->call.req.op, call_done);
        f(w.service, &x->call);
        check_false(x->done);
}

static int call_as(struct snapshot_call *x, snapshot_fn *f, const char *tenant, const char *id)
{
        call_start(x, f, tenant, id);
        service_world_until(&w, x->done);
        return x->result;
}

static int call(struct snapshot_call *x, snapshot_fn *f, const char *id)
{
        return call_as(x, f, "t", id);
}

static int state_of(const char *id)
{
        const struct snapshot *s =
                service_find_snapshot(w.service, world_caller("t"), str_from(id));

        return s ? s->status.state : -1;
}

static struct made sandbox(void)
{
        struct made m = world_create(&w, &(struct create_options){ 0 });

        check_i64_eq(m.result, 0);
        return m;
}

/* One that is Ready. */
static void kept(const char *sandbox, char ret[static 64])
{
        struct snapshot_call x;

        check_i64_eq(call(&x, service_create_snapshot, sandbox), 0);
        check_i64_eq(x.state, SNAPSHOT_CREATING);
        service_world_until(&w, state_of(x.id) == SNAPSHOT_READY);
        memcpy(ret, x.id, 64);
}

static struct made restore(const char *tenant, const char *id, const char *extension)
{
        char body[256];

        (void) snprintf(body, sizeof(body),
                        "{\"snapshotId\":\"%s\",\"resourceLimits\":{},\"extensions\":{%s}}", id,
                        extension);
        return world_create(&w, &(struct create_options){ .tenant = tenant, .body = body });
}

/* --- tests --- */

static void a_snapshot_outlives_its_sandbox(void **state)
{
        struct made m = sandbox(), next;
        struct snapshot_call x;
        char id[64];

        kept(m.id, id);
        check_i64_eq(world_command(&w, service_delete, m.id), 0);
        next = restore("t", id, "");
        check_i64_eq(next.result, 0);
        check_i64_eq(next.state, STATE_RUNNING);
        check_str_eq(world_find(&w, next.id)->snapshot_id, id);
        /* It is needed. */
        check_i64_eq(call(&x, service_delete_snapshot, id), E(CONFLICT));
        check_true(x.call.in_use);
        check_i64_eq(state_of(id), SNAPSHOT_READY);
        check_i64_eq(world_command(&w, service_delete, next.id), 0);
        check_i64_eq(call(&x, service_delete_snapshot, id), 0);
        check_i64_eq(state_of(id), -1);
        check_u64_eq(driver_fake_snapshots(w.runtime), 0);
        check_i64_eq(call(&x, service_delete_snapshot, id), E(NOT_FOUND));
}

static void what_is_refused(void **state)
{
        struct made m = sandbox();
        struct snapshot_call x;
        char id[64];

        kept(m.id, id);
        check_i64_eq(call(&x, service_create_snapshot, "none"), E(NOT_FOUND));
        check_i64_eq(call_as(&x, service_create_snapshot, "other", m.id), E(NOT_FOUND));
        check_i64_eq(call_as(&x, service_delete_snapshot, "other", id), E(NOT_FOUND));
        check_true(!service_find_snapshot(w.service, world_caller("other"), str_from(id)));
        check_i64_eq(restore("other", id, "").result, E(NOT_FOUND));
        check_i64_eq(restore("t", "none", "").result, E(NOT_FOUND));
        check_i64_eq(restore("t", id, "\"hutch.driver\":\"docker\"").result, E(INVALID));
        check_i64_eq(world_command(&w, service_pause, m.id), 0);
        check_i64_eq(call(&x, service_create_snapshot, m.id), E(CONFLICT));
        check_u64_eq(driver_fake_snapshots(w.runtime), 1);
        /* A driver that takes none is not asked. */
        service_world_down(&w);
        driver_fake_set_caps(w.runtime, DRIVER_PAUSE);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(call(&x, service_create_snapshot, m.id), E(UNSUPPORTED));
        check_i64_eq(restore("t", "none", "").result, E(UNSUPPORTED));
}

static void what_is_being_created_can_be_neither_used_nor_deleted(void **state)
{
        struct made m = sandbox();
        struct commanding *gone;
        struct snapshot_call x, y;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SNAPSHOT);
        check_i64_eq(call(&x, service_create_snapshot, m.id), 0);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_SNAPSHOT) == 1);
        check_i64_eq(restore("t", x.id, "").result, E(CONFLICT));
        check_i64_eq(call(&y, service_delete_snapshot, x.id), E(CONFLICT));
        check_false(y.call.in_use);
        /* The sandbox's end waits for it. */
        gone = world_command_start(&w, service_delete, m.id);
        for (int i = 0; i < 10; i++)
                service_world_turn(&w);
        check_false(world_command_is_done(gone));
        driver_fake_release(w.runtime);
        service_world_until(&w, world_command_is_done(gone));
        check_i64_eq(world_command_end(gone), 0);
        service_world_until(&w, state_of(x.id) == SNAPSHOT_READY);
}

static void few_are_taken_at_once(void **state)
{
        const struct service_limits limits = { .each = { .snapshots = 7 } };
        struct made m[8];
        struct snapshot_call x[8];
        struct err e;
        size_t ready = 0;

        check_i64_eq(service_set_limits(w.service, &limits, &e), 0);
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SNAPSHOT);
        for (size_t i = 0; i < ARRAY_SIZE(m); i++)
                m[i] = sandbox();
        /* All at once: a quota is not passed together. */
        for (size_t i = 0; i < ARRAY_SIZE(m); i++)
                call_start(&x[i], service_create_snapshot, "t", m[i].id);
        for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
                service_world_until(&w, x[i].done);
                check_i64_eq(x[i].result, i < 7 ? 0 : E(EXHAUSTED));
        }
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_SNAPSHOT)
                                        == service_defaults.snapshots_at_once);
        for (int i = 0; i < 10; i++)
                service_world_turn(&w);
        check_u64_eq(driver_fake_held(w.runtime, DRIVER_CALL_SNAPSHOT),
                     service_defaults.snapshots_at_once);
        driver_fake_release(w.runtime);
        service_world_idle(&w);
        for (size_t i = 0; i < 7; i++)
                ready += state_of(x[i].id) == SNAPSHOT_READY;
        check_u64_eq(ready, 7);
}

static void driver_failures_are_reported(void **state)
{
        const struct driver_failing_plan plan = { .when = DRIVER_FAILING_FROM,
                                                  .n = 1,
                                                  .calls = 1U << DRIVER_CALL_SNAPSHOT };
        struct made m = sandbox();
        struct snapshot_call x, y;
        const struct snapshot *s;

        driver_failing_plan(w.driver, &plan);
        check_i64_eq(call(&x, service_create_snapshot, m.id), 0);
        service_world_until(&w, state_of(x.id) == SNAPSHOT_FAILED);
        s = service_find_snapshot(w.service, world_caller("t"), str_from(x.id));
        check_str_eq(s->status.reason, SNAPSHOT_REASON_FAILED);
        check_str_eq(s->status.message, "made to fail");
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(call(&y, service_delete_snapshot, x.id), 0);
}

static void a_crash_while_one_is_taken_leaves_nothing(void **state)
{
        static const bool after[] = { false, true };

        for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
                const struct driver_failing_plan plan = { .when = DRIVER_FAILING_NTH,
                                                          .n = 1,
                                                          .calls = 1U << DRIVER_CALL_SNAPSHOT,
                                                          .after = true };
                struct made m = sandbox();
                struct snapshot_call x;

                if (after[i]) /* the driver has made it, and we don't know */
                        driver_failing_plan(w.driver, &plan);
                else
                        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SNAPSHOT);
                check_i64_eq(call(&x, service_create_snapshot, m.id), 0);
                if (after[i])
                        service_world_until(&w, driver_fake_snapshots(w.runtime) == 1);
                else
                        service_world_until(&w,
                                            driver_fake_held(w.runtime, DRIVER_CALL_SNAPSHOT) == 1);
                service_world_crash(&w);
                driver_fake_hold(w.runtime, 0);
                check_i64_eq(service_world_up(&w), 0);
                service_world_until(&w, state_of(x.id) == SNAPSHOT_FAILED);
                service_world_until(&w, driver_fake_snapshots(w.runtime) == 0);
                check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        }
}

static void a_crash_while_one_is_deleted_is_finished(void **state)
{
        struct made m = sandbox();
        struct snapshot_call x;
        char id[64];

        kept(m.id, id);
        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SNAPSHOT_REMOVE);
        call_start(&x, service_delete_snapshot, "t", id);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_SNAPSHOT_REMOVE) == 1);
        check_i64_eq(state_of(id), SNAPSHOT_DELETING);
        op_cancel(&x.call.req.op);
        service_world_until(&w, x.done);
        service_world_crash(&w);
        driver_fake_hold(w.runtime, 0);
        check_i64_eq(service_world_up(&w), 0);
        service_world_until(&w, state_of(id) == -1);
        check_u64_eq(driver_fake_snapshots(w.runtime), 0);
}

static void unknown_snapshots_are_removed_and_missing_ones_failed(void **state)
{
        struct made m = sandbox();
        char id[64];

        kept(m.id, id);
        service_world_down(&w);
        service_world_lose_records(&w);
        check_i64_eq(service_world_up(&w), 0);
        service_world_until(&w, driver_fake_snapshots(w.runtime) == 0);
        kept(m.id, id);
        check_true(driver_fake_lose_snapshot(w.runtime, str_from(id)));
        service_world_advance(&w, service_defaults.reconcile_every);
        service_world_until(&w, state_of(id) == SNAPSHOT_FAILED);
        check_i64_eq(restore("t", id, "").result, E(CONFLICT));
}

static void a_server_that_stops_waits_for_none_that_waits(void **state)
{
        struct made m = sandbox();
        struct snapshot_call x[6];

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_SNAPSHOT);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++)
                check_i64_eq(call(&x[i], service_create_snapshot, m.id), 0);
        service_world_down(&w);
        driver_fake_hold(w.runtime, 0);
        check_i64_eq(service_world_up(&w), 0);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++)
                service_world_until(&w, state_of(x[i].id) == SNAPSHOT_FAILED);
        check_u64_eq(driver_fake_snapshots(w.runtime), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_snapshot_outlives_its_sandbox),
                TEST(what_is_refused),
                TEST(what_is_being_created_can_be_neither_used_nor_deleted),
                TEST(few_are_taken_at_once),
                TEST(driver_failures_are_reported),
                TEST(a_crash_while_one_is_taken_leaves_nothing),
                TEST(a_crash_while_one_is_deleted_is_finished),
                TEST(unknown_snapshots_are_removed_and_missing_ones_failed),
                TEST(a_server_that_stops_waits_for_none_that_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
