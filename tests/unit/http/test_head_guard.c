/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/head_guard.h"
#include "tests/lib/pieces.h"

#define M HEAD_GUARD_MESSAGE
#define T HEAD_GUARD_TRAILER

struct run {
        struct head_guard guard;
        size_t consumed;
        int r;
};

static int feed(void *arg, char *p, size_t n)
{
        struct run *run = arg;
        size_t consumed = SIZE_MAX;

        run->r = head_guard_feed(&run->guard, p, n, &consumed);
        if (run->r >= 0)
                run->consumed += consumed;
        if (run->r == 0)
                check_i64_eq(consumed, n);
        return run->r == 1 ? -ECANCELED : run->r; /* complete: feed no more */
}

/* Whole, byte by byte, at every place. */
static void expect(enum head_guard_mode mode, size_t max, struct str in, int r, ssize_t consumed,
                   const char *reason)
{
        for (size_t i = 0; i <= in.n; i++) {
                struct run run = { 0 };

                head_guard_init(&run.guard, mode, max);
                (void) pieces_feed(in, i == 0 ? CUT_BYTES : CUT_AT(i), feed, &run);
                if (run.r != r)
                        fail_msg("'%.*s' cut at %zu: %d", STR_ARG(in), i, run.r);
                if (r >= 0)
                        check_i64_eq(run.consumed, consumed);
                if (r < 0)
                        check_z_eq(run.guard.reason, reason);
        }
}

#define GET "GET / HTTP/1.1\r\n"

static void test_complete(void **state)
{
        static const struct {
                enum head_guard_mode mode;
                struct str in;
                size_t rest; /* bytes that follow the head */
        } cases[] = {
                { M, STR(GET "\r\n"), 0 },
                { M, STR(GET "Host: a\r\n\r\n"), 0 },
                { M, STR(GET "Host: a\r\nX:\r\nY: \t\xff\r\n\r\nbody\n\n\r\r"), 8 },
                { M, STR(GET "\r\n" GET "\r\n"), 18 },
                { M, STR("\r\n" GET "\r\n"), 0 },
                { M, STR("\r\n\r\n" GET "\r\n"), 0 },
                { M, STR("x\r\n\r\n"), 0 },
                { M, STR(" x\r\n\r\n"), 0 }, /* the request line is llhttp's matter */
                { M,
                  STR(GET
                      "A-long-header-name: a\tlong\tvalue with\ttabs in every\tplace\t\r\n\r\n"),
                  0 },
                { T, STR("\r\n"), 0 },
                { T, STR("\r\n\r\n"), 2 },
                { T, STR("A: b\r\n\r\nx"), 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(cases[i].mode, 1 * KiB, cases[i].in, 1,
                       (ssize_t) (cases[i].in.n - cases[i].rest), NULL);
}

static void test_incomplete(void **state)
{
        static const struct {
                enum head_guard_mode mode;
                struct str in;
        } cases[] = {
                { M, STR("") },           { M, STR("G") },
                { M, STR("\r") },         { M, STR("\r\n") },
                { M, STR("\r\n\r\n\r") }, { M, STR(GET) },
                { M, STR(GET "\r") },     { M, STR(GET "A: b\r\n") },
                { T, STR("\r") },         { T, STR("A") },
                { T, STR("A: b\r\n\r") },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(cases[i].mode, 1 * KiB, cases[i].in, 0, (ssize_t) cases[i].in.n, NULL);
}

static void test_refused(void **state)
{
        static const char lf[] = "line feed without carriage return";
        static const char cr[] = "carriage return without line feed";
        static const char fold[] = "folded header line";
        static const char name[] = "empty header name";
        static const char ctl[] = "control character in the message head";
        static const struct {
                enum head_guard_mode mode;
                struct str in;
                const char *reason;
        } cases[] = {
                { M, STR("GET / HTTP/1.1\nA: b\r\n\r\n"), lf },
                { M, STR("\nGET / HTTP/1.1\r\n\r\n"), lf },
                { M, STR(GET "A: b\n\r\n"), lf },
                { M, STR(GET "A: b\r\n\n"), lf },
                { M, STR(GET "\n"), lf },
                { M, STR(GET "\n\n"), lf },
                { M, STR(GET "A: b\rC: d\r\n\r\n"), cr },
                { M, STR(GET "A: b\r\r\n\r\n"), cr },
                { M, STR(GET "\r\r\n"), cr },
                { M, STR("\rGET / HTTP/1.1\r\n\r\n"), cr },
                { M, STR(GET "\rA: b\r\n\r\n"), cr },
                { M, STR(GET " folded\r\n\r\n"), fold },
                { M, STR(GET "A: b\r\n c\r\n\r\n"), fold },
                { M, STR(GET "A: b\r\n\tc\r\n\r\n"), fold },
                { M, STR(GET "A: b\r\n \r\n\r\n"), fold },
                { M, STR(GET ": b\r\n\r\n"), name },
                { M, STR(GET "A: b\r\n:\r\n\r\n"), name },
                { M, STR(GET "A: \0\r\n\r\n"), ctl },
                { M, STR(GET "\0A: b\r\n\r\n"), ctl },
                { M, STR(GET "A\x01: b\r\n\r\n"), ctl },
                { M, STR(GET "A: 012345678901234567890123456789\x1f\r\n\r\n"), ctl },
                { M, STR(GET "A: b\x7f\r\n\r\n"), ctl },
                { M, STR(GET "A: b\x0b\r\n\r\n"), ctl },
                { M, STR("GET /\x1b HTTP/1.1\r\n\r\n"), ctl },
                { M, STR("\r\n\r\n\r\n" GET "\r\n"), "too many empty lines before the request" },
                { T, STR("\n"), lf },
                { T, STR("A: b\n\r\n"), lf },
                { T, STR(" A: b\r\n\r\n"), fold },
                { T, STR(": b\r\n\r\n"), name },
                { T, STR("\rx"), cr },
                { T, STR("\0"), ctl },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(cases[i].mode, 1 * KiB, cases[i].in, -EBADMSG, 0, cases[i].reason);
}

static void test_limit(void **state)
{
        struct str in = STR(GET "A: b\r\n\r\n"); /* 24 bytes */

        expect(M, 24, in, 1, 24, NULL);
        for (size_t max = 0; max < 24; max++)
                expect(M, max, in, -E2BIG, 0, "message head too large");
        /* an error within the limit is that error, not the limit */
        expect(M, 20, STR(GET "A\nxxxxxxxxxxxxxxxxxxxxxxxxx"), -EBADMSG, 0,
               "line feed without carriage return");
        expect(M, 16, STR(GET), 0, 16, NULL);
}

/* Every byte at every place of a long line: the wide loop and the slow one must agree. */
static void test_every_byte_everywhere(void **state)
{
        for (int c = 0; c < 256; c++) {
                for (size_t at = 1; at < 20; at++) {
                        char in[] = "aaaaaaaaaaaaaaaaaaaa\r\n\r\n";
                        bool bad = (c < 0x20 && c != '\t') || c == 0x7f;
                        struct head_guard g;
                        size_t consumed;

                        in[at] = (char) c;
                        head_guard_init(&g, M, 1 * KiB);
                        check_i64_eq(head_guard_feed(&g, in, sizeof(in) - 1, &consumed),
                                     bad ? -EBADMSG : 1);
                }
        }
}

static void test_answers_stay(void **state)
{
        struct head_guard g;
        size_t consumed;

        head_guard_init(&g, M, 1 * KiB);
        check_i64_eq(head_guard_feed(&g, "x\n", 2, &consumed), -EBADMSG);
        check_i64_eq(head_guard_feed(&g, "x\r\n\r\n", 5, &consumed), -EBADMSG);
        head_guard_init(&g, M, 1 * KiB);
        check_i64_eq(head_guard_feed(&g, "x\r\n\r\ny", 6, &consumed), 1);
        check_i64_eq(consumed, 5);
        check_i64_eq(head_guard_feed(&g, "y", 1, &consumed), 1);
        check_i64_eq(consumed, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_complete),
                cmocka_unit_test(test_incomplete),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_every_byte_everywhere),
                cmocka_unit_test(test_answers_stay),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
