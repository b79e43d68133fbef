/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/store_memory.h"
#include "tests/lib/store_world.h"

/* What only the store in memory promises; the rest is in tests/contract. */

static struct store *open_small(struct store_world *w)
{
        return store_memory_open(&w->loop, 4 * KiB);
}

static const struct store_maker small = { .name = "small", .open = open_small };

static void a_full_store_refuses_and_goes_on(void **state)
{
        char bytes[3 * KiB] = { 0 };
        struct str large = { bytes, sizeof(bytes) };
        struct store_world w;
        struct buf value;

        world_open(&w, &small);
        buf_init(&value, 8 * KiB);
        check_i64_eq(world_put(&w, STR("a"), large, NULL), 0);
        check_i64_eq(world_put(&w, STR("b"), large, NULL), ERR_RETURN(ERR_EXHAUSTED));
        check_i64_eq(world_get(&w, STR("b"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_put(&w, STR("a"), large, NULL), 0); /* in its own place */
        check_i64_eq(world_get(&w, STR("a"), &value, NULL), 0);
        check_u64_eq(value.n, large.n);
        check_i64_eq(world_put(&w, STR("c"), STR("small"), NULL), 0);
        check_i64_eq(world_put(&w, STR("a"), STR("x"), NULL), 0);
        check_i64_eq(world_put(&w, STR("b"), large, NULL), 0);
        check_i64_eq(world_remove(&w, STR("b"), STORE_ANY), 0);
        check_i64_eq(world_put(&w, STR("d"), large, NULL), 0);
        buf_done(&value);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_full_store_refuses_and_goes_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
