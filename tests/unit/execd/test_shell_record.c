/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/shell_record.h"

#include <limits.h>

#include "base/base.h"
#include "tests/lib/check.h"

#define N     "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static void test_records_are_found_in_whatever_is_around(void **state)
{
        static const struct {
                const char *name;
                struct str text;
                bool complete;
                int status;
                bool saved;
                const char *cwd;
        } cases[] = {
                { "plain", STR("\0" N " 7\0\0" N " +/a b\0"), true, 7, true, "/a b" },
                { "not saved", STR("\0" N " 0\0\0" N " -/\0"), true, 0, false, "/" },
                { "noise", STR("+ trace\n\0" N " 255\0++ more\n\0" N " +/x\ny\0bash: z\n"), true,
                  255, true, "/x\ny" },
                { "no status", STR("\0" N " +/a\0"), false, -1, false, NULL },
                { "status only", STR("\0" N " 3\0"), false, 3, false, NULL },
                { "not ended", STR("\0" N " 3\0\0" N " +/a"), false, 3, false, NULL },
                { "another run's", STR("\0" OTHER " 3\0\0" OTHER " +/a\0"), false, -1, false,
                  NULL },
                { "status too large", STR("\0" N " 256\0\0" N " +/a\0"), false, -1, false, NULL },
                { "status is no number", STR("\0" N " x\0\0" N " \0\0" N "\0"), false, -1, false,
                  NULL },
                { "relative directory", STR("\0" N " 1\0\0" N " +a\0"), true, 1, true, NULL },
                { "no directory", STR("\0" N " 1\0\0" N " +\0"), true, 1, true, NULL },
                { "a second record", STR("\0" N " 1\0\0" N " +/a\0\0" N " 2\0\0" N " -/b\0"), true,
                  1, true, "/a" },
                { "a beginning", STR("\0" N " =\0\0" N " 4\0\0" N " +/a\0"), true, 4, true, "/a" },
                { "nothing", STR(""), false, -1, false, NULL },
        };
        struct shell_record r;

        shell_record_init(&r);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t piece = 1; piece < 200; piece += 66) {
                        int completed = 0;

                        check_case(cases[i].name);
                        shell_record_begin(&r, N);
                        for (size_t at = 0; at < cases[i].text.n; at += piece)
                                completed +=
                                        shell_record_feed(&r, str_of(cases[i].text.p + at,
                                                                     MIN_OF(piece,
                                                                            cases[i].text.n - at)));
                        check_i64_eq(completed, cases[i].complete);
                        check_i64_eq(r.complete, cases[i].complete);
                        check_i64_eq(r.begun, strstr(cases[i].name, "beginning") != NULL);
                        check_i64_eq(r.status, cases[i].status);
                        check_i64_eq(r.saved, cases[i].saved);
                        check_view_eq(str_from(r.cwd), str_from(cases[i].cwd));
                }
        shell_record_done(&r);
}

static void test_long_noise_is_passed_over(void **state)
{
        char noise[3 * PATH_MAX];
        struct shell_record r;

        memset(noise, '/', sizeof(noise));
        shell_record_init(&r);
        check_case("before anything is expected");
        check_false(shell_record_feed(&r, str_of(noise, sizeof(noise))));
        shell_record_begin(&r, N);
        check_false(shell_record_feed(&r, str_of(noise, sizeof(noise))));
        check_false(shell_record_feed(&r, STR("\0" N " 1\0")));
        check_case("a directory that can't be");
        check_false(shell_record_feed(&r, STR(N " +")));
        check_false(shell_record_feed(&r, str_of(noise, sizeof(noise))));
        check_false(shell_record_feed(&r, STR("\0")));
        check_true(shell_record_feed(&r, STR("\0" N " +/a\0")));
        check_z_eq(r.cwd, "/a");
        shell_record_done(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_records_are_found_in_whatever_is_around),
                cmocka_unit_test(test_long_noise_is_passed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
