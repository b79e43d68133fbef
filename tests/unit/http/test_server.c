/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/base.h"
#include "http/conn.h"
#include "tests/lib/http_peer.h"

/* The connection and the request over real sockets: what comes in whole and what goes out. What is
 * refused or takes too long is in test_server_limits.c. */

static struct world world;

struct greeting {
        struct str name;
        int64_t times;
};

static const struct json_field greeting_fields[] = {
        JSON_STR(struct greeting, name, "name", JSON_REQUIRED),
        JSON_I64(struct greeting, times, "times", 0),
        JSON_END,
};

static struct http_req *held; /* the handler of /later waits for the test */

static void exec_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello\n"));
}

static void exec_echo(struct http_req *req)
{
        http_reply(req, 200, STR("application/octet-stream"), req->body);
}

static void exec_param(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), req->params[0]);
}

static void exec_greet(struct http_req *req)
{
        const struct greeting *g = req->input;

        http_reply(req, 200, STR("text/plain"), g->name);
}

static void exec_later(struct http_req *req)
{
        held = http_req_ref(req);
}

/* Replies before it has asked for the body. */
static void exec_reject(struct http_req *req)
{
        http_reply_error(req, 409, "CONFLICT", "not wanted");
}

static uint64_t body_seen;
static bool body_ended;

static void paused_body(struct http_req *req, const char *p, size_t n)
{
        body_seen += n;
        http_body_pause(req);
}

static void paused_end(struct http_req *req)
{
        body_ended = true;
        http_reply_empty(req, 200);
}

static const struct http_hooks pausing = { .body = paused_body, .body_end = paused_end };

static void exec_pausing(struct http_req *req)
{
        http_req_set_hooks(req, &pausing, NULL);
        held = http_req_ref(req);
        http_body_start(req, HTTP_LENGTH_UNKNOWN);
}

static char *big;
#define BIG (3 * MiB)

static void exec_big(struct http_req *req)
{
        http_reply(req, 200, STR("application/octet-stream"), str_of(big, BIG));
}

static void exec_medium(struct http_req *req)
{
        http_reply(req, 200, STR("application/octet-stream"), str_of(big, 8 * KiB));
}

static void exec_chunks(struct http_req *req)
{
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        http_stream_write(req, STR("first"));
        http_stream_write(req, STR("second piece"));
        http_stream_end(req);
}

static void exec_broken(struct http_req *req)
{
        http_stream_begin(req, 200, 100);
        http_stream_write(req, STR("only this"));
        http_stream_end(req);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/hello", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_hello },
        { METHOD_POST, "/echo", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .exec = exec_echo },
        { METHOD_POST, "/greet", .scope = HTTP_SCOPE_PUBLIC,
          HTTP_JSON(struct greeting, greeting_fields), .exec = exec_greet },
        { METHOD_GET, "/param/{x}", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_param },
        { METHOD_ANY, "/later", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_later },
        { METHOD_POST, "/reject", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_reject },
        { METHOD_POST, "/pausing", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_pausing },
        { METHOD_GET, "/big", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_big },
        { METHOD_GET, "/medium", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_medium },
        { METHOD_GET, "/chunks", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_chunks },
        { METHOD_GET, "/broken", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_broken },
        { METHOD_GET, "/forgotten", .exec = exec_hello },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

static int set_up(void **state)
{
        world_open(&world, NULL, &api);
        held = NULL;
        return 0;
}

static int tear_down(void **state)
{
        world_close(&world);
        return 0;
}

static void let_go(struct http_req **req)
{
        http_req_unref(TAKE_PTR(*req));
}

/* --- one request after the other --- */

static void keeps_the_connection(void **state)
{
        struct peer p;

        peer_open(&p, &world);
        for (int i = 0; i < 3; i++) {
                struct peer_reply a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");

                check_i64_eq(a.status, 200);
                check_str_eq(a.body, "hello\n");
                check_true(response_header(&a, "Date").p != NULL);
                check_true(response_header(&a, "Connection").p == NULL);
        }
        check_u64_eq(http_server_stats(world.server).requests, 3);
        check_u64_eq(http_server_stats(world.server).accepted, 1);
        peer_close(&p);
}

static void follows_connection_header(void **state)
{
        static const struct {
                const char *text;
                bool kept;
                const char *connection;
        } cases[] = {
                { "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", true, NULL },
                { "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false, "close" },
                { "GET /hello HTTP/1.0\r\n\r\n", false, "close" },
                { "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, "keep-alive" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer p;
                struct peer_reply a;

                check_case(cases[i].text);
                peer_open(&p, &world);
                a = peer_request(&p, cases[i].text);
                check_i64_eq(a.status, 200);
                check_view_eq(response_header(&a, "Connection"), str_from(cases[i].connection));
                if (cases[i].kept)
                        check_i64_eq(peer_request(&p, cases[0].text).status, 200);
                else
                        peer_until_eof(&p);
                peer_close(&p);
        }
}

static void a_request_may_come_byte_by_byte(void **state)
{
        static const char text[] =
                "\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd";
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        for (size_t i = 0; i + 1 < sizeof(text); i++) {
                peer_send(&p, str_of(text + i, 1));
                world_turn(&world, 2);
        }
        a = peer_response(&p);
        check_str_eq(a.body, "abcd");
        peer_close(&p);
}

/* --- pipelining --- */

static void answers_in_order(void **state)
{
        scoped(buf_done) struct buf b;
        struct peer p;

        buf_init(&b, MiB);
        for (int i = 0; i < 500; i++)
                buf_addf(&b, "GET /param/%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
        peer_open(&p, &world);
        peer_send(&p, buf_str(&b));
        for (int i = 0; i < 500; i++) {
                struct peer_reply a = peer_response(&p);
                char want[16];

                (void) snprintf(want, sizeof(want), "%d", i);
                check_str_eq(a.body, want);
        }
        peer_close(&p);
}

static void waits_for_a_slow_response(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        peer_sendz(&p,
                   "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        world_turn(&world, 5);
        peer_read(&p);
        check_u64_eq(p.in.n, 0);
        http_reply(held, 201, STR("text/plain"), STR("late"));
        let_go(&held);
        a = peer_response(&p);
        check_i64_eq(a.status, 201);
        a = peer_response(&p);
        check_str_eq(a.body, "hello\n");
        peer_close(&p);
}

/* A client that asks for more and more without reading: we stop reading its requests. */
static void a_slow_reader_costs_no_memory(void **state)
{
        static const char text[] = "GET /medium HTTP/1.1\r\nHost: x\r\n\r\n";
        const struct http_conn *c;
        struct peer p;
        size_t sent = 0;

        peer_open(&p, &world);
        for (int i = 0; i < 200000; i++) {
                ssize_t n = send(p.fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < (ssize_t) sizeof(text) - 1)
                        break;
                sent++;
                if (i % 64 == 0)
                        world_turn(&world, 1);
        }
        world_turn(&world, 5);
        check_true(sent < 200000);
        check_true(http_server_stats(world.server).requests < sent);
        check_false(list_empty(&world.server->conns));
        c = container_of(world.server->conns.next, struct http_conn, node);
        check_true(c->stream.out.n <= CONN_OUT_MAX);
        check_true(c->pending.n <= 16 * KiB + NET_READ_SIZE);
        check_false(c->stream.reading);
        /* And it goes on when the client reads. */
        peer_until_bytes(&p, 4 * MiB);
        peer_close(&p);
}

/* --- bodies --- */

static void takes_bodies(void **state)
{
        static const struct {
                const char *text;
                int status;
                const char *body;
        } cases[] = {
                { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 200,
                  "hello" },
                { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "" },
                { "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
                  200, "abc0123456789" },
                { "POST /greet HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"name\":\"Bob\"}",
                  200, "Bob" },
                { "POST /greet HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"name\":4}", 400,
                  NULL },
                { "POST /greet HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{", 400, NULL },
        };
        struct peer p;

        peer_open(&p, &world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer_reply a;

                check_case(cases[i].text);
                a = peer_request(&p, cases[i].text);
                check_i64_eq(a.status, cases[i].status);
                if (cases[i].body)
                        check_str_eq(a.body, cases[i].body);
        }
        peer_close(&p);
}

static void names_what_is_wrong_with_json(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(
                &p, "POST /greet HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"name\":4}");
        check_str_eq(response_header(&a, "Content-Type"), "application/json");
        check_true(memmem(a.body.p, a.body.n, "INVALID_REQUEST_BODY", 20) != NULL);
        check_true(memmem(a.body.p, a.body.n, "name", 4) != NULL);
        peer_close(&p);
}

static void expect_continue(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                             "Expect: 100-continue\r\n\r\n");
        check_i64_eq(a.status, 100);
        a = peer_request(&p, "ok");
        check_i64_eq(a.status, 200);
        check_str_eq(a.body, "ok");
        /* Not when the response is there before the body was wanted; then the body will not be
         * waited for either. */
        a = peer_request(&p, "POST /reject HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                             "Expect: 100-continue\r\n\r\n");
        check_i64_eq(a.status, 409);
        check_str_eq(response_header(&a, "Connection"), "close");
        peer_until_eof(&p);
        peer_close(&p);

        peer_open(&p, &world);
        a = peer_request(&p, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                             "Expect: tea\r\n\r\n");
        check_i64_eq(a.status, 417);
        peer_close(&p);
}

static void an_unwanted_body_is_read_over(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "POST /reject HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234");
        check_i64_eq(a.status, 409);
        a = peer_request(&p, "56789GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        check_str_eq(a.body, "hello\n");
        peer_close(&p);
}

static void a_paused_body_waits_in_the_client(void **state)
{
        const char *rest = big;
        const char *end = big + BIG;
        struct peer p;

        body_seen = 0;
        body_ended = false;
        peer_open(&p, &world);
        peer_sendz(&p, "POST /pausing HTTP/1.1\r\nHost: x\r\nContent-Length: 3145728\r\n\r\n");
        for (ssize_t n = 1; n > 0; rest += MAX_OF(n, 0)) {
                n = send(p.fd, rest, (size_t) (end - rest), MSG_NOSIGNAL | MSG_DONTWAIT);
                world_turn(&world, 3);
        }
        check_true(body_seen > 0 && body_seen <= NET_READ_SIZE);
        check_true(rest < end);
        while (!body_ended) {
                uint64_t before = body_seen;

                http_body_resume(held);
                world_turn(&world, 2);
                check_true(body_seen - before <= NET_READ_SIZE);
                rest += MAX_OF(send(p.fd, rest, (size_t) (end - rest), MSG_NOSIGNAL | MSG_DONTWAIT),
                               0);
        }
        check_u64_eq(body_seen, BIG);
        check_i64_eq(peer_response(&p).status, 200);
        let_go(&held);
        peer_close(&p);
}

/* --- methods, paths, scopes --- */

static void methods(void **state)
{
        static const struct {
                const char *text;
                int status;
                const char *allow;
        } cases[] = {
                { "DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n", 405, "GET, HEAD, OPTIONS" },
                { "OPTIONS /hello HTTP/1.1\r\nHost: x\r\n\r\n", 204, "GET, HEAD, OPTIONS" },
                { "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 204, NULL },
                { "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL },
                { "GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL },
                { "PROPFIND /hello HTTP/1.1\r\nHost: x\r\n\r\n", 405, "GET, HEAD, OPTIONS" },
                { "GET /forgotten HTTP/1.1\r\nHost: x\r\n\r\n", 403, NULL },
                { "GET http://x/hello HTTP/1.1\r\nHost: x\r\n\r\n", 200, NULL },
        };
        struct peer p;

        peer_open(&p, &world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer_reply a;

                check_case(cases[i].text);
                a = peer_request(&p, cases[i].text);
                check_i64_eq(a.status, cases[i].status);
                check_view_eq(response_header(&a, "Allow"), str_from(cases[i].allow));
        }
        peer_close(&p);
}

/* One of two proxies would choose by the target, the other by Host. */
static void an_absolute_target_names_the_host(void **state)
{
        static const struct {
                const char *target, *host;
                int status;
        } cases[] = {
                { "http://x/hello", "x", 200 },
                { "http://X/hello", "x", 200 },
                { "http://x:80/hello", "x", 200 },
                { "http://x/hello", "x:80", 200 },
                { "https://x/hello", "x:443", 200 },
                { "http://x:8080/hello", "X:8080", 200 },
                { "http://[::1]:80/hello", "[::1]", 200 },
                { "http://other/hello", "x", 400 },
                { "http://x.other/hello", "x", 400 },
                { "http://x/hello", "x.other", 400 },
                { "http://x:81/hello", "x", 400 },
                { "http://x/hello", "x:81", 400 },
                { "http://x/hello", "x:443", 400 },
                { "https://x/hello", "x:80", 400 },
                { "http://[::2]/hello", "[::1]", 400 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[256];
                struct peer p;

                (void) snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                                cases[i].target, cases[i].host);
                check_case(text);
                peer_open(&p, &world);
                check_i64_eq(peer_request(&p, text).status, cases[i].status);
                peer_close(&p);
        }
}

static void head_has_no_body(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        peer_sendz(&p,
                   "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nHEAD /chunks HTTP/1.1\r\nHost: x\r\n\r\n"
                   "HEAD /big HTTP/1.1\r\nHost: x\r\n\r\n");
        a = peer_answer_head_only(&p);
        check_str_eq(response_header(&a, "Content-Length"), "6");
        a = peer_answer_head_only(&p);
        check_str_eq(response_header(&a, "Transfer-Encoding"), "chunked");
        a = peer_answer_head_only(&p);
        check_str_eq(response_header(&a, "Content-Length"), "3145728");
        world_turn(&world, 5);
        peer_read(&p);
        check_u64_eq(p.in.n, 0);
        peer_close(&p);
}

static void decodes_params(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "GET /param/a%2Fb%20c+d HTTP/1.1\r\nHost: x\r\n\r\n");
        check_str_eq(a.body, "a/b c+d");
        a = peer_request(&p, "GET /param/%zz HTTP/1.1\r\nHost: x\r\n\r\n");
        check_i64_eq(a.status, 400);
        a = peer_request(&p, "GET /param/%00 HTTP/1.1\r\nHost: x\r\n\r\n");
        check_i64_eq(a.status, 400);
        peer_close(&p);
}

static void request_ids(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-ID: abc-1\r\n\r\n");
        check_str_eq(response_header(&a, "X-Request-ID"), "abc-1");
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        check_true(id_is_hex(response_header(&a, "X-Request-ID")));
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-ID: a b\r\n\r\n");
        check_true(id_is_hex(response_header(&a, "X-Request-ID")));
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-ID: \xc3\xa9\r\n\r\n");
        check_true(id_is_hex(response_header(&a, "X-Request-ID")));
        peer_close(&p);
}

/* --- answers in pieces --- */

static void chunks(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "GET /chunks HTTP/1.1\r\nHost: x\r\n\r\n");
        check_str_eq(a.body, "5\r\nfirst\r\nc\r\nsecond piece\r\n0\r\n\r\n");
        /* HTTP/1.0 knows no chunks: the connection's end is the response's. */
        a = peer_request(&p, "GET /chunks HTTP/1.0\r\n\r\n");
        check_true(response_header(&a, "Transfer-Encoding").p == NULL);
        peer_until_eof(&p);
        check_str_eq(buf_str(&p.in), "firstsecond piece");
        peer_close(&p);
}

static void an_unkept_promise_breaks_the_connection(void **state)
{
        struct peer p;

        peer_open(&p, &world);
        peer_sendz(&p,
                   "GET /broken HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        peer_until_eof(&p);
        check_true(memmem(buf_str(&p.in).p, p.in.n, "hello", 5) == NULL);
        peer_close(&p);
}

static void large_answers_are_whole(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        a = peer_request(&p, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
        check_u64_eq(a.body.n, BIG);
        check_true(memcmp(a.body.p, big, BIG) == 0);
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        check_str_eq(a.body, "hello\n");
        peer_close(&p);
}

/* --- clients that leave --- */

static void a_half_closed_client_gets_its_responses(void **state)
{
        struct peer p;
        struct peer_reply a;

        check_case("answered at once");
        peer_open(&p, &world);
        peer_sendz(&p, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
        peer_finish(&p);
        world_turn(&world, 5);
        a = peer_response(&p);
        check_u64_eq(a.body.n, BIG);
        peer_until_eof(&p);
        peer_close(&p);

        check_case("answered later, more in the pipe");
        peer_open(&p, &world);
        peer_sendz(&p,
                   "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        peer_finish(&p);
        world_turn(&world, 5);
        check_false(http_req_is_gone(held));
        http_reply(held, 200, STR("text/plain"), STR("late"));
        let_go(&held);
        a = peer_response(&p);
        check_str_eq(a.body, "late");
        a = peer_response(&p);
        check_str_eq(a.body, "hello\n");
        peer_until_eof(&p);
        peer_close(&p);

        check_case("closing anyway");
        peer_open(&p, &world);
        peer_sendz(&p, "GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        peer_finish(&p);
        world_turn(&world, 5);
        http_reply(held, 200, STR("text/plain"), STR("late"));
        let_go(&held);
        a = peer_response(&p);
        check_str_eq(a.body, "late");
        peer_until_eof(&p);
        peer_close(&p);
}

static void replies_to_nobody_do_nothing(void **state)
{
        struct peer p;
        usec_t since = clock_mono(&clock_system);

        peer_open(&p, &world);
        peer_sendz(&p, "POST /later HTTP/1.1\r\nHost: x\r\n\r\n");
        world_turn(&world, 3);
        peer_close(&p);
        /* Reading notices FIN only; that the client is gone for good shows in the response. */
        http_stream_begin(held, 200, HTTP_LENGTH_UNKNOWN);
        while (!http_req_is_gone(held) && clock_mono(&clock_system) - since < PEER_TIMEOUT)
                world_turn(&world, 1);
        check_true(http_req_is_gone(held));
        http_stream_write(held, STR("x"));
        http_stream_end(held);
        http_reply_error(held, 500, "X", "x");
        let_go(&held);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                TEST(keeps_the_connection),
                TEST(follows_connection_header),
                TEST(a_request_may_come_byte_by_byte),
                TEST(answers_in_order),
                TEST(waits_for_a_slow_response),
                TEST(a_slow_reader_costs_no_memory),
                TEST(takes_bodies),
                TEST(names_what_is_wrong_with_json),
                TEST(expect_continue),
                TEST(an_unwanted_body_is_read_over),
                TEST(a_paused_body_waits_in_the_client),
                TEST(methods),
                TEST(an_absolute_target_names_the_host),
                TEST(head_has_no_body),
                TEST(decodes_params),
                TEST(request_ids),
                TEST(chunks),
                TEST(an_unkept_promise_breaks_the_connection),
                TEST(large_answers_are_whole),
                TEST(a_half_closed_client_gets_its_responses),
                TEST(replies_to_nobody_do_nothing),
        };
        int r;

        big = malloc(BIG);
        check_true(big != NULL);
        for (size_t i = 0; i < BIG; i++)
                big[i] = (char) (i * 7 + i / 4096);
        r = cmocka_run_group_tests(tests, NULL, NULL);
        free(big);
        return r;
}
