/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/http_loopback.h"

#include "base/base.h"
#include "http/route.h"
#include "net/op.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static struct http_server *server;
static int abort_reason;
static uint64_t body_seen;
static int pieces;

static void exec_echo(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), req->body);
}

/* Answers from an operation, as handlers that wait for something do. */
struct later {
        struct op op;
        struct http_req *req;
};

static void later_done(struct op *op, int r)
{
        struct later *l = container_of(op, struct later, op);

        http_reply(l->req, 200, STR("text/plain"), STR("later"));
        http_req_unref(l->req);
}

static void exec_later(struct http_req *req)
{
        struct later *l = arena_new(&req->arena, struct later);

        check_true(l != NULL);
        l->req = http_req_ref(req);
        op_init(&l->op, later_done);
        op_begin(&l->op, http_server_loop(req->server), NULL);
        op_finish(&l->op, 0);
}

static void stream_body(struct http_req *req, const char *p, size_t n)
{
        body_seen += n;
        pieces++;
}

static void stream_end(struct http_req *req)
{
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        http_stream_write(req, STR("a"));
        http_stream_write(req, STR("b"));
        http_stream_end(req);
}

static void stream_abort(struct http_req *req, int reason)
{
        abort_reason = reason;
}

static const struct http_hooks hooks = { .body = stream_body,
                                         .body_end = stream_end,
                                         .abort = stream_abort };

static void exec_stream(struct http_req *req)
{
        http_req_set_hooks(req, &hooks, NULL);
        http_body_start(req, 100000);
}

static void exec_waiting(struct http_req *req)
{
        http_req_set_hooks(req, &hooks, NULL);
}

static void exec_broken(struct http_req *req)
{
        http_stream_begin(req, 200, 10);
        http_stream_end(req);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/echo", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .exec = exec_echo },
        { METHOD_GET, "/later", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_later },
        { METHOD_POST, "/stream", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_stream },
        { METHOD_GET, "/waiting", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_waiting },
        { METHOD_GET, "/broken", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_broken },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

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

static void answers(void **state)
{
        static char large[100000];
        static const struct {
                const char *method, *target;
                size_t body_n;
                int status;
                const char *body;
        } cases[] = {
                { "POST", "/echo", 0, 200, "" },
                { "POST", "/echo", 5, 200, "xxxxx" },
                { "GET", "/later", 0, 200, "later" },
                { "POST", "/stream", 0, 200, "ab" },
                { "POST", "/stream", sizeof(large), 200, "ab" },
                { "GET", "nonsense", 0, 400, NULL },
                { "GET", "/nowhere", 0, 404, NULL },
        };

        memset(large, 'x', sizeof(large));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_loopback lb;

                check_case(cases[i].target);
                body_seen = 0;
                pieces = 0;
                http_loopback_init(&lb, server);
                http_loopback_header(&lb, STR("X-Request-ID"), STR("a1"));
                http_loopback_run(&lb, cases[i].method, cases[i].target,
                                  str_of(large, cases[i].body_n));
                check_i64_eq(lb.status, cases[i].status);
                check_str_eq(http_headers_get(&lb.headers, STR("X-Request-ID")), "a1");
                check_false(lb.failed);
                if (cases[i].body)
                        check_str_eq(buf_str(&lb.body), cases[i].body);
                http_loopback_done(&lb);
        }
}

static void bodies_come_in_pieces(void **state)
{
        static char large[100000];
        struct http_loopback lb;

        body_seen = 0;
        pieces = 0;
        http_loopback_init(&lb, server);
        http_loopback_run(&lb, "POST", "/stream", str_of(large, sizeof(large)));
        check_u64_eq(body_seen, sizeof(large));
        check_true(pieces > 10);
        http_loopback_done(&lb);
}

static void a_body_may_be_too_large(void **state)
{
        static char large[100001];
        struct http_loopback lb;

        abort_reason = 0;
        http_loopback_init(&lb, server);
        http_loopback_run(&lb, "POST", "/stream", str_of(large, sizeof(large)));
        check_i64_eq(lb.status, 413);
        check_i64_eq(abort_reason, -EMSGSIZE);
        http_loopback_done(&lb);
}

static void an_answer_may_fail(void **state)
{
        struct http_loopback lb;

        http_loopback_init(&lb, server);
        http_loopback_run(&lb, "GET", "/broken", STR_NULL);
        check_true(lb.failed);
        http_loopback_done(&lb);
}

static void the_client_may_leave(void **state)
{
        struct http_loopback lb;

        abort_reason = 0;
        http_loopback_init(&lb, server);
        http_loopback_start(&lb, "GET", "/waiting", STR_NULL);
        check_i64_eq(lb.status, 0);
        http_loopback_abort(&lb, -ECONNRESET);
        check_i64_eq(abort_reason, -ECONNRESET);
        http_loopback_done(&lb);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers),
                cmocka_unit_test(bodies_come_in_pieces),
                cmocka_unit_test(a_body_may_be_too_large),
                cmocka_unit_test(an_answer_may_fail),
                cmocka_unit_test(the_client_may_leave),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
