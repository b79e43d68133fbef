/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/extensions.h"
#include "model/limits.h"

static void test_known_and_unknown(void **state)
{
        static char longest[EXTENSION_VALUE_MAX + 1];
        const struct {
                struct str key, value;
                bool ok;
        } cases[] = {
                { EXTENSION_RENEW, STR("300"), true },
                { EXTENSION_RENEW, STR("86400"), true },
                { EXTENSION_RENEW, STR("299"), false },
                { EXTENSION_RENEW, STR("86401"), false },
                { EXTENSION_RENEW, STR(""), false },
                { EXTENSION_RENEW, STR("5m"), false },
                { EXTENSION_RENEW, STR("-300"), false },
                { EXTENSION_RENEW, STR(" 300"), false },
                { EXTENSION_RENEW, STR("300.0"), false },
                { EXTENSION_RENEW, STR("99999999999999999999999"), false },
                { EXTENSION_ISOLATION, STR("enable"), true },
                { EXTENSION_ISOLATION, STR("disable"), false },
                { STR("whatever"), STR("a\nb"), true },
                { STR("whatever"), STR(""), true },
                { STR(""), STR("v"), false },
                { STR("a\n"), STR("v"), false },
                { STR("whatever"), STR("\xff"), false },
                { STR("whatever"), str_of(longest, sizeof(longest) - 1), true },
                { STR("whatever"), str_of(longest, sizeof(longest)), false },
        };

        memset(longest, 'a', sizeof(longest));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_pair p = { cases[i].key, cases[i].value };
                struct err e;

                check_case(i < 16 ? cases[i].value.p : "long");
                check_i64_eq(extensions_check(&(struct json_map){ &p, 1 }, &e),
                             cases[i].ok ? 0 : ERR_RETURN(ERR_INVALID));
        }
}

static void test_bounds(void **state)
{
        struct json_pair pairs[EXTENSIONS_MAX + 1];
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
                pairs[i] = (struct json_pair){ STR("k"), STR("v") };
        check_i64_eq(extensions_check(&(struct json_map){ pairs, EXTENSIONS_MAX }, &e), 0);
        check_true(extensions_check(&(struct json_map){ pairs, EXTENSIONS_MAX + 1 }, &e) < 0);
}

static void test_reading(void **state)
{
        struct json_pair p = { EXTENSION_RENEW, STR("600") };
        struct json_map one = { &p, 1 }, none = { 0 };

        check_u64_eq(extensions_renew_by(&one), 600 * USEC_PER_SEC);
        check_u64_eq(extensions_renew_by(&none), 0);
        check_str_eq(extensions_get(&one, EXTENSION_RENEW), "600");
        check_true(!extensions_get(&one, EXTENSION_POOL_REF).p);
        check_true(extension_is_public(STR("opensandbox.extensions.x")));
        check_false(extension_is_public(EXTENSION_RENEW));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_and_unknown),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_reading),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
