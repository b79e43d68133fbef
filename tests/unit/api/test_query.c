/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/query.h"

#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static struct http_server *server;
static bool freed;

/* Says what it has understood. */
static void exec_list(struct http_req *req)
{
        scoped(buf_done) struct buf b;
        struct list_query q;

        buf_init(&b, HTTP_COPY_MAX);
        if (list_query_parse(req, &q) < 0)
                return;
        buf_addf(&b, "skip=%llu limit=%u", (unsigned long long) q.registry.skip, q.registry.limit);
        for (int s = 0; s < STATE_MAX_; s++)
                if (q.registry.states & STATE_SET(s))
                        buf_addf(&b, " %s", state_to_string(s));
        if (q.nothing)
                buf_add_str(&b, STR(" nothing"));
        for (size_t i = 0; i < q.registry.metadata.n; i++)
                buf_addf(&b, " [%.*s]=[%.*s]", STR_ARG(q.registry.metadata.items[i].key),
                         STR_ARG(q.registry.metadata.items[i].value));
        http_reply(req, 200, STR("text/plain"), buf_str(&b));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/", HTTP_SCOPE_PUBLIC, .exec = exec_list },
};
static const struct http_api api = {
        .name = "test", .prefix = "", .routes = routes, .n_routes = 1
};

static int set_up(void **state)
{
        int r = net_loop_init(&loop, &clock_system);

        server = http_server_new(&loop, &http_server_defaults, NULL);
        return r < 0 ? r : http_server_add_api(server, &api);
}

static void on_freed(void *data)
{
        freed = true;
}

static int tear_down(void **state)
{
        http_server_free(server, on_freed, NULL);
        while (!freed)
                net_loop_run_once(&loop, true);
        net_loop_done(&loop);
        return 0;
}

struct query_case {
        const char *query;
        int status;
        const char *body;
};

static void check_all(const struct query_case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct http_loopback lb;
                char target[2048];

                check_case(cases[i].query);
                (void) snprintf(target, sizeof(target), "/%s", cases[i].query);
                http_loopback_init(&lb, server);
                http_loopback_run(&lb, "GET", target, STR_NULL);
                check_i64_eq(lb.status, cases[i].status);
                check_str_eq(buf_str(&lb.body), cases[i].body);
                http_loopback_done(&lb);
        }
}

static void test_understands(void **state)
{
        static const struct query_case cases[] = {
                { "", 200, "skip=0 limit=20" },
                { "?page=1&pageSize=1", 200, "skip=0 limit=1" },
                { "?page=3&pageSize=200", 200, "skip=400 limit=200" },
                { "?page_size=7", 200, "skip=0 limit=7" },
                { "?page=2147483647&pageSize=200", 200, "skip=429496729200 limit=200" },
                { "?state=Running", 200, "skip=0 limit=20 Running" },
                { "?state=paused&state=RUNNING", 200, "skip=0 limit=20 Running Paused" },
                { "?state=terminated", 200, "skip=0 limit=20 Terminated" },
                { "?state=Nonsense", 200, "skip=0 limit=20 nothing" },
                { "?state=Nonsense&state=Failed", 200, "skip=0 limit=20 Failed" },
                { "?state=rUNNING&state=Runnin", 200, "skip=0 limit=20 Running" },
                { "?state=", 200, "skip=0 limit=20 nothing" },
                { "?metadata=", 200, "skip=0 limit=20" },
                { "?metadata=a%3D1%26b%3D2", 200, "skip=0 limit=20 [a]=[1] [b]=[2]" },
                { "?metadata=a=1&metadata=b=2", 200, "skip=0 limit=20 [a]=[1] [b]=[2]" },
                { "?metadata=project%3DApollo%26note%3DDemo%2520Test", 200,
                  "skip=0 limit=20 [project]=[Apollo] [note]=[Demo Test]" },
                { "?metadata=a%3D", 200, "skip=0 limit=20 [a]=[]" },
                { "?metadata=a%3Db%3Dc", 200, "skip=0 limit=20 [a]=[b=c]" },
                { "?metadata=a%3D1%26a%3D2", 200, "skip=0 limit=20 [a]=[2]" },
                { "?other=1", 200, "skip=0 limit=20" },
        };

        check_all(cases, ARRAY_SIZE(cases));
}

#define DETAIL(type, name, msg)                                                               \
        "{\"detail\":[{\"type\":\"" type "\",\"loc\":[\"query\",\"" name "\"],\"msg\":\"" msg \
        "\"}]}"
#define NO_INTEGER "Input should be a valid integer, unable to parse string as an integer"
#define BAD_METADATA                                                                             \
        "{\"code\":\"INVALID_METADATA_FORMAT\",\"message\":\"Invalid metadata format: expected " \
        "up to 128 pairs key=value with '&' between them, URL-encoded\"}"

static void test_refuses(void **state)
{
        static const struct query_case cases[] = {
                { "?page=0", 422,
                  DETAIL("greater_than_equal", "page",
                         "Input should be greater than or equal to 1") },
                { "?page=-1", 422,
                  DETAIL("greater_than_equal", "page",
                         "Input should be greater than or equal to 1") },
                { "?page=99999999999999999999", 422,
                  DETAIL("less_than_equal", "page",
                         "Input should be less than or equal to 2147483647") },
                { "?page=x", 422, DETAIL("int_parsing", "page", NO_INTEGER) },
                { "?page=", 422, DETAIL("int_parsing", "page", NO_INTEGER) },
                { "?pageSize=0", 422,
                  DETAIL("greater_than_equal", "pageSize",
                         "Input should be greater than or equal to 1") },
                { "?pageSize=201", 422,
                  DETAIL("less_than_equal", "pageSize",
                         "Input should be less than or equal to 200") },
                { "?page_size=201", 422,
                  DETAIL("less_than_equal", "pageSize",
                         "Input should be less than or equal to 200") },
                { "?state=%zz", 422, DETAIL("value_error", "state", "is badly encoded") },
                { "?metadata=a", 400, BAD_METADATA },
                { "?metadata=a%3D1%26", 400, BAD_METADATA },
                { "?metadata=%26a%3D1", 400, BAD_METADATA },
                { "?metadata=a%3D1%26%26b%3D2", 400, BAD_METADATA },
                { "?metadata=a%3D%25zz", 400, BAD_METADATA },
                { "?metadata=a=1&metadata=b", 400, BAD_METADATA },
        };

        check_all(cases, ARRAY_SIZE(cases));
}

static void test_takes_no_more_labels_than_a_sandbox_can_have(void **state)
{
        char query[4096];
        struct query_case cases[] = { { query, 400, BAD_METADATA } };
        int n = snprintf(query, sizeof(query), "?metadata=");

        for (int i = 0; i < 129; i++)
                n += snprintf(query + n, sizeof(query) - (size_t) n, "%sk%d%%3Dv", i ? "%26" : "",
                              i);
        check_true(n < 2000);
        check_all(cases, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_understands),
                cmocka_unit_test(test_refuses),
                cmocka_unit_test(test_takes_no_more_labels_than_a_sandbox_can_have),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
