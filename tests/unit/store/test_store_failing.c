/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/store_failing.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/store_memory.h"
#include "tests/lib/store_world.h"

static struct store *open_failing(struct store_world *w)
{
        return store_failing_open(store_memory_open(&w->loop, 1 * MiB));
}

static const struct store_maker maker = { .name = "failing", .open = open_failing };
static struct store_world w;

static int set_up(void **state)
{
        world_open(&w, &maker);
        return 0;
}

static int tear_down(void **state)
{
        world_close(&w);
        return 0;
}

static void plan(struct store_failing_plan p)
{
        store_failing_plan(w.store, &p);
}

static bool exists(const char *key)
{
        plan((struct store_failing_plan){ .when = STORE_FAILING_NEVER });
        return world_get(&w, str_from(key), NULL, NULL) == 0;
}

#define DOWN ERR_RETURN(ERR_UNAVAILABLE)

static void the_nth_fails(void **state)
{
        plan((struct store_failing_plan){ .when = STORE_FAILING_NTH, .n = 2 });
        check_i64_eq(world_put(&w, STR("a"), STR("1"), NULL), 0);
        check_i64_eq(world_put(&w, STR("b"), STR("1"), NULL), DOWN);
        check_z_eq(world_err()->message, "made to fail");
        check_i64_eq(world_put(&w, STR("c"), STR("1"), NULL), 0);
        check_u64_eq(store_failing_count(w.store), 1);
        check_true(exists("a"));
        check_false(exists("b"));
        check_true(exists("c"));
}

static void it_fails_after_the_effect(void **state)
{
        plan((struct store_failing_plan){ .when = STORE_FAILING_FROM, .n = 1, .after = true });
        check_i64_eq(world_put(&w, STR("a"), STR("1"), NULL), DOWN);
        check_i64_eq(world_cas(&w, STR("b"), STORE_ABSENT, STR("1"), NULL), DOWN);
        /* What fails by itself says why. */
        check_i64_eq(world_cas(&w, STR("b"), STORE_ABSENT, STR("1"), NULL),
                     ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&w, STR("a"), NULL, NULL), DOWN);
        check_i64_eq(world_get(&w, STR("x"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_true(exists("a"));
        check_true(exists("b"));
}

static void all_from_the_nth_on_with_another_code(void **state)
{
        plan((struct store_failing_plan){
                .when = STORE_FAILING_FROM, .n = 2, .code = ERR_EXHAUSTED, .writes_only = true });
        check_i64_eq(world_put(&w, STR("a"), STR("1"), NULL), 0);
        for (int i = 0; i < 3; i++) {
                check_i64_eq(world_remove(&w, STR("a"), STORE_ANY), ERR_RETURN(ERR_EXHAUSTED));
                check_i64_eq(world_get(&w, STR("a"), NULL, NULL), 0);
        }
        check_u64_eq(store_failing_count(w.store), 3);
}

/* Which ones fail: a bit for each. */
static uint64_t random_run(uint64_t seed)
{
        uint64_t bits = 0;

        plan((struct store_failing_plan){ .when = STORE_FAILING_RANDOM, .n = 300, .seed = seed });
        for (int i = 0; i < 64; i++)
                bits |= (uint64_t) (world_put(&w, STR("a"), STR("1"), NULL) < 0) << i;
        return bits;
}

static void a_seed_is_a_run(void **state)
{
        uint64_t one = random_run(1), two = random_run(2);

        check_u64_eq(random_run(1), one);
        check_u64_eq(random_run(2), two);
        check_true(one != two);
        check_true(__builtin_popcountll(one) > 5 && __builtin_popcountll(one) < 40);
}

/* --- order --- */

struct ordered {
        struct store_put put;
        unsigned *done;
        unsigned at;
        int result;
};

static void ordered_done(struct op *op, int result)
{
        struct ordered *x = container_of(op, struct ordered, put.req.op);

        x->result = result;
        x->at = (*x->done)++;
}

static void a_failure_waits_for_its_turn(void **state)
{
        struct ordered x[3] = { 0 };
        unsigned done = 0;

        plan((struct store_failing_plan){ .when = STORE_FAILING_NTH, .n = 2 });
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                x[i].done = &done;
                op_init(&x[i].put.req.op, ordered_done);
                store_start(w.store, store_put_req(&x[i].put, STR("k"), STR("v")));
        }
        world_until(&w, done == ARRAY_SIZE(x));
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                check_u64_eq(x[i].at, i);
                check_i64_eq(x[i].result, i == 1 ? DOWN : 0);
        }
}

#define FAILING_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FAILING_TEST(the_nth_fails),
                FAILING_TEST(it_fails_after_the_effect),
                FAILING_TEST(all_from_the_nth_on_with_another_code),
                FAILING_TEST(a_seed_is_a_run),
                FAILING_TEST(a_failure_waits_for_its_turn),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
