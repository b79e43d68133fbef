/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "base/json.h"

struct inner {
        struct str name;
        struct str secret;
};

struct outer {
        struct str text, raw;
        bool flag, has_number;
        int64_t number;
        int kind;
        struct inner object;
        struct inner *opt;
        struct json_list list;
        struct json_strs strs;
        struct json_map map;
};

static const char *const kind_names[] = { "zero", "one" };
static const struct enum_table kinds = { kind_names, 2 };

static const struct json_field inner_fields[] = {
        JSON_STR(struct inner, name, "name", 0),
        JSON_END,
};

static const struct json_field outer_fields[] = {
        JSON_STR(struct outer, text, "text", 0),
        JSON_RAW(struct outer, raw, "raw", 0),
        JSON_BOOL(struct outer, flag, "flag", 0),
        JSON_I64(struct outer, number, "number", 0, JSON_HAS(struct outer, has_number)),
        JSON_ENUM(struct outer, kind, "kind", 0, &kinds),
        JSON_OBJECT(struct outer, object, struct inner, "object", 0, inner_fields),
        JSON_OPT(struct outer, opt, struct inner, "opt", 0, inner_fields),
        JSON_LIST(struct outer, list, struct inner, "list", 0, inner_fields),
        JSON_STRS(struct outer, strs, "strs", 0),
        JSON_MAP(struct outer, map, "map", JSON_MAP_NULLS),
        JSON_END,
};

static const char document[] =
        "{\"text\":\"t\",\"raw\":{\"a\":[1,null]},\"flag\":true,\"number\":7,"
        "\"kind\":\"one\",\"object\":{\"name\":\"o\"},\"opt\":{\"name\":\"p\"},"
        "\"list\":[{\"name\":\"x\"},{\"name\":\"y\"}],\"strs\":[\"s\",\"\"],"
        "\"map\":{\"k\":\"v\",\"gone\":null}}";

static void test_a_copy_outlives_its_source(void **state)
{
        struct arena first, second;
        struct outer from = { 0 }, to = { 0 };
        struct json_error e;
        scoped(buf_done) struct buf b;

        buf_init(&b, 4 * KiB);
        arena_init(&first, MiB);
        arena_init(&second, MiB);
        check_i64_eq(json_decode(str_from(document), outer_fields, 0, &first, &from, &e), 0);
        check_i64_eq(json_copy_struct(outer_fields, &from, &second, &to), 0);
        arena_done(&first);
        json_encode(&b, outer_fields, &to);
        check_str_eq(buf_str(&b), document);
        check_true(to.has_number);
        arena_done(&second);
}

static void test_absence_is_copied(void **state)
{
        struct outer from = { .strs = { (struct str[]){ STR("") }, 0 } }, to = { .number = 3 };
        struct arena a;

        arena_init(&a, MiB);
        check_i64_eq(json_copy_struct(outer_fields, &from, &a, &to), 0);
        check_true(!to.text.p && !to.opt && !to.list.items && !to.map.items);
        check_true(to.strs.items != NULL); /* there, and empty */
        check_u64_eq(to.strs.n, 0);
        check_i64_eq(to.number, 0);
        arena_done(&a);
}

static void test_what_the_table_does_not_name_stays_behind(void **state)
{
        struct inner from = { STR("n"), STR("hunter2") }, to = { 0 };
        struct arena a;

        arena_init(&a, MiB);
        check_i64_eq(json_copy_struct(inner_fields, &from, &a, &to), 0);
        check_str_eq(to.name, "n");
        check_true(!to.secret.p);
        arena_done(&a);
}

static void test_a_full_arena_is_told(void **state)
{
        char text[8 * KiB] = { 0 };
        struct outer to = { 0 };
        struct inner items[2] = { 0 };
        struct str views[] = { STR("a"), str_of(text, sizeof(text)) };
        struct json_pair pairs[] = { { STR("k"), views[1] } };
        struct outer cases[] = {
                { .text = views[1] },     { .opt = &(struct inner){ .name = views[1] } },
                { .strs = { views, 2 } }, { .map = { pairs, 1 } },
                { .list = { items, 2 } },
        };

        items[1].name = views[1];
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a;

                arena_init(&a, 4 * KiB);
                check_i64_eq(json_copy_struct(outer_fields, &cases[i], &a, &to), -ENOMEM);
                arena_done(&a);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_copy_outlives_its_source),
                cmocka_unit_test(test_absence_is_copied),
                cmocka_unit_test(test_what_the_table_does_not_name_stays_behind),
                cmocka_unit_test(test_a_full_arena_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
