/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/sandbox.h"

#include "tests/lib/sandbox_sample.h"

static struct sandbox *sample(void)
{
        struct sandbox *s = NULL;
        struct err e;

        check_i64_eq(sandbox_decode(STR(SAMPLE_FULL), &s, &e), 0);
        return s;
}

static void check_text(const struct sandbox *s, const char *text)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, RECORD_TEXT_MAX);
        sandbox_encode(&b, s);
        check_str_eq(buf_str(&b), text);
}

static void test_ids(void **state)
{
        static const struct {
                const char *id;
                bool ok;
        } cases[] = {
                { "8d7f2f0e-5c0a-4a39-9d3c-0c2f1f9f6f11", true },
                { "sb-0123456789abcdef0123456789abcdef", true },
                { "a", true },
                { "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefg", true },
                { "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefgh", false },
                { "", false },
                { ".", false },
                { "..", false },
                { "a/b", false },
                { "a%2fb", false },
                { "A", false },
                { "a_b", false },
                { "-a", false },
                { "a-", false },
                { "a b", false },
                { "a.b", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].id);
                check_i64_eq(sandbox_id_is_valid(str_from(cases[i].id)), cases[i].ok);
        }
        check_false(sandbox_id_is_valid(STR("a\0")));
        check_false(sandbox_id_is_valid(STR_NULL));
}

static void test_an_id_gives_the_container_its_name(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = sandbox_new();
        struct err e;

        check_i64_eq(sandbox_set_id(s, STR("sb-9"), &e), 0);
        check_str_eq(s->id, "sb-9");
        check_str_eq(s->container_name, "hutch-sb-9");
        check_true(sandbox_check(s, &e) < 0); /* empty otherwise */
}

static void test_a_copy_is_complete_and_independent(void **state)
{
        struct sandbox *s = sample();
        scoped(sandbox_freep) struct sandbox *copy = sandbox_copy(s);
        struct err e;

        assert_non_null(copy);
        sandbox_free(s);
        check_text(copy, SAMPLE_FULL);
        check_i64_eq(sandbox_check(copy, &e), 0);
        check_i64_eq(copy->limits.gpus, GPU_ALL);
}

/* What makes "change a copy" bound the memory of a record that lives for years. */
static void test_copies_are_compact(void **state)
{
        struct sandbox *s = sample();
        size_t first = s->arena.used;

        for (int i = 0; i < 1000; i++) {
                struct status_step pause = { STATE_PAUSING, STR("P"), STR("because"), i };
                struct status_step back = { STATE_RUNNING, STR("R"), STR("because not"), i };
                struct sandbox *next = sandbox_copy(s);
                struct err e;

                assert_non_null(next);
                check_i64_eq(sandbox_change(next, &pause, &e), 0);
                check_i64_eq(sandbox_change(next, &back, &e), 0);
                sandbox_free(s);
                s = next;
        }
        check_true(s->arena.used <= first + ARENA_BLOCK);
        sandbox_free(s);
}

static void test_changes_leave_the_original_alone(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = sample();
        scoped(sandbox_freep) struct sandbox *next = sandbox_copy(s);
        struct json_pair pairs[] = { { STR("name"), STR_NULL }, { STR("new"), STR("1") } };
        struct status_step step = { STATE_STOPPING, STR("EXPIRED"), STR("its time is over"), 5 };
        struct err e;

        check_i64_eq(sandbox_change(next, &step, &e), 0);
        check_i64_eq(sandbox_patch_metadata(next, &(struct json_map){ pairs, 2 }, &e), 0);
        check_i64_eq(sandbox_set_expiry(next, NULL, &e), 0);
        check_i64_eq(sandbox_set_handle(next, STR_NULL, &e), 0);
        check_i64_eq(sandbox_check(next, &e), 0);
        check_text(s, SAMPLE_FULL);
        check_true(labels_find(&next->metadata, STR("new")) && !next->expiry && !next->handle.p);
        step.state = STATE_RUNNING;
        check_i64_eq(sandbox_change(next, &step, &e), ERR_RETURN(ERR_CONFLICT));
}

static void test_an_expiry_is_copied_in(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = sample();
        char boot[] = "boot-2";
        struct timestamp now = { 1, 2000, STR_NULL };
        struct expiry x;
        struct err e;

        now.boot_id = str_from(boot);
        x = expiry_after(&now, USEC_PER_SEC);
        check_i64_eq(sandbox_set_expiry(s, &x, &e), 0);
        memset(boot, 'x', sizeof(boot) - 1);
        check_str_eq(s->expiry->boot_id, "boot-2");
        check_i64_eq(s->expiry->wall_ms, 1002);
}

static void test_handles(void **state)
{
        static char large[HANDLE_MAX + 64];
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "{ \"a\" : [ 1 ] }", "{\"a\":[1]}" },
                { "{}", "{}" },
                { "[]", NULL },
                { "null", NULL },
                { "{", NULL },
                { "{}{}", NULL },
                { "{\"a\":1,\"a\":2}", NULL },
                { "", NULL },
        };
        scoped(sandbox_freep) struct sandbox *s = sample();
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool ok = cases[i].out != NULL;

                check_case(cases[i].in);
                check_i64_eq(sandbox_set_handle(s, STR("{\"old\":1}"), &e), 0);
                check_i64_eq(sandbox_set_handle(s, str_from(cases[i].in), &e),
                             ok ? 0 : ERR_RETURN(ERR_INVALID));
                check_str_eq(s->handle, ok ? cases[i].out : "{\"old\":1}");
        }
        memset(large, 'a', sizeof(large) - 1);
        memcpy(large, "{\"a\":\"", 6);
        memcpy(large + sizeof(large) - 3, "\"}", 2);
        check_i64_eq(sandbox_set_handle(s, str_from(large), &e), ERR_RETURN(ERR_INVALID));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ids),
                cmocka_unit_test(test_an_id_gives_the_container_its_name),
                cmocka_unit_test(test_a_copy_is_complete_and_independent),
                cmocka_unit_test(test_copies_are_compact),
                cmocka_unit_test(test_changes_leave_the_original_alone),
                cmocka_unit_test(test_an_expiry_is_copied_in),
                cmocka_unit_test(test_handles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
