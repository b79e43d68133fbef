/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "base/utf8.h"

/* Index of the offending byte, or n if the text is cut, or n + 1 if all is well. */
static size_t check(struct str s, size_t piece)
{
        struct utf8_check c;
        size_t bad;

        utf8_check_init(&c);
        for (size_t at = 0; at < s.n; at += piece)
                if (utf8_check_feed(&c, s.p + at, MIN_OF(piece, s.n - at), &bad) < 0)
                        return at + bad;
        return utf8_check_finish(&c) < 0 ? s.n : s.n + 1;
}

static void test_table(void **state)
{
        static const struct {
                struct str in;
                size_t bad; /* SIZE_MAX: well-formed */
        } cases[] = {
                { STR(""), SIZE_MAX },
                { STR("plain ascii, longer than eight bytes\0\x7f"), SIZE_MAX },
                { STR("12345678\xc3\xa9"
                      "12345678\xe2\x82\xac\xf0\x9f\x98\x80"),
                  SIZE_MAX },
                { STR("\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
                  SIZE_MAX },
                { STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), SIZE_MAX },
                { STR("1234567\x80"), 7 },
                { STR("\xc0\x80"), 0 },
                { STR("\xc1\xbf"), 0 },
                { STR("\xe0\x9f\xbf"), 1 },
                { STR("\xed\xa0\x80"), 1 },
                { STR("\xf0\x8f\xbf\xbf"), 1 },
                { STR("\xf4\x90\x80\x80"), 1 },
                { STR("\xf5\x80\x80\x80"), 0 },
                { STR("\xff"), 0 },
                { STR("\xe2\x28\xa1"), 1 },
                { STR("\xe2\x82\x28"), 2 },
                { STR("\xe2\x82"), 2 },
                { STR("\xf0\x9f\x98"), 3 },
                { STR("a\xc3"), 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                size_t want = cases[i].bad == SIZE_MAX ? cases[i].in.n + 1 : cases[i].bad;

                for (size_t piece = 1; piece <= cases[i].in.n + 1; piece++)
                        check_i64_eq(check(cases[i].in, piece), want);
                check_i64_eq(str_is_utf8(cases[i].in), cases[i].bad == SIZE_MAX);
        }
}

/* All sequences of three bytes, against the check for complete texts. */
static void test_agrees_with_str_is_utf8(void **state)
{
        for (uint32_t v = 0x800000; v < 0x1000000; v += 3) {
                char b[3] = { (char) (v >> 16), (char) (v >> 8), (char) v };
                struct str s = str_of(b, sizeof(b));

                if ((check(s, 3) == 4) != str_is_utf8(s))
                        fail_msg("they differ about %06x", v);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_agrees_with_str_is_utf8),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
