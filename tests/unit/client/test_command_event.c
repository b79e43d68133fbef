/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command_event.h"

#include <signal.h>

#include "tests/lib/check.h"

static int read_text(const char *text, struct command_event *o, json_t **ret_doc)
{
        json_error_t e;

        *ret_doc = json_loads(text, JSON_DECODE_ANY, &e);
        check_true(*ret_doc != NULL);
        return command_event_read(*ret_doc, o);
}

#define FAILS(value)        "{\"type\":\"error\",\"error\":{\"evalue\":\"" value "\"}}"
#define FAILS_WITH(v, more) "{\"type\":\"error\",\"error\":{\"evalue\":\"" v "\"}," more "}"

static void exit_codes_in_every_form(void **state)
{
        static const struct {
                const char *event;
                int exit_code;
        } cases[] = {
                { "{\"type\":\"execution_complete\"}", 0 },
                { "{\"type\":\"execution_complete\",\"exitCode\":0}", 0 },
                { "{\"type\":\"execution_complete\",\"exitCode\":3}", 3 },
                { "{\"type\":\"execution_complete\",\"exit_code\":4}", 4 },
                { "{\"type\":\"execution_complete\",\"exitCode\":null}", 0 },
                { FAILS("7"), 7 },
                { FAILS(" 7"), 7 },
                { FAILS("-1"), -1 },
                { FAILS("0"), -1 },
                { FAILS(""), -1 },
                { FAILS("no such program"), -1 },
                { FAILS("99999999999999999999"), -1 },
                { FAILS_WITH("7", "\"exitCode\":7"), 7 },
                { FAILS_WITH("7", "\"exitCode\":0"), 7 },
                { FAILS_WITH("-1", "\"exitCode\":137"), 137 },
                { FAILS_WITH("no such program", "\"exitCode\":255"), 255 },
                { FAILS_WITH("no such program", "\"exitCode\":0"), -1 },
                { "{\"type\":\"error\",\"exitCode\":9}", 9 },
                { "{\"type\":\"error\",\"exitCode\":9000000000}", -1 },
                { "{\"type\":\"error\",\"error\":\"7\"}", -1 },
                { "{\"type\":\"error\",\"error\":{\"evalue\":7}}", 7 },
                { "{\"type\":\"error\"}", -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct command_event o;
                json_t *doc;

                check_case(cases[i].event);
                check_i64_eq(read_text(cases[i].event, &o, &doc), 0);
                check_i64_eq(o.kind, COMMAND_EVENT_ENDED);
                check_i64_eq(o.exit_code, cases[i].exit_code);
                json_decref(doc);
        }
}

#define TRACE(text) \
        "{\"type\":\"error\",\"error\":{\"evalue\":\"-1\",\"traceback\":[\"" text "\"]}}"

static void signals_in_words_and_numbers(void **state)
{
        static const struct {
                const char *event;
                int signal;
        } cases[] = {
                { TRACE("signal: killed"), SIGKILL },
                { TRACE("signal: Killed"), SIGKILL },
                { TRACE("signal: terminated"), SIGTERM },
                { TRACE("signal: SIGSEGV"), SIGSEGV },
                { TRACE("signal: segmentation fault (core dumped)"), SIGSEGV },
                { TRACE("signal: nothing known"), 0 },
                { TRACE("exit status 7"), 0 },
                { "{\"type\":\"error\",\"signal\":15}", SIGTERM },
                { "{\"type\":\"error\",\"signal\":-4}", 0 },
                { "{\"type\":\"error\",\"signal\":4000}", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct command_event o;
                json_t *doc;

                check_case(cases[i].event);
                check_i64_eq(read_text(cases[i].event, &o, &doc), 0);
                check_i64_eq(o.signal, cases[i].signal);
                json_decref(doc);
        }
}

static void output_in_every_spelling(void **state)
{
        static const struct {
                const char *event, *text;
                enum command_event_type kind;
                bool line, base64;
        } cases[] = {
                { "{\"type\":\"stdout\",\"text\":\"a\"}", "a", COMMAND_EVENT_STDOUT, true, false },
                { "{\"type\":\"stderr\",\"text\":\"a\"}", "a", COMMAND_EVENT_STDERR, true, false },
                { "{\"type\":\"stdout\",\"text\":\"\\n\"}", "\n", COMMAND_EVENT_STDOUT, false,
                  false },
                { "{\"type\":\"stdout\",\"data\":\"a\"}", "a", COMMAND_EVENT_STDOUT, false, false },
                { "{\"type\":\"stdout\",\"base64\":\"YQ==\"}", "YQ==", COMMAND_EVENT_STDOUT, false,
                  true },
                { "{\"type\":\"stdout\",\"text\":null}", NULL, COMMAND_EVENT_STDOUT, false, false },
                { "{\"type\":\"init\",\"text\":\"id\"}", "id", COMMAND_EVENT_STARTED, false,
                  false },
                { "{\"type\":\"ping\",\"text\":\"pong\"}", NULL, COMMAND_EVENT_NONE, false, false },
                { "{\"type\":\"unheard of\"}", NULL, COMMAND_EVENT_NONE, false, false },
                { "{\"code\":\"X\",\"message\":\"why\"}", "why", COMMAND_EVENT_FAILED, false,
                  false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct command_event o;
                json_t *doc;

                check_case(cases[i].event);
                check_i64_eq(read_text(cases[i].event, &o, &doc), 0);
                check_i64_eq(o.kind, cases[i].kind);
                check_str_eq(o.text, cases[i].text);
                check_i64_eq(o.is_line, cases[i].line);
                check_i64_eq(o.is_base64, cases[i].base64);
                json_decref(doc);
        }
}

static void durations_and_words(void **state)
{
        struct command_event o;
        json_t *doc;

        check_i64_eq(read_text("{\"type\":\"execution_complete\",\"execution_time\":12}", &o, &doc),
                     0);
        check_i64_eq(o.duration_ms, 12);
        json_decref(doc);
        check_i64_eq(read_text("{\"type\":\"execution_complete\",\"durationMs\":13}", &o, &doc), 0);
        check_i64_eq(o.duration_ms, 13);
        json_decref(doc);
        check_i64_eq(read_text("{\"type\":\"error\",\"timedOut\":true,\"error\":{\"evalue\":\"7\","
                               "\"traceback\":[\"exit status 7\"]}}",
                               &o, &doc),
                     0);
        check_true(o.timed_out);
        check_str_eq(o.text, "exit status 7");
        json_decref(doc);
}

static void what_is_no_event(void **state)
{
        static const char *const cases[] = { "[]", "7",         "\"text\"",    "null",
                                             "{}", "{\"a\":1}", "{\"type\":7}" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct command_event o;
                json_t *doc;

                check_case(cases[i]);
                check_i64_eq(read_text(cases[i], &o, &doc), -EINVAL);
                json_decref(doc);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(exit_codes_in_every_form),
                cmocka_unit_test(signals_in_words_and_numbers),
                cmocka_unit_test(output_in_every_spelling),
                cmocka_unit_test(durations_and_words),
                cmocka_unit_test(what_is_no_event),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
