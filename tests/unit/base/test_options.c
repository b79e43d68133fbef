/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "base/base.h"
#include "tests/lib/check.h"

struct target {
        struct str name;
        bool loud;
};

static const char *set_name(void *target, struct str value)
{
        if (value.n == 0)
                return "is empty";
        ((struct target *) target)->name = value;
        return NULL;
}

static const char *set_loud(void *target, struct str value)
{
        ((struct target *) target)->loud = true;
        return NULL;
}

static const struct option options[] = {
        { "name", "NAME", "what it is called\n(default none)", set_name },
        { "loud", NULL, "says more", set_loud },
};

static const struct option_table table = {
        .program = "prog",
        .usage = "[OPTION]... [-- WORD...]",
        .summary = "Does nothing.",
        .manual = "prog(1)",
        .options = options,
        .n = ARRAY_SIZE(options),
        .takes_args = true,
};

static void test_command_lines(void **state)
{
        static const struct {
                const char *what;
                const char *argv[6];
                enum options_result result;
                const char *name;
                bool loud;
                int rest;
                const char *text;
        } cases[] = {
                { "nothing", { "prog" }, OPTIONS_RUN, NULL, false, 1, "" },
                { "two words", { "prog", "--name", "x" }, OPTIONS_RUN, "x", false, 3, "" },
                { "one word", { "prog", "--name=x=y" }, OPTIONS_RUN, "x=y", false, 2, "" },
                { "flag", { "prog", "--loud" }, OPTIONS_RUN, NULL, true, 2, "" },
                { "rest", { "prog", "--loud", "--", "--name" }, OPTIONS_RUN, NULL, true, 3, "" },
                { "empty rest", { "prog", "--" }, OPTIONS_RUN, NULL, false, 2, "" },
                { "unknown",
                  { "prog", "--nam=x" },
                  OPTIONS_EXIT_USAGE,
                  NULL,
                  false,
                  0,
                  "prog: --nam=x: unknown option\nTry 'prog --help'.\n" },
                { "no option",
                  { "prog", "x" },
                  OPTIONS_EXIT_USAGE,
                  NULL,
                  false,
                  0,
                  "prog: x: unexpected argument\nTry 'prog --help'.\n" },
                { "value missing",
                  { "prog", "--name" },
                  OPTIONS_EXIT_USAGE,
                  NULL,
                  false,
                  0,
                  "prog: --name: needs a value\nTry 'prog --help'.\n" },
                { "value wrong",
                  { "prog", "--name=" },
                  OPTIONS_EXIT_USAGE,
                  NULL,
                  false,
                  0,
                  "prog: --name=: is empty\nTry 'prog --help'.\n" },
                { "value not wanted",
                  { "prog", "--loud=1" },
                  OPTIONS_EXIT_USAGE,
                  NULL,
                  false,
                  0,
                  "prog: --loud=1: takes no value\nTry 'prog --help'.\n" },
                { "version",
                  { "prog", "--version" },
                  OPTIONS_EXIT_OK,
                  NULL,
                  false,
                  0,
                  "prog " HUTCH_VERSION "\n" },
                { "help",
                  { "prog", "--loud", "--help" },
                  OPTIONS_EXIT_OK,
                  NULL,
                  true,
                  0,
                  "Usage: prog [OPTION]... [-- WORD...]\n\nDoes nothing.\n\n"
                  "  --name NAME              what it is called\n"
                  "                           (default none)\n"
                  "  --loud                   says more\n"
                  "  --help                   show this and exit\n"
                  "  --version                show the version and exit\n\nSee prog(1).\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct target t = { 0 };
                scoped(buf_done) struct buf text;
                int argc = 0, rest = 0;

                check_case(cases[i].what);
                buf_init(&text, 4096);
                while (argc < 6 && cases[i].argv[argc])
                        argc++;
                check_i64_eq(options_parse(&table, argc, (char **) cases[i].argv, &t, &rest, &text),
                             cases[i].result);
                check_true(str_eq(t.name, str_from(cases[i].name)));
                check_i64_eq(t.loud, cases[i].loud);
                check_i64_eq(rest, cases[i].rest);
                check_str_eq(buf_str(&text), cases[i].text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
