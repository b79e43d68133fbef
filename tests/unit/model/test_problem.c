/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/create.h"
#include "model/limits.h"
#include "model/problem.h"

static void test_the_shape_of_a_detail(void **state)
{
        struct problems p = { 0 };
        scoped(buf_done) struct buf b;
        struct arena a;

        buf_init(&b, 4 * KiB);
        arena_init(&a, 64 * KiB);
        problems_add(&p, &a, "value_error", "", "no \"good\"");
        problems_add(&p, &a, "missing", "\"volumes\",0,\"name\"", "is required");
        json_encode(&b, problems_fields, &p);
        check_str_eq(
                buf_str(&b),
                "{\"detail\":[{\"type\":\"value_error\",\"loc\":[\"body\"],\"msg\":\"no "
                "\\\"good\\\"\"},{\"type\":\"missing\",\"loc\":[\"body\",\"volumes\",0,\"name\"],"
                "\"msg\":\"is required\"}]}");
        check_str_eq(problems_message(&p), "no \"good\"");
        arena_done(&a);
}

static void test_decoder_errors_get_types(void **state)
{
        static const struct {
                const char *body, *type, *loc, *msg;
        } cases[] = {
                { "{", "json_invalid", "[\"body\",1]", "line 1 column 1: unexpected end" },
                { "[]", "dict_type", "[\"body\"]", "must be an object" },
                { "{\"timeout\":59}", "greater_than_equal", "[\"body\",\"timeout\"]",
                  "must be at least 60" },
                { "{\"timeout\":\"60\"}", "int_type", "[\"body\",\"timeout\"]",
                  "must be an integer" },
                { "{\"image\":{}}", "missing", "[\"body\",\"image\",\"uri\"]", "is required" },
                { "{\"resource_limits\":{\"cpu\":1}}", "string_type",
                  "[\"body\",\"resource_limits\",\"cpu\"]", "must be a string" },
                { "{\"entrypoint\":[]}", "too_short", "[\"body\",\"entrypoint\"]",
                  "must not be empty" },
                { "{\"networkPolicy\":{\"defaultAction\":\"x\"}}", "enum",
                  "[\"body\",\"networkPolicy\",\"defaultAction\"]", "must be one of deny, allow" },
                { "{\"volumes\":[{\"name\":\"a\",\"mountPath\":1}]}", "string_type",
                  "[\"body\",\"volumes\",0,\"mountPath\"]", "must be a string" },
                { "{\"secureAccess\":1}", "bool_type", "[\"body\",\"secureAccess\"]",
                  "must be true or false" },
                { "{\"volumes\":{}}", "list_type", "[\"body\",\"volumes\"]", "must be an array" },
                { "{\"metadata\":{\"a\":null}}", "string_type", "[\"body\",\"metadata\",\"a\"]",
                  "must be a string" },
                { "{\"snapshotId\":\"a\",\"snapshot_id\":\"b\"}", "value_error",
                  "[\"body\",\"snapshotId\"]", "is also given as snapshot_id" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct create_request c = { 0 };
                struct problems p = { 0 };
                const struct problem *first;
                struct json_error e;
                struct arena a;

                arena_init(&a, 64 * KiB);
                check_case(cases[i].body);
                check_i64_eq(json_decode(str_from(cases[i].body), create_fields, 0, &a, &c, &e),
                             -EINVAL);
                problems_add_json(&p, &a, &e);
                first = p.detail.items;
                check_u64_eq(p.detail.n, 1);
                check_str_eq(first->type, cases[i].type);
                check_str_eq(first->loc, cases[i].loc);
                check_str_eq(first->msg, cases[i].msg);
                arena_done(&a);
        }
}

static void test_bounds(void **state)
{
        struct problems p = { 0 }, none = { 0 };
        struct arena a;

        arena_init(&a, 64 * KiB);
        for (int i = 0; i < 2 * PROBLEMS_MAX; i++)
                problems_add(&p, &a, "value_error", "", "again");
        check_u64_eq(p.detail.n, PROBLEMS_MAX);
        arena_done(&a);
        /* Without memory there is still something to say. */
        arena_init(&a, 0);
        problems_add(&none, &a, "value_error", "", "again");
        problems_add(&none, &a, "value_error", "", "again");
        check_u64_eq(none.detail.n, 1);
        check_str_eq(problems_message(&none), "needs too much memory");
        arena_done(&a);
        check_str_eq(problems_message(&(struct problems){ 0 }), "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_shape_of_a_detail),
                cmocka_unit_test(test_decoder_errors_get_types),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
