/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/api.h"

#include "base/base.h"
#include "tests/lib/agent_world.h"

static void test_ping_is_empty_and_sized(void **state)
{
        struct agent_world w;
        struct reply r;

        agent_world_open(&w);
        r = call(&w, "GET", "/ping", NULL);
        check_i64_eq(r.status, 200);
        check_i64_eq(r.body.n, 0);
        agent_world_close(&w);
}

static void test_version_has_protocol_and_build(void **state)
{
        struct agent_world w;
        struct reply r;

        agent_world_open(&w);
        r = call(&w, "GET", "/version", NULL);
        check_i64_eq(r.status, 200);
        check_true(str_starts_with(r.body, STR("{\"name\":\"hutch-execd\",\"version\":\"")));
        check_true(memmem(r.body.p, r.body.n, "\"protocol\":1,\"build\":\"", 22) != NULL);
        agent_world_close(&w);
}

static void test_token_guards_everything(void **state)
{
        static const struct {
                const char *name, *header, *value;
                int status;
        } cases[] = {
                { "none", NULL, NULL, 401 },
                { "wrong", "X-EXECD-ACCESS-TOKEN", "s3cret!", 401 },
                { "empty", "X-EXECD-ACCESS-TOKEN", "", 401 },
                { "other header", "Authorization", "s3cret", 401 },
                { "right", "X-EXECD-ACCESS-TOKEN", "s3cret", 200 },
                { "case of the name", "x-execd-access-token", "s3cret", 200 },
        };
        struct agent_world w;

        agent_world_open_with(&w, &(struct agent_config){ .token = secret_new(STR("s3cret")) });
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].name);
                r = call_with(&w, "GET", "/ping", cases[i].header, cases[i].value, STR_NULL);
                check_i64_eq(r.status, cases[i].status);
                if (r.status == 401)
                        check_str_eq(r.body, "{\"error\":\"Unauthorized: invalid or missing header "
                                             "X-EXECD-ACCESS-TOKEN\"}");
        }
        agent_world_close(&w);
}

static void test_unknown_paths_have_the_shape(void **state)
{
        struct agent_world w;
        struct reply r;

        agent_world_open(&w);
        r = call(&w, "GET", "/nothing", NULL);
        check_i64_eq(r.status, 404);
        check_true(str_starts_with(r.body, STR("{\"code\":\"UNKNOWN\",\"message\":\"")));
        agent_world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ping_is_empty_and_sized),
                cmocka_unit_test(test_version_has_protocol_and_build),
                cmocka_unit_test(test_token_guards_everything),
                cmocka_unit_test(test_unknown_paths_have_the_shape),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
