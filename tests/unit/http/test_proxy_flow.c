/* SPDX-License-Identifier: Apache-2.0 */

/* Streams, reuse, order, and everything that can go wrong on the way. */

#include "tests/lib/proxy_world.h"

/* --- flow --- */

static void test_big_answer_slow_client(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, GET_X);
        wire_send(&loop, &server, STR(OK "Content-Length: 67108864\r\n\r\n"));
        wire_until(&loop, wire_has(&c, "\r\n\r\n"));
        stream_big(&server, &c);
        both_done(&c, &server);
}

static void test_big_request_slow_server(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "PUT /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
        stream_big(&c, &server);
        wire_send(&loop, &server, STR(OK "Content-Length: 0\r\n\r\n"));
        wire_until(&loop, wire_has(&c, "\r\n\r\n"));
        both_done(&c, &server);
}

static void test_reuse(void **state)
{
        struct wire_peer c;

        (void) state;
        serve_back();
        wire_connect(&c, &front_addr);
        for (int i = 0; i < 10; i++) {
                wire_send(&loop, &c, STR("GET /p/hello HTTP/1.1\r\nHost: h\r\n\r\n"));
                wire_until(&loop, wire_has(&c, "\r\n\r\nhello"));
                wire_forget(&c);
        }
        check_u64_eq(http_client_stats(client).connects, 1);
        check_u64_eq(http_client_stats(client).reuses, 9);
        wire_done(&c);
}

/* Over TCP the connection stands a turn later, and the body waits for it. */
static void test_over_tcp(void **state)
{
        struct sock_addr unix_addr = listener.addr;
        struct wire_peer c;
        int fd = -EBADF;

        (void) state;
        serve_back();
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &listener.addr), 0);
        check_i64_eq(sock_listen(&listener.addr, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &listener.addr), 0);
        check_i64_eq(http_server_listen(back, fd), 0);
        wire_connect(&c, &front_addr);
        for (int i = 0; i < 5; i++) {
                wire_send(&loop, &c,
                          STR("POST /p/echo/x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                              "Content-Length: 4\r\n\r\n"));
                wire_until(&loop, wire_has(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
                wire_send(&loop, &c, STR("body"));
                wire_until(&loop, wire_has(&c, "\n\nbody"));
                wire_forget(&c);
        }
        check_u64_eq(http_client_stats(client).connects, 1);
        check_u64_eq(http_client_stats(client).reuses, 4);
        wire_done(&c);
        listener.addr = unix_addr;
}

/* The server closed its idle connection just now: the client does not notice. */
static void test_stale_connection(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, GET_X);
        wire_send(&loop, &server, STR(OK "Content-Length: 2\r\n\r\nhi"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nhi"));
        wire_forget(&c);
        wire_forget(&server);
        wire_send(&loop, &c, STR(GET_X));
        wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        wire_done(&server);
        wire_accept(&loop, &listener, &server);
        wire_send(&loop, &server, STR(OK "Content-Length: 2\r\n\r\nhi"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nhi"));
        check_u64_eq(http_client_stats(client).retries, 1);
        both_done(&c, &server);
}

static void test_pipelined_requests_keep_their_order(void **state)
{
        struct wire_peer c;
        struct str rest;

        (void) state;
        serve_back();
        wire_connect(&c, &front_addr);
        for (int i = 0; i < 50; i++) {
                char request[128];

                (void) snprintf(request, sizeof(request),
                                i % 2 ? "GET /p/echo/n%02d HTTP/1.1\r\nHost: h\r\n\r\n"
                                      : "POST /p/echo/n%02d HTTP/1.1\r\nHost: h\r\n"
                                        "Content-Length: 4\r\n\r\nbody",
                                i);
                wire_send(&loop, &c, str_from(request));
        }
        wire_until(&loop, wire_has(&c, "/echo/n49"));
        rest = buf_str(&c.in);
        for (int i = 0; i < 50; i++) {
                const char *at = memmem(rest.p, rest.n, "/echo/n", 7);

                check_true(at != NULL);
                rest = str_skip(rest, (size_t) (at - rest.p) + 7);
                check_i64_eq((rest.p[0] - '0') * 10 + rest.p[1] - '0', i);
        }
        check_u64_eq(count(&c, "HTTP/1.1 200 OK\r\n"), 50);
        wire_done(&c);
}

static void test_given_descriptor(void **state)
{
        struct wire_peer c;

        (void) state;
        serve_back();
        target_by_fd = true;
        send_request(&c, "GET /p/hello HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\nhello");
        check_u64_eq(http_client_stats(client).idle, 0);
        wire_done(&c);
}

/* --- failures --- */

static void expect_error(struct wire_peer *c, const char *status, const char *code)
{
        wire_until(&loop, wire_has(c, "\"}"));
        check_true(wire_has(c, status));
        check_true(wire_has(c, code));
        check_u64_eq(count(c, "X-Early: 1\r\n"), early_header);
        check_false(wire_has(c, "X-Late:"));
}

static void test_refused(void **state)
{
        struct wire_peer c;

        (void) state;
        listener.fd = fd_close(listener.fd);
        send_request(&c, GET_X, "\r\n\r\n");
        expect_error(&c, "HTTP/1.1 502 Bad Gateway", "\"BAD_GATEWAY\"");
        wire_done(&c);
}

static void test_no_response(void **state)
{
        struct wire_peer c, server;

        (void) state;
        config.head_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        pass(&c, &server, GET_X);
        expect_error(&c, "HTTP/1.1 504 Gateway Timeout", "\"GATEWAY_TIMEOUT\"");
        wire_until(&loop, wire_at_end(&server));
        both_done(&c, &server);
}

static void test_bad_responses(void **state)
{
        static const char *const answers[] = {
                "garbage\r\n\r\n",
                "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
                OK
                "X-Late: 1\r\n"
                "Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n"
                "Content-Length: 0\r\n\r\n",
                "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        };

        (void) state;
        early_header = true;
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                for (size_t piece = 3; piece < 1000; piece *= 30) {
                        struct wire_peer c, server;

                        check_case(answers[i]);
                        pass(&c, &server, GET_X);
                        wire_send_cut(&loop, &server, str_from(answers[i]), piece);
                        expect_error(&c, "HTTP/1.1 502 ", "\"BAD_GATEWAY\"");
                        check_u64_eq(count(&c, "HTTP/1.1 "), 1);
                        both_done(&c, &server);
                }
}

static void test_server_dies_before_the_response(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, GET_X);
        wire_done(&server);
        expect_error(&c, "HTTP/1.1 502 ", "\"BAD_GATEWAY\"");
        check_false(wire_at_end(&c)); /* the client's connection is as good as before */
        wire_done(&c);
}

static void test_server_dies_inside_the_response(void **state)
{
        static const char *const heads[] = {
                OK "Content-Length: 10\r\n\r\nabc",
                OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
                struct wire_peer c, server;

                pass(&c, &server, GET_X);
                wire_send(&loop, &server, str_from(heads[i]));
                wire_until(&loop, wire_has(&c, "abc"));
                wire_done(&server);
                wire_until(&loop, wire_at_end(&c));
                check_false(wire_has(&c, "\r\n0\r\n\r\n"));
                wire_done(&c);
        }
}

static void test_client_leaves(void **state)
{
        static const struct {
                const char *name, *request, *response;
        } cases[] = {
                { "waiting", GET_X, "" },
                { "in the response", GET_X, OK "Content-Length: 10\r\n\r\nabc" },
                { "in the body", "PUT /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
                  "" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wire_peer c, server;

                check_case(cases[i].name);
                pass(&c, &server, cases[i].request);
                wire_send(&loop, &server, str_from(cases[i].response));
                wire_settle(&loop);
                wire_done(&c);
                wire_until(&loop, wire_at_end(&server));
                wire_until(&loop, http_client_stats(client).connections == 0);
                wire_done(&server);
        }
}

static void expect_release(struct wire_peer *c, struct wire_peer *server)
{
        wire_settle(&loop);
        wire_done(c);
        wire_until(&loop, http_client_stats(client).connections == 0);
        wire_until(&loop, http_server_stats(front).connections == 0);
        wire_done(server);
}

static bool front_reads(void)
{
        struct list *n = list_first(&front->conns);

        return n && container_of(n, struct http_conn, node)->stream.reading;
}

/* Nothing is read from the client at that moment, and the server would never answer. */
static void test_client_leaves_while_held_back(void **state)
{
        static const char chunk[16 * 1024];
        struct wire_peer c, server;

        (void) state;
        check_case("more requests than are read ahead");
        pass(&c, &server, GET_X);
        for (int i = 0; i < 2000; i++)
                wire_send(&loop, &c, STR(GET_X));
        expect_release(&c, &server);

        check_case("more body than the server takes");
        pass(&c, &server, "PUT /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
        while (front_reads()) {
                wire_send(&loop, &c, str_of(chunk, sizeof(chunk)));
                wire_settle(&loop);
        }
        expect_release(&c, &server);
}

/* The server takes no more of the request and does not answer either. */
static void test_server_stops_listening(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "PUT /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
        (void) shutdown(server.fd, SHUT_RD);
        wire_send(&loop, &c, STR("abc"));
        wire_settle(&loop);
        wire_send(&loop, &c, STR("def"));
        expect_release(&c, &server);

        check_case("it may still answer");
        pass(&c, &server, "PUT /p/x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
        (void) shutdown(server.fd, SHUT_RD);
        wire_send(&loop, &c, STR("abc"));
        wire_settle(&loop);
        wire_send(&loop, &server, STR("HTTP/1.1 413 X\r\nContent-Length: 3\r\n\r\nbig"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nbig"));
        both_done(&c, &server);
}

/* Whoever looks something up before the request goes on may find the client gone. */
static void test_client_leaves_before(void **state)
{
        (void) state;
        for (int fd = 0; fd < 2; fd++)
                for (int how = 0; how < 2; how++) {
                        struct wire_peer c;

                        check_case(how ? "reset" : "FIN");
                        target_by_fd = fd;
                        hold = true;
                        wire_connect(&c, &front_addr);
                        wire_send(&loop, &c, STR(GET_X));
                        wire_until(&loop, held);
                        if (how)
                                (void) setsockopt(c.fd, SOL_SOCKET, SO_LINGER,
                                                  &(struct linger){ .l_onoff = 1 },
                                                  sizeof(struct linger));
                        wire_done(&c);
                        wire_settle(&loop);
                        proxy_held();
                        wire_until(&loop, http_server_stats(front).connections == 0);
                        wire_until(&loop, http_client_stats(client).connections == 0);
                }
}

/* A client that smuggles finds no second request behind the proxy. */
static void test_bad_body_cancels(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, "POST /p/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        wire_send(&loop, &c, STR("zz\r\nGET /p/admin HTTP/1.1\r\n\r\n"));
        wire_until(&loop, wire_at_end(&server));
        check_false(wire_has(&server, "admin"));
        wire_until(&loop, wire_has(&c, "HTTP/1.1 400 "));
        both_done(&c, &server);
}

static void test_server_stops_with_calls_running(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, GET_X);
        both_done(&c, &server);
        pass(&c, &server, GET_X);
        wire_done(&c); /* teardown has to deal with the rest */
        wire_done(&server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_big_answer_slow_client),
                T(test_big_request_slow_server),
                T(test_reuse),
                T(test_over_tcp),
                T(test_stale_connection),
                T(test_pipelined_requests_keep_their_order),
                T(test_given_descriptor),
                T(test_refused),
                T(test_no_response),
                T(test_bad_responses),
                T(test_server_dies_before_the_response),
                T(test_server_dies_inside_the_response),
                T(test_client_leaves),
                T(test_client_leaves_while_held_back),
                T(test_client_leaves_before),
                T(test_server_stops_listening),
                T(test_bad_body_cancels),
                T(test_server_stops_with_calls_running),
        };

        return cmocka_run_group_tests_name("proxy flow", tests, NULL, NULL);
}
