/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/protocol.h"

#include "base/base.h"
#include "tests/lib/check.h"

static void requests_have_what_their_call_needs_and_nothing_else(void **state)
{
        static const struct {
                const char *text;
                bool good;
        } cases[] = {
                { "{\"call\":\"hello\",\"request_id\":1,\"version\":1,\"installation\":"
                  "\"11111111111111111111111111111111\"}",
                  true },
                { "{\"call\":\"hello\",\"request_id\":1,\"version\":1}", false },
                { "{\"call\":\"hello\",\"request_id\":1,\"version\":1,\"installation\":\"../x\"}",
                  false },
                { "{\"call\":\"hello\",\"request_id\":1}", false },
                { "{\"call\":\"scan\",\"request_id\":2}", true },
                { "{\"call\":\"scan\",\"request_id\":2,\"id\":\"sb-1\"}", false },
                { "{\"call\":\"inspect\",\"request_id\":2,\"id\":\"sb-1\"}", true },
                { "{\"call\":\"inspect\",\"request_id\":2}", false },
                { "{\"call\":\"inspect\",\"request_id\":2,\"id\":\"../x\"}", false },
                { "{\"call\":\"destroy\",\"request_id\":2,\"id\":\"a/b\"}", false },
                { "{\"call\":\"destroy\",\"request_id\":2,\"id\":\"a\",\"env\":{\"A\":\"b\"}}",
                  false },
                { "{\"call\":\"create\",\"request_id\":2,\"record\":\"{}\"}", true },
                { "{\"call\":\"create\",\"request_id\":2,\"record\":\"{}\",\"env\":{\"A\":\"b\"}}",
                  true },
                { "{\"call\":\"create\",\"request_id\":2,\"record\":\"{}\",\"auth\":{\"username\":\"u\","
                  "\"password\":\"p\"}}",
                  true },
                { "{\"call\":\"create\",\"request_id\":2,\"record\":\"{}\",\"auth\":{\"username\":\"u\"}}",
                  false },
                { "{\"call\":\"create\",\"request_id\":2}", false },
                { "{\"call\":\"create\",\"request_id\":2,\"record\":\"{}\",\"privileged\":true}",
                  false },
                { "{\"call\":\"cancel\",\"request_id\":3,\"other\":2}", true },
                { "{\"call\":\"cancel\",\"request_id\":3}", false },
                { "{\"call\":\"snapshot\",\"request_id\":3,\"id\":\"a\",\"snapshot\":\"b\"}",
                  true },
                { "{\"call\":\"snapshot\",\"request_id\":3,\"id\":\"a\",\"snapshot\":\"b:c\"}",
                  false },
                { "{\"call\":\"snapshot\",\"request_id\":3,\"id\":\"a\"}", false },
                { "{\"call\":\"snapshot-remove\",\"request_id\":3,\"snapshot\":\"b\"}", true },
                { "{\"call\":\"snapshot-remove\",\"request_id\":3,\"id\":\"b\"}", false },
                { "{\"call\":\"snapshots\",\"request_id\":3}", true },
                { "{\"call\":\"snapshots\",\"request_id\":3,\"snapshot\":\"b\"}", false },
                { "{\"call\":\"exec\",\"request_id\":3,\"id\":\"a\"}", false },
                { "{\"call\":\"scan\",\"request_id\":0}", false },
                { "{\"call\":\"scan\"}", false },
                { "[]", false },
                { "", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct engine_request q;
                struct arena a;
                struct err e;
                int r;

                check_case(cases[i].text);
                arena_init(&a, MiB);
                r = engine_request_decode(str_from(cases[i].text), &a, &q, &e);
                check_i64_eq(r, cases[i].good ? 0 : ERR_RETURN(ERR_INVALID));
                arena_done(&a);
        }
}

static void a_request_comes_back_as_it_went(void **state)
{
        static struct json_pair env[] = { { { "A", 1 }, { "x\n\"\\", 4 } } };
        static struct image_auth auth = { .username = { "u", 1 }, .secret_password = { "p\"", 2 } };
        const struct engine_request sent = { .call = ENGINE_CREATE,
                                             .request_id = 77,
                                             .record = STR("{\"a\":\"\xc3\xbc\"}"),
                                             .secret_env = { env, 1 },
                                             .auth = &auth };
        struct engine_request got;
        struct arena a;
        struct buf b;
        struct err e;

        buf_init(&b, MiB);
        arena_init(&a, MiB);
        engine_request_encode(&b, &sent);
        check_i64_eq(engine_request_decode(buf_str(&b), &a, &got, &e), 0);
        check_i64_eq(got.call, ENGINE_CREATE);
        check_i64_eq(got.request_id, 77);
        check_view_eq(got.record, sent.record);
        check_i64_eq(got.secret_env.n, 1);
        check_view_eq(got.secret_env.items[0].value, env[0].value);
        check_view_eq(got.auth->secret_password, auth.secret_password);
        arena_done(&a);
        buf_done(&b);
}

static void messages_are_answers_parts_or_news(void **state)
{
        static const struct {
                const char *text;
                bool good;
        } cases[] = {
                { "{\"request_id\":1,\"done\":true}", true },
                { "{\"request_id\":1,\"done\":true,\"code\":5,\"text\":\"no\"}", true },
                { "{\"request_id\":1,\"done\":true,\"code\":99}", false },
                { "{\"request_id\":1}", false },
                { "{\"done\":true}", false },
                { "{\"request_id\":1,\"found\":\"{}\",\"state\":{\"status\":\"running\"}}", true },
                { "{\"request_id\":1,\"found\":\"{}\"}", false },
                { "{\"request_id\":1,\"done\":true,\"found\":\"{}\",\"state\":{\"status\":\"running\"}}",
                  false },
                { "{\"request_id\":1,\"done\":true,\"state\":{\"status\":\"asleep\"}}", false },
                { "{\"watching\":true}", true },
                { "{\"died\":\"sb-1\",\"state\":{\"status\":\"gone\"}}", true },
                { "{\"died\":\"sb-1\",\"state\":{\"status\":\"dead\",\"reason\":\"EXITED\"}}",
                  true },
                { "{\"died\":\"../1\",\"state\":{\"status\":\"gone\"}}", false },
                { "{\"died\":\"sb-1\"}", false },
                { "{\"request_id\":1,\"watching\":true,\"done\":true}", false },
                { "{\"request_id\":1,\"fact\":{\"name\":\"x\",\"ok\":true,\"text\":\"y\"}}", true },
                { "{\"request_id\":1,\"fact\":{\"name\":\"x\",\"ok\":1,\"text\":\"y\"}}", false },
                { "{}", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct engine_message m;
                struct arena a;
                struct err e;
                int r;

                check_case(cases[i].text);
                arena_init(&a, MiB);
                r = engine_message_decode(str_from(cases[i].text), &a, &m, &e);
                check_i64_eq(r, cases[i].good ? 0 : ERR_RETURN(ERR_INVALID));
                arena_done(&a);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_have_what_their_call_needs_and_nothing_else),
                cmocka_unit_test(a_request_comes_back_as_it_went),
                cmocka_unit_test(messages_are_answers_parts_or_news),
        };

        return cmocka_run_group_tests_name("protocol", tests, NULL, NULL);
}
