/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/event.h"

#include "base/base.h"
#include "tests/lib/check.h"

#define NOW ((usec_t) 1700000000123456)

static void test_texts(void **state)
{
        static const struct {
                const char *name;
                enum event_type type;
                const char *text, *should;
        } cases[] = {
                { "init", EVENT_INIT, "ab",
                  "{\"type\":\"init\",\"text\":\"ab\",\"timestamp\":1700000000123}\n\n" },
                { "ping", EVENT_PING, "pong",
                  "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1700000000123}\n\n" },
                { "quotes", EVENT_STDOUT, "\"\\\t",
                  "{\"type\":\"stdout\",\"text\":\"\\\"\\\\\\t\",\"timestamp\":1700000000123}\n\n" },
                { "no UTF-8", EVENT_STDERR, "a\xff",
                  "{\"type\":\"stderr\",\"text\":\"a\xef\xbf\xbd\",\"timestamp\":1700000000123}\n\n" },
                { "what some take for line ends", EVENT_STDOUT, "\xe2\x80\xa8\xe2\x80\xa9\xc2\x85",
                  "{\"type\":\"stdout\",\"text\":\"\\u2028\\u2029\\u0085\","
                  "\"timestamp\":1700000000123}\n\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;

                check_case(cases[i].name);
                buf_init(&b, 1024);
                event_add_text(&b, cases[i].type, str_from(cases[i].text), NOW);
                check_str_eq(buf_str(&b), cases[i].should);
        }
}

static void test_outcomes(void **state)
{
        const struct event_error failed = {
                STR("CommandExecError"), STR("3"), { STR("exit status 3"), STR_NULL }, 3
        };
        scoped(buf_done) struct buf b;

        buf_init(&b, 4096);
        event_add_complete(&b, 1234567, NOW);
        check_str_eq(buf_str(&b), "{\"type\":\"execution_complete\",\"execution_time\":1234,"
                                  "\"exitCode\":0,\"durationMs\":1234,"
                                  "\"timestamp\":1700000000123}\n\n");
        buf_reset(&b);
        event_add_complete(&b, 999, NOW); /* less than a millisecond: no execution_time */
        check_str_eq(buf_str(&b), "{\"type\":\"execution_complete\",\"exitCode\":0,"
                                  "\"durationMs\":0,\"timestamp\":1700000000123}\n\n");
        buf_reset(&b);
        event_add_error(&b, &failed, 5000, NOW);
        check_str_eq(buf_str(&b),
                     "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":"
                     "\"3\",\"traceback\":[\"exit status 3\"]},\"execution_time\":5,\"exitCode\":3,"
                     "\"durationMs\":5,\"timestamp\":1700000000123}\n\n");
}

/* The promise that the batches of event_stream.c rely on. */
static void test_no_event_is_larger_than_promised(void **state)
{
        char text[300];
        scoped(buf_done) struct buf b;

        buf_init(&b, 1 * MiB);
        for (int c = 0; c < 256; c++) {
                memset(text, c, sizeof(text));
                buf_reset(&b);
                event_add_text(&b, EVENT_STDERR, str_of(text, sizeof(text)), USEC_INFINITY);
                check_true(buf_str(&b).n <= EVENT_SIZE_MAX(sizeof(text)));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_outcomes),
                cmocka_unit_test(test_no_event_is_larger_than_promised),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
