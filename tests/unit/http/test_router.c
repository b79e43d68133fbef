/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route.h"

#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

/* Which route a path takes, shown by the response: the pattern and its parameters. */

static struct net_loop loop;
static struct http_server *server;

static void exec(struct http_req *req)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, KiB);
        buf_addf(&b, "%s%s", req->api->prefix, req->route->pattern);
        for (size_t i = 0; i < HTTP_PARAMS_MAX && req->params[i].p; i++)
                buf_addf(&b, " <%.*s>", STR_ARG(req->params[i]));
        http_reply(req, 200, STR("text/plain"), buf_str(&b));
}

static int authorize(struct http_req *req, uint32_t scope)
{
        if (http_req_header(req, STR("Key")).p)
                return 0;
        http_reply_error(req, 401, "UNAUTHORIZED", "scope %u needs a key", scope);
        return -EACCES;
}

static struct str shape(struct http_req *req, const struct http_problem *p, struct buf *b)
{
        buf_addf(b, "inner %s", p->code);
        return STR("text/x-inner");
}

#define PUBLIC .scope = HTTP_SCOPE_PUBLIC, .exec = exec

static const struct http_route outer_routes[] = {
        { METHOD_GET, "/things", PUBLIC },
        { METHOD_POST, "/things", PUBLIC },
        { METHOD_GET, "/things/{id}", PUBLIC },
        { METHOD_GET, "/things/special", PUBLIC },
        { METHOD_GET, "/things/{id}/parts/{part}", PUBLIC },
        { METHOD_GET, "/things/special/only", PUBLIC },
        { METHOD_ANY, "/things/{id}/proxy/{rest...}", PUBLIC },
        { METHOD_DELETE, "/things/special/parts/{part}", PUBLIC },
        { METHOD_GET, "/", PUBLIC },
        { METHOD_GET, "/keyed", .scope = 4, .exec = exec },
        { METHOD_GET, "/closed", .exec = exec },
};

static const struct http_api outer = { "outer", "", outer_routes, ARRAY_SIZE(outer_routes),
                                       .authorize = authorize };

static const struct http_route inner_routes[] = {
        { METHOD_GET, "/things", PUBLIC },
        { METHOD_GET, "/keyed", .scope = 4, .exec = exec },
        { METHOD_GET, "/both/{id}", PUBLIC },
};

static const struct http_api inner = { "inner", "/v1", inner_routes, 2, .shape = shape };

static const struct http_api innermost = { "innermost", "/v1/deep", inner_routes, 1 };

/* Shares the prefix of outer, and is added after it. */
static const struct http_route more_routes[] = {
        { METHOD_GET, "/more", PUBLIC },
        { METHOD_DELETE, "/things", PUBLIC },
};

static const struct http_api more = { "more", "", more_routes, ARRAY_SIZE(more_routes),
                                      .shape = shape };

/* One table under two prefixes. */
static const struct http_api twice[] = { { "twice", "", inner_routes + 2, 1 },
                                         { "twice", "/v1", inner_routes + 2, 1 } };

/* By its host. */
static bool claims(const struct http_req *req)
{
        return str_ends_with(http_req_header(req, STR("Host")), STR(".preview"));
}

static const struct http_route hosted_routes[] = {
        { METHOD_GET, "/things", PUBLIC },
        { METHOD_ANY, "/files/{rest...}", PUBLIC },
};

static const struct http_api hosted = { "hosted",       "",
                                        hosted_routes,  ARRAY_SIZE(hosted_routes),
                                        .shape = shape, .claims = claims };

static int set_up(void **state)
{
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        server = http_server_new(&loop, NULL, NULL);
        check_i64_eq(http_server_add_api(server, &outer), 0);
        check_i64_eq(http_server_add_api(server, &innermost), 0);
        check_i64_eq(http_server_add_api(server, &inner), 0);
        check_i64_eq(http_server_add_api(server, &hosted), 0);
        check_i64_eq(http_server_add_api(server, &more), 0);
        check_i64_eq(http_server_add_api(server, &twice[0]), 0);
        check_i64_eq(http_server_add_api(server, &twice[1]), 0);
        return 0;
}

static int tear_down(void **state)
{
        http_server_free(server, NULL, NULL);
        net_loop_done(&loop);
        return 0;
}

static const struct {
        const char *method, *path;
        int status;
        const char *body; /* NULL: any */
} cases[] = {
        { "GET", "/", 200, "/" },
        { "GET", "/things", 200, "/things" },
        { "GET", "/things?x=/y", 200, "/things" },
        { "HEAD", "/things", 200, "" },
        { "GET", "/things/a", 200, "/things/{id} <a>" },
        { "GET", "/things/a%2Fb", 200, "/things/{id} <a/b>" },
        { "GET", "/things/special", 200, "/things/special" },
        { "GET", "/things/specia%6c", 200, "/things/{id} <special>" },
        { "GET", "/things/", 404, NULL },
        { "GET", "//things", 404, NULL },
        /* The fixed branch leads nowhere, the parameter does. */
        { "GET", "/things/special/parts/7", 200, "/things/{id}/parts/{part} <special> <7>" },
        { "DELETE", "/things/special/parts/7", 200, "/things/special/parts/{part} <7>" },
        { "GET", "/things/special/only", 200, "/things/special/only" },
        { "GET", "/things/a/only", 404, NULL },
        { "GET", "/things/a/proxy/x/y%2Fz//", 200, "/things/{id}/proxy/{rest...} <a> <x/y%2Fz//>" },
        { "PUT", "/things/a/proxy/", 200, "/things/{id}/proxy/{rest...} <a> <>" },
        { "PROPFIND", "/things/a/proxy/x", 200, "/things/{id}/proxy/{rest...} <a> <x>" },
        { "GET", "/things/a/proxy", 404, NULL },
        { "PUT", "/things", 405, NULL },
        { "GET", "/closed", 403, NULL },
        { "GET", "/keyed", 401, NULL },
        { "GET", "/things/%", 400, NULL },
        /* Errors are shaped by the API with the longest prefix. */
        { "GET", "/v1/things", 200, "/v1/things" },
        { "GET", "/v1/nothing", 404, "inner NOT_FOUND" },
        { "PUT", "/v1/things", 405, "inner METHOD_NOT_ALLOWED" },
        { "GET", "/v1", 404, "inner NOT_FOUND" },
        { "GET", "/v1x", 404, "{\"code\":\"NOT_FOUND\",\"message\":\"there is no such path\"}" },
        { "GET", "/v1/deep/things", 200, "/v1/deep/things" },
        { "GET", "/v1/deep/x", 404,
          "{\"code\":\"NOT_FOUND\",\"message\":\"there is no such path\"}" },
        /* A prefix may be shared; who was added first answers for what no one knows. */
        { "GET", "/more", 200, "/more" },
        { "DELETE", "/things", 200, "/things" },
        { "PUT", "/more", 405,
          "{\"code\":\"METHOD_NOT_ALLOWED\",\"message\":"
          "\"this path does not support PUT; see Allow\"}" },
        { "GET", "/both/x", 200, "/both/{id} <x>" },
        { "GET", "/v1/both/x", 200, "/v1/both/{id} <x>" },
        { "GET", "/files/x", 404, NULL },
        /* A scope without anybody to judge it is closed. */
        { "GET", "/v1/keyed", 403, "inner FORBIDDEN" },
};

static void finds_routes(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_loopback lb;

                check_case(cases[i].path);
                http_loopback_init(&lb, server);
                http_loopback_run(&lb, cases[i].method, cases[i].path, STR_NULL);
                check_i64_eq(lb.status, cases[i].status);
                if (cases[i].body)
                        check_str_eq(buf_str(&lb.body), cases[i].body);
                http_loopback_done(&lb);
        }
}

static void a_host_has_routes_of_its_own(void **state)
{
        static const struct {
                const char *host, *method, *path;
                int status;
                const char *body;
        } table[] = {
                { "a.preview", "GET", "/things", 200, "/things" },
                { "a.preview", "GET", "/files/x/y", 200, "/files/{rest...} <x/y>" },
                { "a.preview", "PUT", "/files/", 200, "/files/{rest...} <>" },
                /* What others have is not there, and is refused in its own shape. */
                { "a.preview", "GET", "/v1/things", 404, "inner NOT_FOUND" },
                { "a.preview", "GET", "/keyed", 404, "inner NOT_FOUND" },
                { "a.preview", "POST", "/things", 405, "inner METHOD_NOT_ALLOWED" },
                { "a.preview", "GET", "/", 404, "inner NOT_FOUND" },
                { "preview", "GET", "/things/a", 200, "/things/{id} <a>" },
                { "preview", "GET", "/files/x", 404, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct http_loopback lb;

                check_case(table[i].path);
                http_loopback_init(&lb, server);
                http_loopback_header(&lb, STR("Host"), str_from(table[i].host));
                http_loopback_run(&lb, table[i].method, table[i].path, STR_NULL);
                check_i64_eq(lb.status, table[i].status);
                if (table[i].body)
                        check_str_eq(buf_str(&lb.body), table[i].body);
                http_loopback_done(&lb);
        }
}

static void asks_who_it_is(void **state)
{
        struct http_loopback lb;

        http_loopback_init(&lb, server);
        http_loopback_header(&lb, STR("Key"), STR("k"));
        http_loopback_run(&lb, "GET", "/keyed", STR_NULL);
        check_i64_eq(lb.status, 200);
        http_loopback_done(&lb);
}

static void tells_the_methods(void **state)
{
        struct http_loopback lb;

        http_loopback_init(&lb, server);
        http_loopback_run(&lb, "OPTIONS", "/things", STR_NULL);
        check_i64_eq(lb.status, 204);
        check_str_eq(http_headers_get(&lb.headers, STR("Allow")),
                     "DELETE, GET, HEAD, OPTIONS, POST");
        http_loopback_done(&lb);
}

static void deep_paths_end(void **state)
{
        struct http_loopback lb;
        char path[2000];

        for (size_t i = 0; i < sizeof(path); i++)
                path[i] = i % 2 ? 'a' : '/';
        path[sizeof(path) - 1] = '\0';
        http_loopback_init(&lb, server);
        http_loopback_run(&lb, "GET", path, STR_NULL);
        check_i64_eq(lb.status, 404);
        http_loopback_done(&lb);
}

static void refuses_bad_tables(void **state)
{
        static const struct {
                struct http_route routes[2];
                int r;
        } tables[] = {
                { { { METHOD_GET, "/a", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, 0 },
                { { { METHOD_GET, "/a", PUBLIC }, { METHOD_GET, "/a", PUBLIC } }, -EEXIST },
                { { { METHOD_GET, "/{a}", PUBLIC }, { METHOD_GET, "/{b}", PUBLIC } }, -EEXIST },
                { { { METHOD_GET, "a", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
                { { { METHOD_GET, "/{a", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
                { { { METHOD_GET, "/a}", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
                { { { METHOD_GET, "/{a}/{b}/{c}/{d}/{e}/{f}/{g}", PUBLIC },
                    { METHOD_GET, "/b", PUBLIC } },
                  -EINVAL },
                { { { METHOD_GET, "/{}", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
                { { { METHOD_GET, "/{a...}/b", PUBLIC }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
                { { { METHOD_GET, "/a", .scope = 1 }, { METHOD_GET, "/b", PUBLIC } }, -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                const struct http_api api = { "bad", "", tables[i].routes, 2 };
                struct http_router *r = http_router_new();

                check_case(tables[i].routes[0].pattern);
                check_i64_eq(http_router_add(r, &api), tables[i].r);
                http_router_free(r);
        }
        http_router_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_routes),
                cmocka_unit_test(asks_who_it_is),
                cmocka_unit_test(tells_the_methods),
                cmocka_unit_test(deep_paths_end),
                cmocka_unit_test(refuses_bad_tables),
                cmocka_unit_test(a_host_has_routes_of_its_own),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
