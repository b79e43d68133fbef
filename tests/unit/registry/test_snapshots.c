/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/snapshots.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code) ERR_RETURN(ERR_##code)

static struct registry_world w;

static int set_up(void **state)
{
        rw_open(&w);
        return 0;
}

static int tear_down(void **state)
{
        rw_close(&w);
        return 0;
}

struct writing {
        struct snapshots_write call;
        bool done;
        int result;
};

static void write_done(struct op *op, int result)
{
        struct writing *x = container_of(op, struct writing, call.req.op);

        x->result = result;
        x->done = true;
}

static int await(struct writing *x)
{
        check_false(x->done);
        while (!x->done)
                net_loop_run_once(&w.store.loop, true);
        return x->result;
}

static struct snapshot *made(const char *id, const char *tenant, const char *name, int64_t at)
{
        struct snapshot *s = NULL;
        struct err e;
        struct snapshot_facts f = { .id = str_from(id),
                                    .sandbox_id = STR("sb-1"),
                                    .name = name ? str_from(name) : STR_NULL,
                                    .tenant = str_from(tenant),
                                    .node = STR(RW_NODE),
                                    .driver = STR("fake"),
                                    .now_ms = at };

        check_i64_eq(snapshot_make(&f, &s, &e), 0);
        return s;
}

static int add(struct snapshot *s)
{
        struct writing x = { 0 };

        op_init(&x.call.req.op, write_done);
        snapshots_add(w.r, &x.call, s);
        return await(&x);
}

static int become(const char *id, enum snapshot_state state)
{
        struct writing x = { 0 };
        struct snapshot *next = snapshot_copy(snapshots_get(w.r, str_from(id)));
        struct err e;

        check_i64_eq(snapshot_change(next, &(struct snapshot_step){ .state = state, .at_ms = 9 },
                                     &e),
                     0);
        op_init(&x.call.req.op, write_done);
        snapshots_update(w.r, &x.call, next);
        return await(&x);
}

static int drop(const char *id)
{
        struct writing x = { 0 };

        op_init(&x.call.req.op, write_done);
        snapshots_remove(w.r, &x.call, str_from(id));
        return await(&x);
}

static int state_of(const char *id)
{
        const struct snapshot *s = snapshots_get(w.r, str_from(id));

        return s ? s->status.state : -1;
}

static void what_is_written_is_there_after_a_restart(void **state)
{
        struct registry_load load;
        char damaged[128];

        check_i64_eq(add(made("a", "t", NULL, 1)), 0);
        check_i64_eq(add(made("a", "t", NULL, 1)), E(EXISTS));
        check_i64_eq(add(made("b", "t", "named", 2)), 0);
        check_i64_eq(become("a", SNAPSHOT_READY), 0);
        check_i64_eq(snapshots_get(w.r, STR("a"))->version, 2);
        check_i64_eq(drop("b"), 0);
        check_i64_eq(drop("b"), 0);
        check_i64_eq(drop("../b"), 0);
        check_u64_eq(rw_stored(&w, "hutch:snapshot:"), 1);
        rw_put(&w, "hutch:snapshot:c", "{}");
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(load.loaded, 1);
        check_u64_eq(load.damaged, 1);
        check_z_eq(damaged, "hutch:snapshot:c");
        check_i64_eq(state_of("a"), SNAPSHOT_READY);
        check_i64_eq(state_of("b"), -1);
        check_i64_eq(state_of("c"), -1);
        check_i64_eq(become("a", SNAPSHOT_DELETING), 0);
}

static void those_of_another_node_are_not_seen(void **state)
{
        struct registry *other = rw_other(&w, "n2");
        struct registry_load load;
        char damaged[128];

        check_i64_eq(add(made("a", "t", NULL, 1)), 0);
        check_i64_eq(rw_load(&w, other, &load, damaged), 0);
        check_u64_eq(load.foreign, 1);
        check_true(!snapshots_get(other, STR("a")));
}

static void lists_are_filtered_and_newest_first(void **state)
{
        static const struct {
                struct snapshots_query q;
                const char *ids;
                uint64_t total;
        } cases[] = {
                { { .limit = 9 }, "dcba", 4 },
                { { .limit = 2 }, "dc", 4 },
                { { .limit = 2, .skip = 2 }, "ba", 4 },
                { { .limit = 2, .skip = 4 }, "", 4 },
                { { .limit = 9, .tenant = STR("t") }, "cba", 3 },
                { { .limit = 9, .tenant = STR("none") }, "", 0 },
                { { .limit = 9, .name = STR("x") }, "db", 2 },
                { { .limit = 9, .name = STR("x"), .tenant = STR("t") }, "b", 1 },
                { { .limit = 9, .sandbox_id = STR("sb-1") }, "dcba", 4 },
                { { .limit = 9, .sandbox_id = STR("sb-2") }, "", 0 },
                { { .limit = 9, .states = STATE_SET(SNAPSHOT_READY) }, "b", 1 },
                { { .limit = 9, .states = STATE_SET(SNAPSHOT_READY) | STATE_SET(SNAPSHOT_FAILED) },
                  "cb",
                  2 },
        };

        check_i64_eq(add(made("a", "t", NULL, 1)), 0);
        check_i64_eq(add(made("b", "t", "x", 2)), 0);
        check_i64_eq(add(made("c", "t", NULL, 3)), 0);
        check_i64_eq(add(made("d", "u", "x", 4)), 0);
        check_i64_eq(become("b", SNAPSHOT_READY), 0);
        check_i64_eq(become("c", SNAPSHOT_FAILED), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct snapshots_page page;
                char ids[8] = "";

                snapshots_list(w.r, &cases[i].q, &page);
                for (unsigned k = 0; k < page.n; k++)
                        ids[k] = page.items[k]->id.p[0];
                check_z_eq(ids, cases[i].ids);
                check_u64_eq(page.total, cases[i].total);
        }
        check_u64_eq(snapshots_count(w.r, STR("t")), 3);
        check_u64_eq(snapshots_count(w.r, STR_NULL), 4);
}

static void a_write_that_fails_changes_nothing(void **state)
{
        const struct store_failing_plan plan = { .when = STORE_FAILING_FROM, .n = 1 };

        check_i64_eq(add(made("a", "t", NULL, 1)), 0);
        rw_plan(&w, &plan);
        check_true(add(made("b", "t", NULL, 1)) < 0);
        check_true(become("a", SNAPSHOT_READY) < 0);
        check_true(drop("a") < 0);
        check_i64_eq(state_of("a"), SNAPSHOT_CREATING);
        check_i64_eq(state_of("b"), -1);
        rw_plan(&w, &(struct store_failing_plan){ 0 });
        check_i64_eq(become("a", SNAPSHOT_READY), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_written_is_there_after_a_restart),
                TEST(those_of_another_node_are_not_seen),
                TEST(lists_are_filtered_and_newest_first),
                TEST(a_write_that_fails_changes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
