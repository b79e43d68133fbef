/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/json.h"

static const char *const mode_names[] = { "fast", "slow" };
static const struct enum_table mode_table = { mode_names, 2 };

struct part {
        struct str name;
        int64_t size;
};

struct all {
        struct part object;
        struct part *opt;
        struct json_list list;
        struct json_strs strs;
        struct json_map map;
        struct str str, raw, hidden;
        int64_t i64;
        int mode;
        bool flag, has_i64;
};

static const struct json_field part_fields[] = {
        JSON_STR(struct part, name, "name", JSON_OMIT_EMPTY),
        JSON_I64(struct part, size, "size", JSON_OMIT_EMPTY),
        JSON_END,
};

#define ALL_FIELDS(fl)                                                                       \
        {                                                                                    \
                JSON_OBJECT(struct all, object, struct part, "object", fl, part_fields),     \
                        JSON_OPT(struct all, opt, struct part, "opt", fl, part_fields),      \
                        JSON_LIST(struct all, list, struct part, "list", fl, part_fields),   \
                        JSON_STRS(struct all, strs, "strs", fl),                             \
                        JSON_MAP(struct all, map, "map", fl),                                \
                        JSON_STR(struct all, str, "str", fl),                                \
                        JSON_RAW(struct all, raw, "raw", fl),                                \
                        JSON_STR(struct all, hidden, "hidden", JSON_NO_ENCODE),              \
                        JSON_I64(struct all, i64, "i64", fl, JSON_HAS(struct all, has_i64)), \
                        JSON_ENUM(struct all, mode, "mode", fl, &mode_table),                \
                        JSON_BOOL(struct all, flag, "flag", fl), JSON_END,                   \
        }

static const struct json_field plain[] = ALL_FIELDS(0);
static const struct json_field omitting[] = ALL_FIELDS(JSON_OMIT_EMPTY);
static const struct json_field required[] = ALL_FIELDS(JSON_REQUIRED);
static const struct json_field nulls[] = {
        JSON_MAP(struct all, map, "map", JSON_MAP_NULLS),
        JSON_END,
};

static void check_encoded(const struct json_field *fields, const struct all *v, const char *want)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        json_encode(&b, fields, v);
        check_false(buf_failed(&b));
        check_str_eq(buf_str(&b), want);
}

static void encodes_everything(void **state)
{
        struct part parts[] = { { STR("a"), 1 }, { STR_NULL, 0 } };
        struct json_pair pairs[] = { { STR("k\n"), STR("\xff") }, { STR("gone"), STR_NULL } };
        struct str strs[] = { STR(""), STR("\"") };
        struct all v = {
                .object = parts[0],
                .opt = &parts[1],
                .list = { parts, 2 },
                .strs = { strs, 2 },
                .map = { pairs, 2 },
                .str = STR(""),
                .raw = STR("[1]"),
                .hidden = STR("secret"),
                .i64 = INT64_MIN,
                .has_i64 = true,
                .mode = 1,
                .flag = true,
        };

        check_encoded(plain, &v,
                      "{\"object\":{\"name\":\"a\",\"size\":1},\"opt\":{},"
                      "\"list\":[{\"name\":\"a\",\"size\":1},{}],\"strs\":[\"\",\"\\\"\"],"
                      "\"map\":{\"k\\n\":\"\xef\xbf\xbd\"},\"str\":\"\",\"raw\":[1],"
                      "\"i64\":-9223372036854775808,\"mode\":\"slow\",\"flag\":true}");
        check_encoded(nulls, &v, "{\"map\":{\"k\\n\":\"\xef\xbf\xbd\",\"gone\":null}}");
}

static void leaves_out_what_is_absent(void **state)
{
        struct part empty = { STR("") };
        struct str none[1];
        struct all v = { .opt = &empty, .str = STR(""), .has_i64 = true, .strs = { none, 0 } };

        check_encoded(plain, &(struct all){ .mode = -EINVAL }, "{\"object\":{},\"flag\":false}");
        check_encoded(plain, &v,
                      "{\"object\":{},\"opt\":{},\"strs\":[],\"str\":\"\",\"i64\":0,"
                      "\"mode\":\"fast\",\"flag\":false}");
        check_encoded(omitting, &v, "{\"mode\":\"fast\"}");
        check_encoded(required, &(struct all){ .mode = -EINVAL },
                      "{\"object\":{},\"list\":[],\"strs\":[],\"map\":{},"
                      "\"flag\":false}");
}

static void writes_numbers_that_come_back(void **state)
{
        static const struct {
                double v;
                const char *text;
        } cases[] = {
                { 0, "0.0" },
                { 1, "1.0" },
                { -1.5, "-1.5" },
                { 0.1, "0.1" },
                { 1.0 / 3, "0.33333333333333331" },
                { 1e22, "1e+22" },
                { 1e15, "1e+15" },
                { 123456789012, "123456789012.0" },
                { DBL_MAX, "1.7976931348623157e+308" },
                { DBL_MIN, "2.2250738585072014e-308" },
                { 5e-324, "4.94065645841247e-324" },
                { -0.0, "-0.0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *v = json_real(cases[i].v);
                scoped(buf_done) struct buf b;

                check_case(cases[i].text);
                buf_init(&b, 1000);
                json_encode_value(&b, v);
                json_decref(v);
                check_str_eq(buf_str(&b), cases[i].text);
                check_true(strtod(cases[i].text, NULL) == cases[i].v);
        }
}

static void a_full_buffer_keeps_what_it_held(void **state)
{
        struct part parts[] = { { STR("a"), 1 }, { STR("b"), 2 } };
        struct json_pair pairs[] = { { STR("k"), STR("v") } };
        struct all v = { .list = { parts, 2 }, .map = { pairs, 1 }, .raw = STR("[1]") };
        bool failed = true;

        for (size_t max = 2; failed; max++) {
                scoped(buf_done) struct buf b;

                check_true(max < 200);
                buf_init(&b, max);
                buf_add_str(&b, STR("x="));
                json_encode(&b, max % 2 ? plain : omitting, &v);
                failed = buf_failed(&b);
                if (failed)
                        check_str_eq(buf_str(&b), "x=");
        }
}

static void encodes_documents(void **state)
{
        static const char *const texts[] = {
                "{\"b\":1,\"a\":[true,false,null,-5,2.5,\"\xc3\xa4\\n\",{},[]]}",
                "[]",
                "\"\"",
                "null",
                "9223372036854775807",
                "1.0",
                "-0.0",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                scoped(buf_done) struct buf b;
                struct json_error e;
                json_t *doc;

                check_case(texts[i]);
                buf_init(&b, 1000);
                check_i64_eq(json_parse(str_from(texts[i]), 0, &doc, &e), 0);
                json_encode_value(&b, doc);
                check_str_eq(buf_str(&b), texts[i]);
                json_decref(doc);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(encodes_everything),
                cmocka_unit_test(leaves_out_what_is_absent),
                cmocka_unit_test(writes_numbers_that_come_back),
                cmocka_unit_test(a_full_buffer_keeps_what_it_held),
                cmocka_unit_test(encodes_documents),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
