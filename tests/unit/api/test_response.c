/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

/* Errors as responses. */

static struct net_loop loop;
static struct http_server *server;
static struct service_req failure;
static const char *code;
static struct problems problems;

static void exec_fail(struct http_req *req)
{
        api_fail(req, &failure.err, code);
}

static void exec_fail_service(struct http_req *req)
{
        api_fail_service(req, &failure, code);
}

static void exec_fail_problems(struct http_req *req)
{
        api_fail_problems(req, &problems);
}

static void exec_fail_query(struct http_req *req)
{
        (void) api_fail_query(req, "page", "int_parsing", "must be a number");
}

static struct http_req *held;

static void exec_hold(struct http_req *req)
{
        held = http_req_ref(req);
}

static void exec_json(struct http_req *req)
{
        http_reply_empty(req, 204);
}

struct input {
        int64_t n;
};

static const struct json_field input_fields[] = {
        JSON_I64(struct input, n, "n", JSON_REQUIRED),
        JSON_END,
};

static const struct http_route routes[] = {
        { METHOD_GET, "/fail", HTTP_SCOPE_PUBLIC, .exec = exec_fail },
        { METHOD_GET, "/service", HTTP_SCOPE_PUBLIC, .exec = exec_fail_service },
        { METHOD_GET, "/problems", HTTP_SCOPE_PUBLIC, .exec = exec_fail_problems },
        { METHOD_GET, "/hold", HTTP_SCOPE_PUBLIC, .exec = exec_hold },
        { METHOD_GET, "/query", HTTP_SCOPE_PUBLIC, .exec = exec_fail_query },
        { METHOD_POST, "/json", HTTP_SCOPE_PUBLIC, HTTP_JSON(struct input, input_fields),
          .exec = exec_json },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes),
                                     .invalid = api_fail_body };

static int set_up(void **state)
{
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        server = http_server_new(&loop, NULL, NULL);
        check_i64_eq(http_server_add_api(server, &api), 0);
        return 0;
}

static int tear_down(void **state)
{
        http_server_free(server, NULL, NULL);
        net_loop_done(&loop);
        return 0;
}

static void request(struct http_loopback *lb, const char *method, const char *path, struct str body)
{
        http_loopback_init(lb, server);
        http_loopback_run(lb, method, path, body);
}

static void every_code_has_its_status(void **state)
{
        static const struct {
                enum err_code e;
                int status;
                const char *code;
        } cases[] = {
                { ERR_INTERNAL, 500, "SANDBOX::INTERNAL_ERROR" },
                { ERR_INVALID, 400, "SANDBOX::INVALID_PARAMETER" },
                { ERR_UNAUTHORIZED, 401, "INVALID_API_KEY" },
                { ERR_FORBIDDEN, 403, "FORBIDDEN" },
                { ERR_NOT_FOUND, 404, "DOCKER::SANDBOX_NOT_FOUND" },
                { ERR_CONFLICT, 409, "SANDBOX::INVALID_STATE" },
                { ERR_EXISTS, 409, "SANDBOX::ALREADY_EXISTS" },
                { ERR_TOO_LARGE, 413, "SANDBOX::TOO_LARGE" },
                { ERR_EXHAUSTED, 429, "SANDBOX::QUOTA_EXCEEDED" },
                { ERR_UNSUPPORTED, 501, "SANDBOX::API_NOT_SUPPORTED" },
                { ERR_UNAVAILABLE, 503, "SANDBOX::UNAVAILABLE" },
                { ERR_TIMEOUT, 504, "SANDBOX::TIMEOUT" },
                { ERR_CANCELED, 503, "SANDBOX::CANCELED" },
                { (enum err_code) 77, 500, "SANDBOX::INTERNAL_ERROR" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_loopback lb;
                char body[256];

                check_case(cases[i].code);
                check_i64_eq(api_status(cases[i].e), cases[i].status);
                (void) err_set(&failure.err, cases[i].e, "say \"why\"");
                code = NULL;
                request(&lb, "GET", "/fail", STR_NULL);
                check_i64_eq(lb.status, cases[i].status);
                (void) snprintf(body, sizeof(body),
                                "{\"code\":\"%s\",\"message\":\"say \\\"why\\\"\"}", cases[i].code);
                check_str_eq(buf_str(&lb.body), body);
                check_false(http_headers_get(&lb.headers, STR("Retry-After")).p);
                http_loopback_done(&lb);

                code = "SPECIAL";
                request(&lb, "GET", "/fail", STR_NULL);
                check_i64_eq(lb.status, cases[i].status);
                check_str_eq(buf_str(&lb.body),
                             "{\"code\":\"SPECIAL\",\"message\":\"say \\\"why\\\"\"}");
                http_loopback_done(&lb);
        }
}

static void retry_after(void **state)
{
        static const struct {
                enum err_code e;
                usec_t after;
                const char *header; /* NULL: none */
        } cases[] = {
                { ERR_EXHAUSTED, 0, "1" },
                { ERR_EXHAUSTED, 30 * USEC_PER_SEC, "30" },
                { ERR_UNAVAILABLE, 1, "1" },
                { ERR_UNAVAILABLE, USEC_PER_SEC + 1, "2" },
                { ERR_UNAVAILABLE, USEC_INFINITY, "18446744073709" },
                { ERR_CONFLICT, 30 * USEC_PER_SEC, NULL },
        };

        code = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_loopback lb;
                struct str value;

                check_case(err_code_to_string((int) cases[i].e));
                (void) err_set(&failure.err, cases[i].e, "later");
                failure.retry_after = cases[i].after;
                request(&lb, "GET", "/service", STR_NULL);
                value = http_headers_get(&lb.headers, STR("Retry-After"));
                check_true(str_eq(value, str_from(cases[i].header)));
                http_loopback_done(&lb);
        }
}

static void rules_and_forms(void **state)
{
        struct http_loopback lb;
        struct arena a;

        arena_init(&a, 64 * KiB);
        problems = (struct problems){ 0 };
        problems_add(&problems, &a, "missing", "\"image\"", "is required");
        problems_add(&problems, &a, "value_error", "\"volumes\",0", "is odd");
        request(&lb, "GET", "/problems", STR_NULL);
        check_i64_eq(lb.status, 422);
        check_str_eq(buf_str(&lb.body),
                     "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"image\"],"
                     "\"msg\":\"is required\"},{\"type\":\"value_error\","
                     "\"loc\":[\"body\",\"volumes\",0],\"msg\":\"is odd\"}]}");
        http_loopback_done(&lb);

        problems.code = "VOLUME::INVALID_NAME";
        request(&lb, "GET", "/problems", STR_NULL);
        check_i64_eq(lb.status, 400);
        check_str_eq(buf_str(&lb.body),
                     "{\"code\":\"VOLUME::INVALID_NAME\",\"message\":\"is required\"}");
        http_loopback_done(&lb);
        arena_done(&a);

        request(&lb, "GET", "/query", STR_NULL);
        check_i64_eq(lb.status, 422);
        check_str_eq(buf_str(&lb.body), "{\"detail\":[{\"type\":\"int_parsing\",\"loc\":[\"query\","
                                        "\"page\"],\"msg\":\"must be a number\"}]}");
        http_loopback_done(&lb);
}

static void bodies_that_do_not_fit(void **state)
{
        static const struct {
                const char *body, *detail;
        } cases[] = {
                { "", "{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field required\"}" },
                { "{}", "{\"type\":\"missing\",\"loc\":[\"body\",\"n\"],\"msg\":\"is required\"}" },
                { "{\"n\":\"1\"}", "{\"type\":\"int_type\",\"loc\":[\"body\",\"n\"],"
                                   "\"msg\":\"must be an integer\"}" },
                { "{\"n\":1,}", "{\"type\":\"json_invalid\",\"loc\":[\"body\",8]," },
                { "{\"n\":1", "{\"type\":\"json_invalid\",\"loc\":[\"body\",6]," },
                { "{\"n\":1,\"n\":2}", "{\"type\":\"json_invalid\",\"loc\":[\"body\",10]," },
                { "[]", "{\"type\":\"dict_type\",\"loc\":[\"body\"]," },
                { "\xff", "{\"type\":\"json_invalid\",\"loc\":[\"body\",0]," },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_loopback lb;

                check_case(cases[i].body);
                request(&lb, "POST", "/json", str_from(cases[i].body));
                check_i64_eq(lb.status, 422);
                if (!memmem(buf_str(&lb.body).p, lb.body.n, cases[i].detail,
                            strlen(cases[i].detail)))
                        fail_msg("%s: %.*s", cases[i].body, STR_ARG(buf_str(&lb.body)));
                http_loopback_done(&lb);
        }
}

/* A server error is logged, once; an operation that was canceled because its client left is not. */
static void a_client_that_left_is_not_logged(void **state)
{
        struct log_sink sink = { .level = LOG_WARN, .format = LOG_LOGFMT, .clock = &clock_system };
        struct log_ctx root;
        char said[512] = "";

        for (int leaves = 0; leaves < 2; leaves++) {
                struct http_loopback lb;
                int fds[2];
                ssize_t n;

                check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
                sink.fd = fds[1];
                log_ctx_init_root(&root, &sink);
                http_loopback_init(&lb, server);
                http_loopback_start(&lb, "GET", "/hold", STR_NULL);
                held->log = root;
                (void) err_set(&failure.err, ERR_CANCELED, "it was canceled");
                if (leaves)
                        http_loopback_abort(&lb, -ECONNRESET);
                api_fail(held, &failure.err, NULL);
                n = read(fds[0], said, sizeof(said) - 1);
                check_true(leaves ? n < 0 : n > 0 && strstr(said, "it was canceled"));
                http_req_unref(held);
                http_loopback_done(&lb);
                (void) close(fds[0]);
                (void) close(fds[1]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_code_has_its_status),
                cmocka_unit_test(retry_after),
                cmocka_unit_test(rules_and_forms),
                cmocka_unit_test(bodies_that_do_not_fit),
                cmocka_unit_test(a_client_that_left_is_not_logged),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
