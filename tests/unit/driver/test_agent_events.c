/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent_events.h"

#include "base/base.h"
#include "tests/lib/check.h"

#define INIT "{\"type\":\"init\",\"text\":\"id\",\"timestamp\":1}\n\n"
#define PING "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1}\n\n"
#define COMPLETE \
        "{\"type\":\"execution_complete\",\"exitCode\":0,\"durationMs\":1,\"timestamp\":1}\n\n"
#define FAILED(value, more)                                                                 \
        "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"" value \
        "\",\"traceback\":[\"x\"]}" more ",\"timestamp\":1}\n\n"

struct reading {
        struct agent_events v;
        struct buf out, err_out;
};

static void reading_init(struct reading *r, size_t max)
{
        buf_init(&r->out, max);
        buf_init(&r->err_out, max);
        agent_events_init(&r->v, &r->out, &r->err_out);
}

static void reading_done(struct reading *r)
{
        agent_events_done(&r->v);
        buf_done(&r->out);
        buf_done(&r->err_out);
}

/* In pieces of n bytes. */
static int feed(struct reading *r, const char *text, size_t n)
{
        int ret = 0;

        for (struct str left = str_from(text); left.n > 0 && ret == 0;
             left = str_skip(left, MIN_OF(n, left.n)))
                ret = agent_events_feed(&r->v, str_of(left.p, MIN_OF(n, left.n)));
        return ret < 0 ? ret : agent_events_finish(&r->v);
}

static void what_an_agent_says(void **state)
{
        static const struct {
                const char *name, *text;
                enum agent_end end;
                int exit_code;
                const char *out, *err_out;
        } cases[] = {
                { "success", INIT PING COMPLETE, AGENT_END_EXITED, 0, "", "" },
                { "output",
                  INIT "{\"type\":\"stdout\",\"base64\":\"YQ0KYg==\"}\n\n"
                       "{\"type\":\"stderr\",\"base64\":\"ZQ==\"}\n"
                       "{\"type\":\"stdout\",\"base64\":\"\"}\n"
                       "{\"type\":\"stdout\",\"base64\":\"Yw==\"}\n" COMPLETE,
                  AGENT_END_EXITED, 0, "a\r\nbc", "e" },
                { "an exit code", INIT FAILED("3", ",\"exitCode\":3"), AGENT_END_EXITED, 3, "",
                  "" },
                { "of text only", INIT FAILED("255", ""), AGENT_END_EXITED, 255, "", "" },
                { "a signal", INIT FAILED("-1", ",\"exitCode\":-1,\"signal\":9"), AGENT_END_EXITED,
                  137, "", "" },
                { "a timeout", INIT FAILED("-1", ",\"signal\":9,\"timedOut\":true"),
                  AGENT_END_TIMED_OUT, 137, "", "" },
                { "never started", INIT FAILED("No such file", ",\"exitCode\":255"),
                  AGENT_END_NOT_STARTED, 255, "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t n = 1; n < 200; n += 17) {
                        struct reading r;

                        check_case(cases[i].name);
                        reading_init(&r, 1000);
                        check_i64_eq(feed(&r, cases[i].text, n), 0);
                        check_i64_eq(r.v.end, cases[i].end);
                        check_i64_eq(r.v.exit_code, cases[i].exit_code);
                        check_str_eq(buf_str(&r.out), cases[i].out);
                        check_str_eq(buf_str(&r.err_out), cases[i].err_out);
                        reading_done(&r);
                }
}

static void what_no_agent_says(void **state)
{
        static const struct {
                const char *name, *text;
        } cases[] = {
                { "nothing", "" },
                { "no end", INIT PING },
                { "cut off", INIT "{\"type\":\"execution_complete\"" },
                { "the last without its line end", INIT "{\"type\":\"execution_complete\"}" },
                { "no JSON", INIT "hello\n" COMPLETE },
                { "an array", INIT "[]\n" COMPLETE },
                { "two in a line", INIT "{\"type\":\"ping\"}{\"type\":\"ping\"}\n" COMPLETE },
                { "no type", INIT "{\"text\":\"x\"}\n" COMPLETE },
                { "an unknown type", INIT "{\"type\":\"result\"}\n" COMPLETE },
                { "data lines", INIT "data: {\"type\":\"ping\"}\n" COMPLETE },
                { "text for bytes", INIT "{\"type\":\"stdout\",\"text\":\"x\"}\n" COMPLETE },
                { "bad base64", INIT "{\"type\":\"stdout\",\"base64\":\"YQ=\"}\n" COMPLETE },
                { "a number for base64", INIT "{\"type\":\"stdout\",\"base64\":5}\n" COMPLETE },
                { "two ends", INIT COMPLETE COMPLETE },
                { "output behind the end",
                  INIT COMPLETE "{\"type\":\"stdout\",\"base64\":\"\"}\n" },
                { "an error without members", INIT "{\"type\":\"error\"}\n" },
                { "an error of code 0", INIT FAILED("0", "") },
                { "codes that contradict", INIT FAILED("3", ",\"exitCode\":4") },
                { "a code out of range", INIT FAILED("3", ",\"exitCode\":4000") },
                { "a signal out of range", INIT FAILED("-1", ",\"signal\":4000") },
                { "a signal 0", INIT FAILED("-1", ",\"signal\":0") },
                { "a key twice", INIT "{\"type\":\"ping\",\"type\":\"ping\"}\n" COMPLETE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reading r;

                check_case(cases[i].name);
                reading_init(&r, 1000);
                check_i64_eq(feed(&r, cases[i].text, 1000000), -EBADMSG);
                check_true(r.v.reason[0] != '\0');
                for (const char *p = r.v.reason; *p; p++)
                        check_true((unsigned char) *p >= ' ');
                reading_done(&r);
        }
}

static void what_is_not_said_cannot_forge_a_message(void **state)
{
        struct reading r;

        reading_init(&r, 1000);
        check_i64_eq(feed(&r, INIT FAILED("a\\nb\\u001b[31m\\u202e", ""), 7), 0);
        check_i64_eq(r.v.end, AGENT_END_NOT_STARTED);
        check_z_eq(r.v.reason, "\"a\\nb\\u001b[31m\\u202e\"");
        reading_done(&r);
}

static void output_has_a_maximum(void **state)
{
        struct reading r;

        reading_init(&r, 5);
        check_i64_eq(feed(&r, INIT "{\"type\":\"stdout\",\"base64\":\"YWJjZGU=\"}\n" COMPLETE,
                          1000),
                     0);
        check_str_eq(buf_str(&r.out), "abcde");
        reading_done(&r);
        reading_init(&r, 4);
        check_i64_eq(feed(&r, INIT "{\"type\":\"stdout\",\"base64\":\"YWJjZGU=\"}\n" COMPLETE,
                          1000),
                     -ENOBUFS);
        check_str_eq(buf_str(&r.out), "abcd");
        reading_done(&r);
}

static void an_event_has_a_maximum(void **state)
{
        static char piece[4096];
        struct reading r;
        int ret = 0;
        size_t sent = 0;

        memset(piece, ' ', sizeof(piece));
        reading_init(&r, 5);
        for (; ret == 0 && sent < 2 * AGENT_EVENT_MAX; sent += sizeof(piece))
                ret = agent_events_feed(&r.v, str_of(piece, sizeof(piece)));
        check_i64_eq(ret, -EBADMSG);
        check_true(sent <= AGENT_EVENT_MAX + 2 * sizeof(piece));
        reading_done(&r);
}

/* One that is complete and made of tiny values, which take longest to read. */
static void a_flood_of_values_is_an_event_like_any_other(void **state)
{
        static const size_t sizes[] = { AGENT_EVENT_MAX, AGENT_EVENT_MAX + 1, 48 * KiB, 60 * KiB };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                struct reading r;
                struct buf b;

                buf_init(&b, 1 * MiB);
                buf_add_str(&b, STR("{\"type\":\"ping\",\"x\":["));
                while (b.n < sizes[i] - 5)
                        buf_add_str(&b, STR("0,"));
                buf_add_str(&b, STR("0]}"));
                while (b.n < sizes[i])
                        buf_add_char(&b, ' ');
                check_i64_eq(b.n, sizes[i]);
                buf_add_char(&b, '\n');
                for (size_t n = 1000; n < 100000; n *= 10) {
                        reading_init(&r, 5);
                        /* What can be read is no end of a command either. */
                        check_i64_eq(feed(&r, buf_str(&b).p, n), -EBADMSG);
                        check_z_eq(r.v.reason, sizes[i] > AGENT_EVENT_MAX
                                                       ? "an event is too large"
                                                       : "the events end before the command does");
                        reading_done(&r);
                }
                buf_done(&b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_an_agent_says),
                cmocka_unit_test(what_no_agent_says),
                cmocka_unit_test(what_is_not_said_cannot_forge_a_message),
                cmocka_unit_test(output_has_a_maximum),
                cmocka_unit_test(an_event_has_a_maximum),
                cmocka_unit_test(a_flood_of_values_is_an_event_like_any_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
