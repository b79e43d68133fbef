/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "base/secret.h"

static void matches_itself_only(void **state)
{
        static const struct {
                struct str secret, candidate;
                bool match;
        } cases[] = {
                { STR("token"), STR("token"), true },   { STR("to\0en"), STR("to\0en"), true },
                { STR("token"), STR("Token"), false },  { STR("token"), STR("toke"), false },
                { STR("token"), STR("token "), false }, { STR("token"), STR(""), false },
                { STR("token"), STR_NULL, false },      { STR(""), STR(""), false },
                { STR_NULL, STR_NULL, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(secret_freep) struct secret *s = secret_new(cases[i].secret);

                check_case(cases[i].candidate.p ? cases[i].candidate.p : "null");
                check_i64_eq(secret_matches(s, cases[i].candidate), cases[i].match);
        }
        check_false(secret_matches(NULL, STR("")));
        check_false(secret_matches(NULL, STR_NULL));
}

static void keeps_a_copy(void **state)
{
        char bytes[] = "hunter2";
        struct secret *s = secret_new(str_from(bytes));

        wipe(bytes, sizeof(bytes));
        check_view_eq(str_of(bytes, 8), STR("\0\0\0\0\0\0\0\0"));
        check_str_eq(secret_expose(s), "hunter2");
        secret_freep(&s);
        check_true(s == NULL);
        secret_free(NULL);
        wipe(NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(matches_itself_only),
                cmocka_unit_test(keeps_a_copy),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
