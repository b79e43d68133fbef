/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"
#include "tests/lib/sandbox_sample.h"

#define E(code) ERR_RETURN(ERR_##code)

static void loads_many_pages(void **state)
{
        enum { COUNT = 1234 };
        struct registry_load load;
        struct registry_world w;
        unsigned n = 0;
        char damaged[128];

        rw_open(&w);
        for (unsigned i = 0; i < COUNT; i++) {
                char id[32], user[32];

                (void) snprintf(id, sizeof(id), "s%04u", i);
                (void) snprintf(user, sizeof(user), "u%u", i);
                rw_put_sample(&w, &(struct sample){ .id = id, .user = user, .bound = i % 3 == 0 });
        }
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(load.loaded, COUNT);
        check_u64_eq(load.foreign + load.damaged, 0);
        check_z_eq(damaged, "");
        for (const struct sandbox *s = registry_next(w.r, STR_NULL); s;
             s = registry_next(w.r, s->id)) {
                char id[32];

                (void) snprintf(id, sizeof(id), "s%04u", n++);
                check_str_eq(s->id, id);
        }
        check_u64_eq(n, COUNT);
        /* The bound ones had lost their indexes. */
        check_u64_eq(rw_stored(&w, "sandbox:owner:"), (COUNT + 2) / 3);
        rw_close(&w);
}

static void leaves_alone_what_it_cannot_read(void **state)
{
        static const struct {
                const char *key, *value;
        } damaged_ones[] = {
                { "sandbox:registry:b", "" },
                { "sandbox:registry:c", "{\"schema\":1}" },
                { "sandbox:registry:d", SAMPLE_SMALL }, /* whose id is "a" */
                { "sandbox:registry:e", "{\"schema\":99}" },
                { "sandbox:registry:", SAMPLE_SMALL },
                { "sandbox:registry:a/b", SAMPLE_SMALL },
        };
        struct registry_load load;
        struct registry_world w;
        struct buf text;
        char id[64], damaged[128];

        rw_open(&w);
        buf_init(&text, STORE_VALUE_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(damaged_ones); i++)
                rw_put(&w, damaged_ones[i].key, damaged_ones[i].value);
        rw_put_sample(&w, &(struct sample){ .id = "ok" });
        rw_put_sample(&w, &(struct sample){ .id = "theirs", .node = "n2" });
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(load.loaded, 1);
        check_u64_eq(load.foreign, 1);
        check_u64_eq(load.damaged, ARRAY_SIZE(damaged_ones));
        check_z_eq(damaged, "sandbox:registry:");
        for (size_t i = 0; i < ARRAY_SIZE(damaged_ones); i++) {
                rw_text(&w, damaged_ones[i].key, &text);
                check_str_eq(buf_str(&text), damaged_ones[i].value);
        }
        check_i64_eq(rw_get(&w, "c", id), E(NOT_FOUND));
        check_i64_eq(rw_get(&w, "e", id), E(NOT_FOUND));
        check_i64_eq(rw_get(&w, "theirs", id), 0);
        check_true(registry_peek(w.r, STR("theirs")) == NULL);
        check_true(registry_peek(w.r, STR("ok")) != NULL);
        buf_done(&text);
        rw_close(&w);
}

/* Two bound records of one owner, as a crash and a second create may leave: the one that has the index
 * keeps it, also if it is the other node's. */
static void a_place_that_is_taken_by_right_stays_so(void **state)
{
        static const char *const nodes[] = { RW_NODE, "n2" };

        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
                struct registry_load load;
                struct registry_world w;
                char id[64], damaged[128];

                check_case(nodes[i]);
                rw_open(&w);
                rw_put_sample(&w, &(struct sample){ .id = "a", .bound = true });
                rw_put_sample(&w, &(struct sample){ .id = "b", .bound = true, .node = nodes[i] });
                rw_put(&w, "sandbox:owner:o:p:u:shared-project-user", "\"b\"");
                rw_restart(&w);
                check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
                check_i64_eq(rw_find(&w, "u", id), 0);
                check_z_eq(id, "b");
                /* Whoever has no index takes none away. */
                check_i64_eq(rw_unregister(&w, "a"), 0);
                check_i64_eq(rw_find(&w, "u", id), 0);
                check_z_eq(id, "b");
                rw_close(&w);
        }
}

static void any_number_of_stale_indexes_is_replaced(void **state)
{
        enum { COUNT = 30 };
        struct registry_load load;
        struct registry_world w;
        char id[32], user[32], key[96], found[64], damaged[128];

        rw_open(&w);
        for (unsigned i = 0; i < COUNT; i++) {
                (void) snprintf(id, sizeof(id), "s%u", i);
                (void) snprintf(user, sizeof(user), "u%u", i);
                (void) snprintf(key, sizeof(key), "sandbox:owner:o:p:%s:shared-project-user", user);
                rw_put_sample(&w, &(struct sample){ .id = id, .user = user, .bound = true });
                rw_put(&w, key, i == 0 || i % 2 ? "\"nothing\"" : "\"s0\"");
        }
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        for (unsigned i = 0; i < COUNT; i++) {
                (void) snprintf(id, sizeof(id), "s%u", i);
                (void) snprintf(user, sizeof(user), "u%u", i);
                check_i64_eq(rw_find(&w, user, found), 0);
                check_z_eq(found, id);
        }
        rw_close(&w);
}

static void store_failures_are_reported(void **state)
{
        struct registry_load load;
        struct registry_world w;
        char damaged[128];

        rw_open(&w);
        rw_put_sample(&w, &(struct sample){ .id = "a", .bound = true });
        for (unsigned n = 1; n <= 5; n++) { /* three scans, and the missing index: two keys */
                rw_restart(&w);
                rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = n });
                check_i64_eq(rw_load(&w, w.r, &load, damaged), E(UNAVAILABLE));
        }
        rw_plan(&w, &(struct store_failing_plan){ 0 });
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(rw_stored(&w, "sandbox:owner:"), 1);
        rw_close(&w);
}

/* --- records that a driver found --- */

static void what_was_found_is_added_if_it_may(void **state)
{
        struct registry_world w;
        struct sandbox *found[6];
        static const int want[] = { 0, E(EXISTS), E(INVALID), E(INVALID), E(EXISTS), E(INVALID) };
        char id[64];

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "known", .state = STATE_PAUSED }), 0);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "o", .user = "v", .bound = true }), 0);
        found[0] = sample_record(&(struct sample){ .id = "new", .bound = true });
        found[1] = sample_record(&(struct sample){ .id = "known" });
        found[2] = sample_record(&(struct sample){ .id = "incomplete" });
        found[2]->owner.user_id = STR_NULL;
        found[3] = sample_record(&(struct sample){ .id = "theirs", .node = "n2" });
        found[4] = sample_record(&(struct sample){ .id = "second", .user = "v", .bound = true });
        found[5] = sandbox_new();
        for (size_t i = 0; i < ARRAY_SIZE(found); i++)
                check_i64_eq(rw_register_record(&w, w.r, found[i]), want[i]);
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_z_eq(id, "new");
        check_i64_eq(registry_peek(w.r, STR("known"))->status.state, STATE_PAUSED);
        check_u64_eq(rw_stored(&w, "sandbox:registry:"), 3);
        rw_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(loads_many_pages),
                cmocka_unit_test(leaves_alone_what_it_cannot_read),
                cmocka_unit_test(a_place_that_is_taken_by_right_stays_so),
                cmocka_unit_test(any_number_of_stale_indexes_is_replaced),
                cmocka_unit_test(store_failures_are_reported),
                cmocka_unit_test(what_was_found_is_added_if_it_may),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
