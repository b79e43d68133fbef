/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/message.h"

#include "tests/lib/check.h"
#include "tests/lib/ids.h"

#define SENDER                                                                      \
        "\"sender\":{\"serviceName\":\"BashToolAdapter\",\"serviceVersion\":\"1\"," \
        "\"serviceTarget\":\"executeCommand\",\"instanceId\":\"56e1f8e5960db056955c7eab7afe24f3\"}"
#define RECEIVER(target)                                                      \
        "\"receiver\":{\"serviceName\":\"Sandbox\",\"serviceVersion\":\"1\"," \
        "\"serviceTarget\":\"" target "\"}"
#define PARENT "00-a042d78172ba673b42c21d20e08147a1-2fd31e514f35a83a-01"
#define COMMAND(payload, more)                                             \
        "{" SENDER                                                         \
        "," RECEIVER("readFile") ",\"payload\":" payload ",\"id\":\"i1\"," \
                                 "\"correlationId\":\"c1\",\"messageType\":\"command\"" more "}"

static int read(const char *text, struct arena *a, struct command_message *ret)
{
        struct json_error e;

        arena_init(a, MiB);
        return message_read_command(str_from(text), a, ret, &e);
}

static void a_command_is_read(void **state)
{
        struct command_message c;
        struct arena a;

        check_i64_eq(read(COMMAND("{\"payload\":{\"x\":[1,\"\\u0000\"]},\"parameter\":{}}",
                                  ",\"tenantId\":\"org-1\",\"principalId\":null,\"unknown\":1,"
                                  "\"otp\":\"{\\\"traceparent\\\":\\\"" PARENT "\\\"}\""),
                          &a, &c),
                     0);
        check_str_eq(c.id, "i1");
        check_str_eq(c.correlation, "c1");
        check_str_eq(c.tenant, "org-1");
        check_true(c.principal.p == NULL);
        check_true(c.trace_id.p == NULL);
        check_str_eq(c.sender.instance, "56e1f8e5960db056955c7eab7afe24f3");
        check_true(c.command == purista_command_find(STR("readFile")));
        check_str_eq(c.payload, "{\"x\":[1,\"\\u0000\"]}");
        check_str_eq(c.traceparent, PARENT);
        arena_done(&a);
}

static void what_is_no_command_is_refused(void **state)
{
        static const char *const bad[] = {
                "",
                "null",
                "{}",
                "[]",
                "\"command\"",
                COMMAND("1", ""),
                COMMAND("{}", ",\"tenantId\":1"),
                COMMAND("{}", ",\"tenantId\":\"a\\u0000b\""),
                COMMAND("{}", ",\"principalId\":{}"),
                COMMAND("{}", ",\"messageType\":\"command\""),
                COMMAND("{}", "") "x",
                "{" SENDER "," RECEIVER("readFile") ",\"payload\":{},\"id\":\"i\","
                                                    "\"messageType\":\"customMessage\"}",
                "{" SENDER "," RECEIVER("readFile") ",\"payload\":{},\"id\":\"\","
                                                    "\"messageType\":\"command\"}",
                "{" SENDER ",\"payload\":{},\"id\":\"i\",\"messageType\":\"command\"}",
                "{" RECEIVER(
                        "readFile") ",\"payload\":{},\"id\":\"i\",\"messageType\":\"command\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct command_message c;
                struct arena a;

                check_case(bad[i]);
                check_i64_eq(read(bad[i], &a, &c), -EINVAL);
                arena_done(&a);
        }
}

/* hutchd merges the parameters of a gateway into the payload. */
static void requests_are_written(void **state)
{
        static const struct {
                const char *payload, *request;
        } cases[] = {
                { "{\"parameter\":{\"sandboxId\":\"b\"}}",
                  "{\"command\":\"readFile\",\"parameter\":{\"sandboxId\":\"b\"}}" },
                { "{\"payload\":null,\"parameter\":{\"path\":\"/p\"}}",
                  "{\"command\":\"readFile\",\"payload\":null,\"parameter\":{\"path\":\"/p\"}}" },
                { "{\"payload\":{\"a\":1},\"parameter\":{}}",
                  "{\"command\":\"readFile\",\"payload\":{\"a\":1}}" },
                { "{\"payload\":[1]}", "{\"command\":\"readFile\",\"payload\":[1]}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;
                char text[1024];
                struct command_message c;
                struct arena a;

                check_case(cases[i].payload);
                buf_init(&b, MiB);
                (void) snprintf(text, sizeof(text), COMMAND("%s", ""), cases[i].payload);
                check_i64_eq(read(text, &a, &c), 0);
                message_add_request(&b, &c);
                check_str_eq(buf_str(&b), cases[i].request);
                arena_done(&a);
        }
}

static void a_wrong_trace_is_none(void **state)
{
        static const char *const bad[] = {
                "",
                "{",
                "{}",
                "[]",
                "{\\\"traceparent\\\":1}",
                "{\\\"traceparent\\\":\\\"00-zz\\\"}",
                "{\\\"traceparent\\\":\\\"01-a042d78172ba673b42c21d20e08147a1-2fd31e514f35a83a-01\\\"}",
                "{\\\"traceparent\\\":\\\"00-A042d78172ba673b42c21d20e08147a1-2fd31e514f35a83a-01\\\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                char text[1024];
                struct command_message c;
                struct arena a;

                check_case(bad[i]);
                (void) snprintf(text, sizeof(text), COMMAND("{}", ",\"otp\":\"%s\""), bad[i]);
                check_i64_eq(read(text, &a, &c), 0);
                check_true(c.traceparent.p == NULL);
                arena_done(&a);
        }
}

/* --- writing --- */

struct world {
        struct ids ids;
        struct author who;
        struct arena memory;
        struct command_message command;
        struct message_head head;
        struct buf b;
};

static void world_make(struct world *w, struct str type, const char *more)
{
        char text[1024];

        ids_init_fake(&w->ids);
        w->who = (struct author){ .instance = STR("me"), .ids = &w->ids, .now = 7 };
        (void) snprintf(text, sizeof(text), COMMAND("{}", ",\"traceId\":\"t1\"%s"), more);
        check_i64_eq(read(text, &w->memory, &w->command), 0);
        check_i64_eq(message_reply_head(&w->who, &w->command, type, &w->memory, &w->head), 0);
        buf_init(&w->b, MiB);
}

static void world_drop(struct world *w)
{
        buf_done(&w->b);
        arena_done(&w->memory);
}

#define FROM_TO(type)                                                                           \
        "\"timestamp\":7,\"messageType\":\"" type "\",\"sender\":{\"serviceName\":\"Sandbox\"," \
        "\"serviceVersion\":\"1\",\"serviceTarget\":\"readFile\",\"instanceId\":\"me\"},"       \
        "\"receiver\":{\"serviceName\":\"BashToolAdapter\",\"serviceVersion\":\"1\","           \
        "\"serviceTarget\":\"executeCommand\",\"instanceId\":\"56e1f8e5960db056955c7eab7afe24f3\"}"
#define CONTENT "\"contentType\":\"application/json\",\"contentEncoding\":\"utf-8\""

static void a_success_is_written(void **state)
{
        struct world w;

        world_make(&w, TYPE_SUCCESS, ",\"tenantId\":\"org-1\"");
        message_add_success(&w.b, &w.who, &w.command, &w.head, STR("\"file\""));
        check_str_eq(buf_str(&w.b),
                     "{\"id\":\"i1\",\"correlationId\":\"c1\",\"traceId\":\"t1\","
                     "\"tenantId\":\"org-1\"," CONTENT
                     "," FROM_TO("commandSuccessResponse") ",\"payload\":\"file\",\"otp\":\"{}\"}");
        world_drop(&w);
}

static void a_failure_is_written(void **state)
{
        const struct failure handled = { .status = 404,
                                         .message = STR("Sandbox x not found in registry"),
                                         .data = STR("{\"a\":1}"),
                                         .handled = true };
        const struct failure unhandled = { .status = 500,
                                           .message = STR("open /secret: No such file"),
                                           .data = STR("{\"a\":1}") };
        struct world w;

        world_make(&w, TYPE_ERROR, "");
        message_add_failure(&w.b, &w.who, &w.command, &w.head, &handled);
        check_str_eq(
                buf_str(&w.b),
                "{\"id\":\"i1\",\"isHandledError\":true,\"traceId\":\"t1\"," CONTENT
                ",\"correlationId\":\"c1\"," FROM_TO(
                        "commandErrorResponse") ",\"payload\":{\"status\":404,\"message\":\"Sandbox x not found in registry\","
                                                "\"data\":{\"a\":1},\"traceId\":\"t1\"},\"otp\":\"{}\"}");
        check_case("an internal message is not sent to callers");
        buf_reset(&w.b);
        message_add_failure(&w.b, &w.who, &w.command, &w.head, &unhandled);
        check_str_eq(
                buf_str(&w.b),
                "{\"id\":\"i1\",\"isHandledError\":false,\"traceId\":\"t1\"," CONTENT
                ",\"correlationId\":\"c1\"," FROM_TO(
                        "commandErrorResponse") ",\"payload\":{\"status\":500,\"message\":\"Internal Server Error\","
                                                "\"traceId\":\"t1\"},\"otp\":\"{}\"}");
        world_drop(&w);
}

static void a_trace_goes_on_as_another_span(void **state)
{
        struct world w;

        world_make(&w, TYPE_SUCCESS, ",\"otp\":\"{\\\"traceparent\\\":\\\"" PARENT "\\\"}\"");
        check_str_eq(w.head.traceparent, "00-a042d78172ba673b42c21d20e08147a1-0000000000000001-01");
        world_drop(&w);
}

/* --- replies of hutchd --- */

static void replies_are_read(void **state)
{
        static const struct {
                const char *text;
                int r, status;
                bool ok;
                size_t events;
        } cases[] = {
                { "{\"ok\":true,\"payload\":\"x\"}", 0, 0, true, 0 },
                { "{\"ok\":true,\"payload\":{},\"events\":[{\"name\":\"E\",\"payload\":{}}]}", 0, 0,
                  true, 1 },
                { "{\"ok\":false,\"error\":{\"status\":404,\"message\":\"m\",\"handled\":true}}", 0,
                  404, false, 0 },
                { "{\"ok\":false}", -EINVAL, 0, false, 0 },
                { "{\"ok\":false,\"error\":{\"status\":99,\"message\":\"m\"}}", -EINVAL, 0, false,
                  0 },
                { "{\"ok\":true,\"events\":[{\"payload\":1}]}", -EINVAL, 0, false, 0 },
                { "{}", -EINVAL, 0, false, 0 },
                { "<html>", -EINVAL, 0, false, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_error e;
                struct hutchd_reply reply;
                struct arena a;
                int r;

                check_case(cases[i].text);
                arena_init(&a, MiB);
                r = message_read_reply(str_from(cases[i].text), &a, &reply, &e);
                check_i64_eq(r, cases[i].r);
                if (r == 0) {
                        check_i64_eq(reply.ok, cases[i].ok);
                        check_i64_eq(reply.error.status, cases[i].status);
                        check_u64_eq(reply.events.n, cases[i].events);
                }
                arena_done(&a);
        }
}

static void announcements_are_json(void **state)
{
        struct world w;

        world_make(&w, TYPE_SUCCESS, "");
        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++) {
                struct message_head head = message_announcement_head(&w.who, &purista_commands[i]);
                struct json_error e;
                json_t *doc = NULL;

                check_case(purista_commands[i].name.p);
                check_str_eq(head.sender.target, purista_commands[i].name.p);
                buf_reset(&w.b);
                message_add_announcement(&w.b, &w.who, &head, &purista_commands[i]);
                check_i64_eq(json_parse(buf_str(&w.b), 0, &doc, &e), 0);
                json_decref(doc);
        }
        world_drop(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_is_read),
                cmocka_unit_test(what_is_no_command_is_refused),
                cmocka_unit_test(requests_are_written),
                cmocka_unit_test(a_wrong_trace_is_none),
                cmocka_unit_test(a_success_is_written),
                cmocka_unit_test(a_failure_is_written),
                cmocka_unit_test(a_trace_goes_on_as_another_span),
                cmocka_unit_test(replies_are_read),
                cmocka_unit_test(announcements_are_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
