/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/api_world.h"

/* Routes with a fixed response, and those of operators. */

static struct api_world w;

static int set_up(void **state)
{
        api_world_open(&w);
        return 0;
}

static int tear_down(void **state)
{
        api_world_close(&w);
        return 0;
}

static bool body_has(const char *text)
{
        return memmem(w.body.p, w.body.n, text, strlen(text)) != NULL;
}

#define check_body_has(text)                                                       \
        do {                                                                       \
                if (!body_has(text))                                               \
                        CHECK_FAIL_("no '%s' in '%.*s'", (text), STR_ARG(w.body)); \
        } while (0)

struct fixed {
        const char *method, *target, *body;
        int status;
        const char *response;
};

static void check_all(const struct fixed *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                check_case(api_path(cases[i].method, " ", cases[i].target));
                api_request(&w, NULL, cases[i].method, cases[i].target, cases[i].body);
                check_i64_eq(w.status, cases[i].status);
                check_body_has(cases[i].response);
        }
}

static void test_unsupported_routes_are_501(void **state)
{
        static const struct fixed cases[] = {
                { "POST", "/pools", "{}", 501, "\"KUBERNETES::POOL_NOT_SUPPORTED\"" },
                { "GET", "/v1/pools", NULL, 501, "\"KUBERNETES::POOL_NOT_SUPPORTED\"" },
                { "GET", "/pools/p", NULL, 501, "\"KUBERNETES::POOL_NOT_SUPPORTED\"" },
                { "PUT", "/pools/p", "{}", 501, "\"KUBERNETES::POOL_NOT_SUPPORTED\"" },
                { "DELETE", "/v1/pools/p", NULL, 501, "\"KUBERNETES::POOL_NOT_SUPPORTED\"" },
                { "GET", "/v1/images", NULL, 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "POST", "/v1/images/pull", "{}", 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "POST", "/v1/images/import", NULL, 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "DELETE", "/v1/images/i", NULL, 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "GET", "/v1/volumes", NULL, 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "POST", "/v1/volumes", "{}", 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
                { "DELETE", "/v1/volumes/v", NULL, 501, "\"SANDBOX::API_NOT_SUPPORTED\"" },
        };

        check_all(cases, ARRAY_SIZE(cases));
}

static void test_metrics_events_are_checked(void **state)
{
        static const struct fixed cases[] = {
                { "POST", "/v1/metrics/events",
                  "{\"eventType\":\"sandbox.create\",\"createDurationMs\":0,\"success\":true}", 204,
                  "" },
                { "POST", "/v1/metrics/events",
                  "{\"event_type\":\"sandbox.create\",\"create_duration_ms\":7,\"success\":false,"
                  "\"sandboxId\":null,\"image\":\"a\",\"new\":1}",
                  204, "" },
                { "POST", "/v1/metrics/events",
                  "{\"eventType\":\"other\",\"createDurationMs\":0,\"success\":true}", 422,
                  "[\"body\",\"eventType\"]" },
                { "POST", "/v1/metrics/events",
                  "{\"eventType\":\"sandbox.create\",\"createDurationMs\":-1,\"success\":true}",
                  422, "{\"type\":\"greater_than_equal\",\"loc\":[\"body\",\"createDurationMs\"]" },
                { "POST", "/v1/metrics/events", "{}", 422, "\"missing\"" },
                { "POST", "/metrics/events", "{}", 404, "\"NOT_FOUND\"" },
                { "GET", "/v1/metrics/events", NULL, 405, "\"METHOD_NOT_ALLOWED\"" },
        };

        check_all(cases, ARRAY_SIZE(cases));
}

static void test_health_version_and_description_are_public(void **state)
{
        api_world_add_keys(&w);
        api_request(&w, NULL, "GET", "/health", NULL);
        check_i64_eq(w.status, 200);
        check_str_eq(w.body, "{\"status\":\"healthy\"}");
        api_request(&w, NULL, "GET", "/version", NULL);
        check_str_eq(w.body, "{\"version\":\"" HUTCH_VERSION "\"}");
        api_request(&w, NULL, "GET", "/openapi.json", NULL);
        check_i64_eq(w.status, 200);
        check_str_eq(api_header(&w, "Content-Type"), "application/json");
        check_body_has("\"/v1/sandboxes/{sandboxId}/renew-expiration\":{\"post\":");
        check_body_has("\"/v1/keys\":{");
        check_body_has("\"/health\":{");
}

static void test_metrics_are_for_admins(void **state)
{
        api_world_add_keys(&w);
        api_request(&w, NULL, "GET", "/metrics", NULL);
        check_i64_eq(w.status, 401);
        api_request(&w, KEY_ACME, "GET", "/metrics", NULL);
        check_i64_eq(w.status, 403);
        api_request(&w, KEY_ADMIN, "GET", "/metrics", NULL);
        check_i64_eq(w.status, 200);
}

static void test_metrics_count_operations(void **state)
{
        static const char *const lines[] = {
                "\nhutch_sandboxes{driver=\"fake\",state=\"Running\"} 1\n",
                "\nhutch_sandboxes{driver=\"fake\",state=\"Paused\"} 0\n",
                "\nhutch_creates_total 2\n",
                "\nhutch_deletes_total 1\n",
                "\nhutch_create_failures_total 0\n",
                "\nhutch_expired_total 0\n",
                "\nhutch_exited_total 0\n",
                "# TYPE hutch_create_seconds histogram\n",
                "\nhutch_create_seconds_bucket{le=\"+Inf\"} 2\n",
                "\nhutch_create_seconds_count 2\n",
                "# TYPE hutch_http_request_seconds histogram\n",
                "\nhutch_http_request_seconds_bucket{le=\"0.001000\"} ",
                "\nhutch_http_responses_total{class=\"2xx\"} ",
                "\nhutch_loop_iteration_seconds_bucket{le=\"+Inf\"} ",
                "\nhutch_loop_iteration_max_seconds ",
                "\nhutch_store_info{name=\"memory\"} 1\n",
                "\nhutch_event_streams 0\n",
                "\nhutch_audit_lost_total 0\n",
                "\nprocess_open_fds ",
                "\nprocess_resident_memory_bytes ",
        };
        char id[64];

        api_create(&w, NULL, id);
        api_create(&w, NULL, id);
        api_request(&w, NULL, "DELETE", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        api_request(&w, NULL, "GET", "/metrics", NULL);
        check_i64_eq(w.status, 200);
        check_str_eq(api_header(&w, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                check_body_has(lines[i]);
        check_body_has("\nhutch_build_info{version=\"" HUTCH_VERSION "\"} 1\n");
        check_false(body_has("\nprocess_open_fds 0\n"));
        check_false(body_has("\nprocess_resident_memory_bytes 0\n"));
        check_false(body_has("\nhutch_http_request_seconds_count 0\n"));
}

static void test_drivers_are_for_admins(void **state)
{
        api_world_add_keys(&w);
        api_request(&w, NULL, "GET", "/v1/drivers", NULL);
        check_i64_eq(w.status, 401);
        api_request(&w, KEY_ACME, "GET", "/v1/drivers", NULL);
        check_i64_eq(w.status, 403);
        api_request(&w, KEY_ADMIN, "GET", "/v1/drivers", NULL);
        check_i64_eq(w.status, 200);
        check_body_has("{\"items\":[{\"name\":\"fake\",\"default\":true,\"available\":true,"
                       "\"capabilities\":[\"pause\",");
        check_body_has("\"facts\":[{\"name\":\"runtime\",\"ok\":true,\"text\":\"in memory");
}

static void test_every_response_has_a_request_id(void **state)
{
        static const char *const targets[] = { "/health", "/v1/sandboxes", "/sandboxes/x",
                                               "/none",   "/v1/keys",      "/metrics" };

        for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
                check_case(targets[i]);
                api_request_with(&w, NULL, "GET", targets[i], NULL,
                                 (struct http_header){ STR("X-Request-ID"), STR("my-id") });
                check_str_eq(api_header(&w, "X-Request-ID"), "my-id");
                api_request(&w, NULL, "GET", targets[i], NULL);
                check_true(id_is_hex(api_header(&w, "X-Request-ID")));
        }
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_unsupported_routes_are_501),
                test(test_metrics_events_are_checked),
                test(test_health_version_and_description_are_public),
                test(test_metrics_are_for_admins),
                test(test_metrics_count_operations),
                test(test_drivers_are_for_admins),
                test(test_every_response_has_a_request_id),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
