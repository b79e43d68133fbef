/* SPDX-License-Identifier: Apache-2.0 */

/* What a proxy passes on, and what not. */

#include "tests/lib/proxy_world.h"

/* --- requests --- */

static void test_simple(void **state)
{
        struct wire_peer c;

        (void) state;
        serve_back();
        send_request(&c, "GET /p/hello HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\nhello");
        check_true(wire_has(&c, "HTTP/1.1 200 OK\r\n"));
        check_true(wire_has(&c, "Content-Length: 5\r\n"));
        check_u64_eq(count(&c, "Date: "), 1);
        check_u64_eq(count(&c, "X-Request-ID: "), 1);
        wire_done(&c);
}

static void test_target_is_passed_byte_for_byte(void **state)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "/p/a%2Fb", "/a%2Fb" },
                { "/p/a//b/../%2e%2E/c", "/a//b/../%2e%2E/c" },
                { "/p/", "/" },
                { "/p/x?", "/x?" },
                { "/p/x?a=%2F&b=+%20&&", "/x?a=%2F&b=+%20&&" },
                { "/p/x;v=1?q?r", "/x;v=1?q?r" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wire_peer c, server;
                char request[256], line[256];

                check_case(cases[i].in);
                (void) snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n",
                                cases[i].in);
                (void) snprintf(line, sizeof(line), "GET %s HTTP/1.1\r\n", cases[i].out);
                pass(&c, &server, request);
                check_true(str_starts_with(buf_str(&server.in), str_from(line)));
                both_done(&c, &server);
        }
}

static void test_request_headers(void **state)
{
        static const struct str strip[] = { STR("X-Api-Key") };
        static const struct http_header add[] = { { STR("X-Added"), STR("yes") } };
        struct wire_peer c, server;

        (void) state;
        target.flags = HTTP_PROXY_FORWARDED;
        target.host = STR("inner");
        target.strip = strip;
        target.n_strip = ARRAY_SIZE(strip);
        target.add = add;
        target.n_add = ARRAY_SIZE(add);
        pass(&c, &server,
             "GET /p/x HTTP/1.1\r\nHost: outer:80\r\nConnection: keep-alive, X-Named\r\n"
             "X-Named: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: secret\r\nTE: trailers\r\n"
             "Trailer: X\r\nx-api-key: secret\r\nX-Forwarded-For: 1.1.1.1\r\n"
             "X-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
             "X-Request-ID: abc\r\nX-Added: forged\r\nCookie: a=b\r\nAccept: */*\r\n\r\n");
        check_str_eq(buf_str(&server.in),
                     "GET /x HTTP/1.1\r\nHost: inner\r\nX-Request-ID: abc\r\n"
                     "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                     "X-Forwarded-Host: outer:80\r\nX-Added: yes\r\nCookie: a=b\r\n"
                     "Accept: */*\r\n\r\n");
        both_done(&c, &server);
}

/* What the target adds replaces what the proxy itself would say, too. */
static void test_added_headers_win(void **state)
{
        static const struct http_header add[] = {
                { STR("host"), STR("added") },
                { STR("X-Request-ID"), STR("7") },
                { STR("X-Forwarded-Host"), STR("public") },
        };
        struct wire_peer c, server;

        (void) state;
        target.flags = HTTP_PROXY_FORWARDED;
        target.add = add;
        target.n_add = ARRAY_SIZE(add);
        pass(&c, &server, GET_X);
        check_str_eq(buf_str(&server.in),
                     "GET /x HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\n"
                     "X-Forwarded-Proto: http\r\nhost: added\r\nX-Request-ID: 7\r\n"
                     "X-Forwarded-Host: public\r\n\r\n");
        both_done(&c, &server);
}

/* What follows a 2xx to it is no message any more; the connection could never be used again. */
static void test_no_connect(void **state)
{
        struct wire_peer c;

        (void) state;
        send_request(&c, "CONNECT /p/x HTTP/1.1\r\nHost: h\r\n\r\n", "\"}");
        check_true(wire_has(&c, "HTTP/1.1 400 Bad Request\r\n"));
        check_u64_eq(http_client_stats(client).connects, 0);
        wire_done(&c);
}

static void test_host_kept_and_nothing_forwarded(void **state)
{
        struct wire_peer c, server;

        (void) state;
        target.flags = HTTP_PROXY_KEEP_HOST;
        pass(&c, &server,
             "GET /p/x HTTP/1.1\r\nHost: outer:80\r\nX-Request-ID: abc\r\n"
             "X-Forwarded-For: 1.1.1.1\r\n\r\n");
        check_str_eq(buf_str(&server.in),
                     "GET /x HTTP/1.1\r\nHost: outer:80\r\nX-Request-ID: abc\r\n"
                     "X-Forwarded-For: 1.1.1.1\r\n\r\n");
        both_done(&c, &server);
}

/* Each option is compared with each header; no one may make that long. */
static void test_endless_connection_header(void **state)
{
        struct wire_peer c;
        struct buf b;

        (void) state;
        buf_init(&b, 32 * KiB);
        buf_add_str(&b, STR("GET /p/x HTTP/1.1\r\nHost: h\r\nConnection: a"));
        for (int i = 0; i < 5000; i++)
                buf_add_str(&b, STR(",a"));
        buf_add_str(&b, STR("\r\n\r\n"));
        buf_add_char(&b, 0);
        send_request(&c, buf_str(&b).p, "\r\n\r\n{");
        check_true(wire_has(&c, "HTTP/1.1 400 "));
        buf_done(&b);
        wire_done(&c);
}

/* --- bodies --- */

static void test_sized_stays_sized(void **state)
{
        static const char *const methods[] = {
                "POST", "PUT", "PATCH", "DELETE", "GET", "PROPFIND"
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
                struct wire_peer c, server;
                char request[256];

                check_case(methods[i]);
                (void) snprintf(request, sizeof(request),
                                "%s /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
                                methods[i]);
                pass(&c, &server, request);
                wire_until(&loop, wire_has(&server, "\r\n\r\nhello"));
                check_true(wire_has(&server, "Content-Length: 5\r\n"));
                check_false(wire_has(&server, "Transfer-Encoding"));
                wire_send(&loop, &server, STR(OK "Content-Length: 2\r\n\r\nok"));
                wire_until(&loop, wire_has(&c, "\r\n\r\nok"));
                both_done(&c, &server);
        }
}

static void test_empty_body_stays_sized(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "POST /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        check_true(wire_has(&server, "Content-Length: 0\r\n"));
        both_done(&c, &server);
}

static void test_chunked_stays_chunked(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "DELETE /p/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        wire_send_cut(&loop, &c, STR("3;ext=1\r\nabc\r\n"), 2);
        wire_until(&loop, wire_has(&server, "c\r\n"));
        wire_send_cut(&loop, &c, STR("0\r\nTrailer: dropped\r\n\r\n"), 3);
        wire_until(&loop, wire_has(&server, "\r\n0\r\n\r\n"));
        check_true(wire_has(&server, "Transfer-Encoding: chunked\r\n\r\n"));
        check_false(wire_has(&server, "ext=1"));
        check_false(wire_has(&server, "Trailer"));
        wire_send_cut(&loop, &server,
                      STR(OK
                          "Transfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\nT: dropped\r\n\r\n"),
                      3);
        wire_until(&loop, wire_has(&c, "\r\n0\r\n\r\n"));
        check_true(wire_has(&c, "Transfer-Encoding: chunked\r\n"));
        check_false(wire_has(&c, "dropped"));
        both_done(&c, &server);
}

static void test_until_eof_becomes_chunked(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, GET_X);
        wire_send(&loop, &server, STR(OK "\r\nhello"));
        wire_until(&loop, wire_has(&c, "5\r\nhello\r\n"));
        (void) shutdown(server.fd, SHUT_WR);
        wire_until(&loop, wire_has(&c, "\r\n0\r\n\r\n"));
        check_false(c.eof);
        both_done(&c, &server);
}

struct empty_case {
        const char *name, *request, *response, *status, *expected, *unwanted;
};

static void test_answers_without_body(void **state)
{
        static const struct empty_case cases[] = {
                { "empty", GET_X, OK "Content-Length: 0\r\n\r\n", " 200 ", "Content-Length: 0\r\n",
                  "Transfer-Encoding" },
                { "204", GET_X, "HTTP/1.1 204 N\r\n\r\n", " 204 ", "\r\n\r\n", "Content-Length" },
                { "204 that lies", GET_X, "HTTP/1.1 204 N\r\nContent-Length: 3\r\n\r\nzzz", " 204 ",
                  "\r\n\r\n", "zzz" },
                { "304", GET_X, "HTTP/1.1 304 N\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n",
                  " 304 ", "ETag: \"a\"\r\n", "Transfer-Encoding" },
                { "HEAD", "HEAD /p/x HTTP/1.1\r\nHost: h\r\n\r\n", OK "Content-Length: 500\r\n\r\n",
                  " 200 ", "Content-Length: 500\r\n", "Transfer-Encoding" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wire_peer c, server;

                check_case(cases[i].name);
                pass(&c, &server, cases[i].request);
                wire_send(&loop, &server, str_from(cases[i].response));
                wire_until(&loop, wire_has(&c, "\r\n\r\n"));
                wire_settle(&loop);
                check_true(wire_has(&c, cases[i].status));
                check_true(wire_has(&c, cases[i].expected));
                check_false(wire_has(&c, cases[i].unwanted));
                check_false(c.eof);
                both_done(&c, &server);
        }
}

static void test_answer_headers(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "GET /p/x HTTP/1.1\r\nHost: h\r\nX-Request-ID: mine\r\n\r\n");
        wire_send(&loop, &server,
                  STR(OK "Connection: X-Named, close\r\nX-Named: 1\r\nKeep-Alive: 5\r\n"
                         "Proxy-Authenticate: x\r\nUpgrade: h2c\r\nTrailer: A\r\n"
                         "X-Request-ID: theirs\r\nDate: Sat, 31 Jan 2026 23:59:59 GMT\r\n"
                         "Date: twice\r\nServer: theirs\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
                         "Content-Length: 2\r\n\r\nok"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nok"));
        check_str_eq(buf_str(&c.in),
                     OK "Date: Sat, 31 Jan 2026 23:59:59 GMT\r\nServer: theirs\r\n"
                        "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n"
                        "X-Request-ID: mine\r\n\r\nok");
        both_done(&c, &server);
}

/* Drops, changes, refuses by name. */
static int judge(struct http_req *req, struct http_header *h)
{
        if (str_caseeq(h->name, STR("set-cookie")))
                return 0;
        if (str_caseeq(h->name, STR("location")))
                h->value = str_from(arena_printf(&req->arena, "/p%.*s", STR_ARG(h->value)));
        return str_caseeq(h->name, STR("x-bad")) ? -EBADMSG : 1;
}

static void test_answer_headers_are_judged(void **state)
{
        struct wire_peer c, server;

        (void) state;
        target.filter = judge;
        early_header = true;
        pass(&c, &server, GET_X);
        wire_send(&loop, &server,
                  STR("HTTP/1.1 302 Found\r\nLocation: /x\r\nSet-Cookie: a=1\r\nX-Kept: 1\r\n"
                      "SET-COOKIE: b=2\r\nContent-Length: 2\r\n\r\nok"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nok"));
        check_true(wire_has(&c, "\r\nLocation: /p/x\r\n"));
        check_true(wire_has(&c, "\r\nX-Kept: 1\r\n"));
        check_true(wire_has(&c, "\r\nX-Early: 1\r\n"));
        check_false(wire_has(&c, "a=1") || wire_has(&c, "b=2"));
        both_done(&c, &server);
}

static void test_a_judge_may_refuse_the_response(void **state)
{
        struct wire_peer c, server;

        (void) state;
        target.filter = judge;
        early_header = true;
        pass(&c, &server, GET_X);
        wire_send(&loop, &server, STR(OK "X-Kept: 1\r\nX-Bad: 1\r\nContent-Length: 2\r\n\r\nok"));
        wire_until(&loop, wire_has(&c, "BAD_GATEWAY"));
        check_true(str_starts_with(buf_str(&c.in), STR("HTTP/1.1 502 ")));
        check_true(wire_has(&c, "\r\nX-Early: 1\r\n"));
        check_false(wire_has(&c, "X-Kept"));
        both_done(&c, &server);
}

static void test_a_switch_is_judged_too(void **state)
{
        struct wire_peer c, server;

        (void) state;
        target.filter = judge;
        pass(&c, &server,
             "GET /p/x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        wire_send(&loop, &server,
                  STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                      "Upgrade: websocket\r\nSet-Cookie: a=1\r\n\r\n"));
        wire_until(&loop, wire_has(&c, "\r\n\r\n"));
        check_true(wire_has(&c, "HTTP/1.1 101 "));
        check_false(wire_has(&c, "Set-Cookie"));
        both_done(&c, &server);
}

static void test_expect_is_answered_by_us(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server,
             "POST /p/x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        check_false(wire_has(&server, "Expect"));
        wire_until(&loop, wire_has(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
        wire_send(&loop, &c, STR("hello"));
        wire_until(&loop, wire_has(&server, "\r\n\r\nhello"));
        both_done(&c, &server);
}

static void test_expect_without_server(void **state)
{
        struct wire_peer c;

        (void) state;
        listener.fd = fd_close(listener.fd);
        send_request(
                &c,
                "POST /p/x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
                "\r\n\r\n{");
        check_true(str_starts_with(buf_str(&c.in), STR("HTTP/1.1 502 ")));
        wire_done(&c);
}

static void test_early_response(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "POST /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
        wire_send(&loop, &server, STR("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nno"));
        /* The rest of the body is read over, and the connection is good for another request. */
        wire_send(&loop, &c, STR("defghij"));
        wire_done(&server);
        wire_forget(&c);
        wire_send(&loop, &c, STR(GET_X));
        wire_accept(&loop, &listener, &server);
        wire_send(&loop, &server, STR(OK "Content-Length: 2\r\n\r\nhi"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nhi"));
        both_done(&c, &server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_simple),
                T(test_target_is_passed_byte_for_byte),
                T(test_added_headers_win),
                T(test_no_connect),
                T(test_request_headers),
                T(test_host_kept_and_nothing_forwarded),
                T(test_endless_connection_header),
                T(test_sized_stays_sized),
                T(test_empty_body_stays_sized),
                T(test_chunked_stays_chunked),
                T(test_until_eof_becomes_chunked),
                T(test_answers_without_body),
                T(test_answer_headers),
                T(test_answer_headers_are_judged),
                T(test_a_judge_may_refuse_the_response),
                T(test_a_switch_is_judged_too),
                T(test_expect_is_answered_by_us),
                T(test_expect_without_server),
                T(test_early_response),
        };

        return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
