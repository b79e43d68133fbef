/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/lines.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/pieces.h"

struct story {
        struct lines lines;
        char log[512];
};

static void note(struct story *s, struct str line)
{
        size_t n = strlen(s->log);

        (void) snprintf(s->log + n, sizeof(s->log) - n, "[%.*s]", STR_ARG(line));
}

static int feed(void *arg, char *p, size_t n)
{
        struct story *s = arg;
        struct str input = str_of(p, n), line;

        while (lines_next(&s->lines, &input, &line))
                note(s, line);
        return 0;
}

static void check_story(const char *input, struct cut cut, size_t max, const char *should)
{
        struct story s = { 0 };
        struct str line;

        lines_init(&s.lines, max);
        check_i64_eq(pieces_feed(str_from(input), cut, feed, &s), 0);
        while (lines_remainder(&s.lines, &line))
                note(&s, line);
        lines_done(&s.lines);
        check_z_eq(s.log, should);
}

static void test_lines_however_they_arrive(void **state)
{
        static const struct {
                const char *name, *input, *should;
        } cases[] = {
                { "LF", "a\nb\n", "[a][b]" },
                { "unfinished", "a\nb", "[a][b]" },
                { "CR LF", "a\r\nb\r\n", "[a][b]" },
                { "CR", "1%\r2%\rdone\n", "[1%][2%][done]" },
                { "empty", "\n\na\n\n", "[][][a][]" },
                { "mixed ends", "a\r\n\r\n\n\rb", "[a][][][][b]" },
                { "nothing", "", "" },
                { "only CR", "\r", "[]" },
                { "just full", "12345678\nx\n", "[12345678][x]" },
                { "just full, CR LF", "12345678\r\nx\n", "[12345678][x]" },
                { "just full, then empty", "12345678\n\nx", "[12345678][][x]" },
                { "too long", "123456789\n", "[12345678][9]" },
                { "twice full", "1234567812345678\n1", "[12345678][12345678][1]" },
                { "cut before a character", "1234567\xc3\xa4z\n", "[1234567][\xc3\xa4z]" },
                { "cut before a wide one", "12345\xf0\x9f\x98\x80z\n",
                  "[12345][\xf0\x9f\x98\x80z]" },
                { "cut behind a character", "123456\xc3\xa4z", "[123456\xc3\xa4][z]" },
                { "just full, its last byte begins a character", "1234567\xc3\nz",
                  "[1234567\xc3][z]" },
                { "not UTF-8 anyway", "1234567\xff\xff\n", "[1234567\xff][\xff]" },
        };
        const struct cut cuts[] = { CUT_NONE, CUT_BYTES, CUT_EVERY(3), CUT_AT(8), CUT_AT(9) };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t k = 0; k < ARRAY_SIZE(cuts); k++) {
                        check_case(cases[i].name);
                        check_story(cases[i].input, cuts[k], 8, cases[i].should);
                }
}

static void test_a_complete_line_is_not_copied(void **state)
{
        const char *text = "hello\nworld\n";
        struct str input = str_from(text), line;
        struct lines l;

        lines_init(&l, LINES_MAX);
        check_true(lines_next(&l, &input, &line));
        check_true(line.p == text);
        check_true(l._partial.size == 0);
        lines_done(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines_however_they_arrive),
                cmocka_unit_test(test_a_complete_line_is_not_copied),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
