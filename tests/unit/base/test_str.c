/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

static void compares_and_searches(void **state)
{
        check_true(str_eq(STR_NULL, STR("")));
        check_true(str_eq(STR("a\0b"), STR("a\0b")));
        check_false(str_eq(STR("a\0b"), STR("a\0c")));
        check_false(str_eq(STR("a"), STR("ab")));
        check_true(str_caseeq(STR("Content-LENGTH"), STR("content-length")));
        check_false(str_caseeq(STR("K"), STR("\xe2\x84\xaa"))); /* Kelvin sign */
        check_false(str_caseeq(STR("@"), STR("`")));
        check_true(str_starts_with(STR("abc"), STR("")));
        check_true(str_starts_with(STR_NULL, STR("")));
        check_false(str_starts_with(STR("ab"), STR("abc")));
        check_true(str_ends_with(STR("abc"), STR("bc")));
        check_true(str_ends_with(STR_NULL, STR_NULL));
        check_false(str_ends_with(STR("bc"), STR("abc")));
        check_true(str_eq_secret(STR("token"), STR("token")));
        check_false(str_eq_secret(STR("token"), STR("tokem")));
        check_false(str_eq_secret(STR("token"), STR("toke")));
        check_i64_eq(str_find(STR("a=b=c"), '='), 1);
        check_i64_eq(str_find(STR("abc"), '='), -1);
        check_i64_eq(str_find(STR_NULL, '='), -1);
        check_i64_eq(str_find(STR("a\0b"), '\0'), 1);
}

static void orders_as_bytes(void **state)
{
        static const struct {
                struct str a, b;
                int sign;
        } cases[] = {
                { { "", 0 }, { "", 0 }, 0 },          { { NULL, 0 }, { "", 0 }, 0 },
                { { NULL, 0 }, { "a", 1 }, -1 },      { { "a", 1 }, { "a", 1 }, 0 },
                { { "a", 1 }, { "b", 1 }, -1 },       { { "a", 1 }, { "aa", 2 }, -1 },
                { { "b", 1 }, { "aa", 2 }, 1 },       { { "a", 1 }, { "a\0", 2 }, -1 },
                { { "\x7f", 1 }, { "\x80", 1 }, -1 }, { { "\xff", 1 }, { "", 0 }, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int ab = str_cmp(cases[i].a, cases[i].b), ba = str_cmp(cases[i].b, cases[i].a);

                check_i64_eq((ab > 0) - (ab < 0), cases[i].sign);
                check_i64_eq((ba > 0) - (ba < 0), -cases[i].sign);
        }
}

static void trims_and_skips(void **state)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "", "" },           { " \t ", "" }, { "a", "a" }, { "\t a b \t", "a b" },
                { "\na\n", "\na\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].in);
                check_str_eq(str_trim(str_from(cases[i].in)), cases[i].out);
        }
        check_view_eq(str_trim(STR_NULL), STR_NULL);
        check_view_eq(str_skip(STR("abc"), 1), STR("bc"));
        check_view_eq(str_skip(STR("abc"), 3), STR(""));
        check_view_eq(str_skip(STR("abc"), SIZE_MAX), STR(""));
        check_view_eq(str_skip(STR_NULL, 5), STR_NULL);
}

static void splits(void **state)
{
        static const struct {
                const char *in;
                size_t n;
                const char *parts[4];
        } cases[] = {
                { "", 1, { "" } },
                { ",", 2, { "", "" } },
                { "a", 1, { "a" } },
                { "a,b", 2, { "a", "b" } },
                { "a,,b,", 4, { "a", "", "b", "" } },
        };
        struct str rest, part;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                size_t n = 0;

                check_case(cases[i].in);
                rest = str_from(cases[i].in);
                while (str_split(&rest, ',', &part)) {
                        check_true(n < cases[i].n);
                        check_str_eq(part, cases[i].parts[n]);
                        n++;
                }
                check_u64_eq(n, cases[i].n);
                check_view_eq(rest, STR_NULL);
        }
        rest = STR_NULL;
        check_false(str_split(&rest, ',', &part));
}

static void knows_utf8(void **state)
{
        static const struct {
                const char *what;
                struct str in;
                bool ok;
        } cases[] = {
                { "empty", STR(""), true },
                { "null", STR_NULL, true },
                { "NUL", STR("a\0b"), true },
                { "two bytes", STR("\xc2\x80\xdf\xbf"), true },
                { "three bytes", STR("\xe0\xa0\x80\xef\xbf\xbf"), true },
                { "four bytes", STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), true },
                { "around the surrogates", STR("\xed\x9f\xbf\xee\x80\x80"), true },
                { "overlong slash", STR("\xc0\xaf"), false },
                { "overlong 2", STR("\xc1\xbf"), false },
                { "overlong 3", STR("\xe0\x9f\xbf"), false },
                { "overlong 4", STR("\xf0\x8f\xbf\xbf"), false },
                { "first surrogate", STR("\xed\xa0\x80"), false },
                { "last surrogate", STR("\xed\xbf\xbf"), false },
                { "above the last", STR("\xf4\x90\x80\x80"), false },
                { "five bytes", STR("\xf8\x88\x80\x80\x80"), false },
                { "0xff", STR("\xff"), false },
                { "lone continuation", STR("a\x80"), false },
                { "cut 2", STR("\xc3"), false },
                { "cut 3", STR("\xe2\x82"), false },
                { "cut 4", STR("\xf0\x9f\x98"), false },
                { "broken inside", STR("\xe2\x28\xa1"), false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].what);
                check_i64_eq(str_is_utf8(cases[i].in), cases[i].ok);
        }
}

static void decodes_characters(void **state)
{
        uint32_t code = 0;

        check_u64_eq(str_utf8_char(STR("\xf0\x9f\x98\x80x"), &code), 4);
        check_u64_eq(code, 0x1f600);
        check_u64_eq(str_utf8_char(STR("\xe2\x82\xac"), &code), 3);
        check_u64_eq(code, 0x20ac);
        check_u64_eq(str_utf8_char(STR("\xc3\xa4"), &code), 2);
        check_u64_eq(code, 0xe4);
        check_u64_eq(str_utf8_char(STR("a"), &code), 1);
        check_u64_eq(code, 'a');
        check_u64_eq(str_utf8_char(STR(""), &code), 0);
        check_u64_eq(str_utf8_char(STR_NULL, &code), 0);
}

static void cuts_between_characters(void **state)
{
        static const struct {
                struct str in;
                size_t max;
                size_t n;
        } cases[] = {
                { STR("abc"), 3, 3 },
                { STR("abc"), 2, 2 },
                { STR("abc"), 0, 0 },
                { STR_NULL, 0, 0 },
                { STR("a\xe2\x82\xac"), 4, 4 },
                { STR("a\xe2\x82\xac"), 3, 1 },
                { STR("a\xe2\x82\xac"), 2, 1 },
                { STR("\xf0\x9f\x98\x80"), 3, 0 },
                { STR("\x80\x80\x80\x80\x80\x80"), 5, 5 }, /* no text: cut anywhere */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_u64_eq(str_utf8_cut(cases[i].in, cases[i].max).n, cases[i].n);
}

static void writes_hex(void **state)
{
        char out[8] = "#######";

        hex_encode(out, "\x00\x9f\xff", 3);
        check_z_eq(out, "009fff#");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(compares_and_searches),
                cmocka_unit_test(orders_as_bytes),
                cmocka_unit_test(trims_and_skips),
                cmocka_unit_test(splits),
                cmocka_unit_test(knows_utf8),
                cmocka_unit_test(decodes_characters),
                cmocka_unit_test(cuts_between_characters),
                cmocka_unit_test(writes_hex),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
