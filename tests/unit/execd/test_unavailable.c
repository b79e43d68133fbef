/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/agent_world.h"

static void test_responses(void **state)
{
        static const struct {
                const char *method, *target, *body;
                int status;
                const char *begin; /* of the body */
        } cases[] = {
                { "POST", "/code", "{\"code\":\"1\",\"context\":{\"language\":\"python\"}}", 500,
                  "{\"code\":\"RUNTIME_ERROR\",\"message\":\"language runtime server not conf" },
                { "POST", "/code", "{\"code\":\"ls\"}", 500, "{\"code\":\"RUNTIME_ERROR\"" },
                { "POST", "/code", "not even JSON", 500, "{\"code\":\"RUNTIME_ERROR\"" },
                { "POST", "/code/context", "{\"language\":\"python\"}", 500,
                  "{\"code\":\"RUNTIME_ERROR\",\"message\":\"language runtime server not conf" },
                { "GET", "/code/contexts", NULL, 200, "[]" },
                { "GET", "/code/contexts?language=python", NULL, 200, "[]" },
                { "DELETE", "/code/contexts?language=python", NULL, 200, "" },
                { "DELETE", "/code/contexts", NULL, 400, "{\"code\":\"MISSING_QUERY\"" },
                { "DELETE", "/code/contexts?language=", NULL, 400, "{\"code\":\"MISSING_QUERY\"" },
                { "GET", "/code/contexts/1", NULL, 404, "{\"code\":\"CONTEXT_NOT_FOUND\"" },
                { "DELETE", "/code/contexts/1", NULL, 404, "{\"code\":\"CONTEXT_NOT_FOUND\"" },
                { "POST", "/pty", "{}", 503, "{\"code\":\"NOT_SUPPORTED\"" },
                { "GET", "/pty/1", NULL, 404, "{\"code\":\"CONTEXT_NOT_FOUND\"" },
                { "DELETE", "/pty/1", NULL, 404, "{\"code\":\"CONTEXT_NOT_FOUND\"" },
                { "GET", "/pty/1/ws", NULL, 404, "{\"code\":\"CONTEXT_NOT_FOUND\"" },
                { "GET", "/v1/isolated/capabilities", NULL, 200, "{\"available\":false,\"message" },
                { "GET", "/v1/isolated/sessions", NULL, 200, "{\"sessions\":[]}" },
                { "POST", "/v1/isolated/session", "{}", 503, "{\"code\":\"SERVICE_UNAVAILABLE\"" },
                { "POST", "/v1/isolated/session/1/run", "{}", 503,
                  "{\"code\":\"SERVICE_UNAVAILABLE\"" },
                { "GET", "/v1/isolated/session/1/files/info?path=/", NULL, 503,
                  "{\"code\":\"SERVICE_UNAVAILABLE\"" },
        };
        struct agent_world w;

        (void) state;
        agent_world_open(&w);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].target);
                r = call(&w, cases[i].method, cases[i].target, cases[i].body);
                check_i64_eq(r.status, cases[i].status);
                check_true(str_starts_with(r.body, str_from(cases[i].begin)));
                if (cases[i].begin[0] == '\0')
                        check_u64_eq(r.body.n, 0);
        }
        agent_world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_responses),
        };

        return cmocka_run_group_tests_name("unavailable", tests, NULL, NULL);
}
