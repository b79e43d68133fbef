/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/text.h"

#define TEN(x) x x x x x x x x x x
#define SIXTY  TEN("abcdef")

static void test_forms(void **state)
{
        static const struct {
                struct str text;
                bool label, name, kube, clean, path;
        } cases[] = {
                { STR(""), 0, 0, 0, 0, 0 },
                { STR("a"), 1, 1, 1, 1, 0 },
                { STR("a-b"), 1, 1, 1, 1, 0 },
                { STR("-a"), 0, 0, 0, 1, 0 },
                { STR("a-"), 0, 0, 0, 1, 0 },
                { STR("A"), 0, 0, 1, 1, 0 },
                { STR("a_b"), 0, 0, 1, 1, 0 },
                { STR("_a"), 0, 0, 0, 1, 0 },
                { STR("a.b"), 0, 1, 1, 1, 0 },
                { STR("a..b"), 0, 0, 1, 1, 0 },
                { STR("a."), 0, 0, 0, 1, 0 },
                { STR(".a"), 0, 0, 0, 1, 0 },
                { STR("a b"), 0, 0, 0, 1, 0 },
                { STR("\xc3\xa4"), 0, 0, 0, 1, 0 },
                { STR("\xc3"), 0, 0, 0, 0, 0 },
                { STR("\xc2\x9b"), 0, 0, 0, 0, 0 }, /* CSI */
                { STR("a\n"), 0, 0, 0, 0, 0 },
                { STR("a\0b"), 0, 0, 0, 0, 0 },
                { STR("\x7f"), 0, 0, 0, 0, 0 },
                { STR(SIXTY "abc"), 1, 1, 1, 1, 0 },
                { STR(SIXTY "abcd"), 0, 0, 0, 1, 0 },
                { STR(SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghi"), 0, 1, 0, 1, 0 },
                { STR(SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghij"), 0, 0, 0, 1, 0 },
                { STR("/"), 0, 0, 0, 1, 1 },
                { STR("/a"), 0, 0, 0, 1, 1 },
                { STR("/a/b.c"), 0, 0, 0, 1, 1 },
                { STR("/a/"), 0, 0, 0, 1, 0 },
                { STR("//a"), 0, 0, 0, 1, 0 },
                { STR("/a//b"), 0, 0, 0, 1, 0 },
                { STR("/a/../b"), 0, 0, 0, 1, 0 },
                { STR("/.."), 0, 0, 0, 1, 0 },
                { STR("/a/."), 0, 0, 0, 1, 0 },
                { STR("/..a"), 0, 0, 0, 1, 1 },
                { STR("a/b"), 0, 0, 0, 1, 0 },
                { STR("/a\n"), 0, 0, 0, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text.p);
                check_i64_eq(text_is_dns_label(cases[i].text), cases[i].label);
                check_i64_eq(text_is_dns_name(cases[i].text), cases[i].name);
                check_i64_eq(text_is_label(cases[i].text, 63), cases[i].kube);
                check_i64_eq(text_is_clean(cases[i].text, 1000), cases[i].clean);
                check_i64_eq(text_is_plain_path(cases[i].text), cases[i].path);
        }
        check_false(text_is_clean(STR("ab"), 1));
}

static void test_arguments(void **state)
{
        check_true(text_is_argument(STR(""), 3));
        check_true(text_is_argument(STR("a\nb"), 3));
        check_false(text_is_argument(STR("abcd"), 3));
        check_false(text_is_argument(STR("a\0b"), 3));
        check_false(text_is_argument(STR("\xff"), 3));
        check_false(text_is_argument(STR_NULL, 3));
}

static void test_quoting_is_cut_and_printable(void **state)
{
        check_z_eq(QUOTED(STR("a\"\n")), "\"a\\\"\\n\"");
        check_true(strlen(QUOTED(STR(SIXTY SIXTY))) < TEXT_QUOTE_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_arguments),
                cmocka_unit_test(test_quoting_is_cut_and_printable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
