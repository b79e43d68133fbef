/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/relay.h"
#include "tests/lib/check.h"

/* In pieces of `step` bytes. */
static int run(struct str in, size_t step, struct buf *out)
{
        struct demux d = { 0 };

        while (in.n > 0) {
                struct str bytes = str_of(in.p, MIN_OF(step, in.n)), piece;
                int error = 0;

                while (demux_next(&d, &bytes, &piece, &error))
                        buf_add_str(out, piece);
                if (error < 0)
                        return error;
                in = str_skip(in, step);
        }
        return 0;
}

static void frames_become_output(void **state)
{
        static const struct {
                const char *name;
                struct str in;
                const char *out;
                int result;
        } cases[] = {
                { "nothing", STR(""), "", 0 },
                { "one", STR("\1\0\0\0\0\0\0\3abc"), "abc", 0 },
                { "two", STR("\1\0\0\0\0\0\0\1a\1\0\0\0\0\0\0\2bc"), "abc", 0 },
                { "an empty one", STR("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1a"), "a", 0 },
                { "errors are left out", STR("\2\0\0\0\0\0\0\3xyz\1\0\0\0\0\0\0\1a"), "a", 0 },
                { "half of one", STR("\1\0\0\0\0\0\1\0abc"), "abc", 0 },
                { "no output of that number", STR("\3\0\0\0\0\0\0\1a"), "", -EBADMSG },
                { "no frame", STR("HTTP/1.1 500 X\r\n"), "", -EBADMSG },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t step = 1; step < 12; step++) {
                        char text[64];
                        struct buf b;

                        check_case(cases[i].name);
                        buf_init_fixed(&b, text, sizeof(text));
                        check_i64_eq(run(cases[i].in, step, &b), cases[i].result);
                        check_str_eq(buf_str(&b), cases[i].out);
                }
}

int main(void)
{
        static const struct CMUnitTest tests[] = { cmocka_unit_test(frames_become_output) };

        return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
