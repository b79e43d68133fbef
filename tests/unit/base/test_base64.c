/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "base/base64.h"

static const struct {
        struct str plain;
        struct str text;
} pairs[] = {
        { STR(""), STR("") },
        { STR("f"), STR("Zg==") },
        { STR("fo"), STR("Zm8=") },
        { STR("foo"), STR("Zm9v") },
        { STR("foob"), STR("Zm9vYg==") },
        { STR("fooba"), STR("Zm9vYmE=") },
        { STR("foobar"), STR("Zm9vYmFy") },
        { STR("\0\0\0"), STR("AAAA") },
        { STR("\xff\xff\xff"), STR("////") },
        { STR("\xfb\xef\xbe"), STR("++++") },
};

static void test_both_ways(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                char out[16];
                size_t n;

                n = base64_encode(pairs[i].plain.p, pairs[i].plain.n, out);
                check_i64_eq(n, BASE64_ENCODED(pairs[i].plain.n));
                check_true(str_eq(str_of(out, n), pairs[i].text));
                check_i64_eq(base64_decode(pairs[i].text, out, &n), 0);
                check_true(n <= BASE64_DECODED_MAX(pairs[i].text.n));
                check_true(str_eq(str_of(out, n), pairs[i].plain));
        }
}

static void test_refused(void **state)
{
        static const struct str bad[] = {
                STR("Z"),       STR("Zg"),     STR("Zg="),      STR("Zm9"),      STR("===="),
                STR("Z==="),    STR("Zh=="),   STR("Zm9="),     STR("Zg==Zg=="), STR("Zm8=Zm9v"),
                STR("Zm 9"),    STR("Zm9v\n"), STR("Zm9v\r\n"), STR("Zm-_"),     STR("Zm9\0"),
                STR("Zm9\xff"), STR("=g=="),   STR("Z=g="),     STR("Zg=g"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                uint8_t out[16];
                size_t n;

                if (base64_decode(bad[i], out, &n) != -EINVAL)
                        fail_msg("'%.*s' was taken", STR_ARG(bad[i]));
        }
}

/* Every text that is accepted is the one we would write. */
static void test_one_text_per_value(void **state)
{
        for (unsigned v = 0; v < 256 * 256; v++) {
                uint8_t in[2] = { (uint8_t) (v >> 8), (uint8_t) v };
                uint8_t out[3];
                char text[4];
                size_t n;

                (void) base64_encode(in, sizeof(in), text);
                check_i64_eq(base64_decode(str_of(text, 4), out, &n), 0);
                check_i64_eq(n, 2);
                assert_memory_equal(in, out, 2);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_ways),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_one_text_per_value),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
