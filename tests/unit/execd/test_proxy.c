/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/agent_net.h"

static struct agent_net net;
#define LOOP (&net.w.loop)

static int setup(void **state)
{
        (void) state;
        check_case("");
        agent_net_open(&net);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        agent_net_close(&net);
        return 0;
}

/* Sends "METHOD /proxy/PORT<rest>" and takes it at the server. */
static void pass(struct wire_peer *c, struct wire_listener *l, struct wire_peer *server,
                 const char *method, const char *rest)
{
        char text[1024];

        (void) snprintf(text, sizeof(text), "%s /proxy/%u%s", method, port_of(&l->addr), rest);
        wire_connect(c, &net.addr);
        wire_send(LOOP, c, str_from(text));
        wire_accept(LOOP, l, server);
        wire_until(LOOP, wire_has(server, "\r\n\r\n"));
}

static void done(struct wire_peer *c, struct wire_peer *server)
{
        wire_done(c);
        wire_done(server);
        wire_settle(LOOP);
}

static void test_request_and_response(void **state)
{
        static const struct {
                const char *method, *rest, *line;
        } cases[] = {
                { "GET", "", "GET / HTTP/1.1\r\n" },
                { "GET", "/", "GET / HTTP/1.1\r\n" },
                { "GET", "?a=1", "GET /?a=1 HTTP/1.1\r\n" },
                { "GET", "/a%2Fb//../c?x=%20&y", "GET /a%2Fb//../c?x=%20&y HTTP/1.1\r\n" },
                { "DELETE", "/x", "DELETE /x HTTP/1.1\r\n" },
                { "OPTIONS", "/x", "OPTIONS /x HTTP/1.1\r\n" },
                { "PROPFIND", "/x", "PROPFIND /x HTTP/1.1\r\n" },
        };
        struct wire_listener l;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wire_peer c, server;
                char rest[256];

                check_case(cases[i].line);
                (void) snprintf(rest, sizeof(rest), "%s HTTP/1.1\r\nHost: h\r\n\r\n",
                                cases[i].rest);
                pass(&c, &l, &server, cases[i].method, rest);
                check_true(str_starts_with(buf_str(&server.in), str_from(cases[i].line)));
                wire_send(LOOP, &server,
                          STR("HTTP/1.1 201 X\r\nX-A: b\r\nConnection: close\r\n"
                              "Content-Length: 5\r\n\r\nhello"));
                wire_until(LOOP, wire_has(&c, "\r\n\r\nhello"));
                check_true(wire_has(&c, "HTTP/1.1 201 Created\r\n"));
                check_true(wire_has(&c, "X-A: b\r\n"));
                done(&c, &server);
        }
        tcp_unlisten(&l);
}

static void test_headers(void **state)
{
        struct wire_peer c, server;
        struct wire_listener l;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        pass(&c, &l, &server, "GET",
             "/ HTTP/1.1\r\nHost: box.example.com\r\nX-Forwarded-For: 1.2.3.4\r\n"
             "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
             "X-EXECD-ACCESS-TOKEN: t0ken\r\nopen-sandbox-api-key: k3y\r\n"
             "Authorization: Bearer x\r\nCookie: a=b\r\n\r\n");
        check_true(wire_has(&server, "Host: box.example.com\r\n"));
        check_true(wire_has(&server, "X-Forwarded-For: 1.2.3.4, 127.0.0.1\r\n"));
        check_true(wire_has(&server, "X-Forwarded-Proto: http\r\n"));
        check_true(wire_has(&server, "Authorization: Bearer x\r\nCookie: a=b\r\n"));
        check_false(wire_has(&server, "t0ken"));
        check_false(wire_has(&server, "k3y"));
        check_false(wire_has(&server, "evil"));
        done(&c, &server);
        tcp_unlisten(&l);
}

/* What hutchd reports about the client is trusted and reaches the server. */
static void test_headers_of_hutchd(void **state)
{
        struct wire_peer c, server;
        struct wire_listener l;
        char text[512];
        int pair[2];

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        http_server_serve(net.w.agent->server, pair[0]);
        wire_take(&c, pair[1]);
        (void) snprintf(text, sizeof(text),
                        "GET /proxy/%u/ HTTP/1.1\r\nHost: box.example.com\r\n"
                        "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n"
                        "X-Forwarded-Host: box.example.com\r\nX-EXECD-ACCESS-TOKEN: t0ken\r\n\r\n",
                        port_of(&l.addr));
        wire_send(LOOP, &c, str_from(text));
        wire_accept(LOOP, &l, &server);
        wire_until(LOOP, wire_has(&server, "\r\n\r\n"));
        check_true(wire_has(&server, "X-Forwarded-For: 1.2.3.4\r\n"));
        check_true(wire_has(&server, "X-Forwarded-Proto: https\r\n"));
        check_true(wire_has(&server, "X-Forwarded-Host: box.example.com\r\n"));
        check_false(wire_has(&server, "t0ken"));
        done(&c, &server);
        tcp_unlisten(&l);
}

static void test_the_other_loopback(void **state)
{
        static const char *const requests[] = {
                "/x HTTP/1.1\r\nHost: h\r\n\r\n",
                "/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
                "/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                "/x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        };
        struct wire_listener l;

        (void) state;
        if (!tcp_listen("[::1]:0", &l))
                skip_because("no IPv6 here");
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                struct wire_peer c, server;

                check_case(requests[i]);
                pass(&c, &l, &server, i == 0 ? "GET" : i == 3 ? "GET" : "POST", requests[i]);
                if (strstr(requests[i], "hello"))
                        wire_until(LOOP, wire_has(&server, "hello"));
                if (strstr(requests[i], "websocket"))
                        check_true(wire_has(&server, "Upgrade: websocket\r\n"));
                done(&c, &server);
        }
        tcp_unlisten(&l);
}

static void test_web_socket(void **state)
{
        struct wire_peer c, server;
        struct wire_listener l;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        pass(&c, &l, &server, "GET",
             "/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n\r\n");
        wire_send(LOOP, &server,
                  STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\n\r\nfrom the server"));
        wire_until(LOOP, wire_has(&c, "from the server"));
        wire_send(LOOP, &c, STR("from the client"));
        wire_until(LOOP, wire_has(&server, "from the client"));
        done(&c, &server);
        tcp_unlisten(&l);
}

static void test_refusals(void **state)
{
        char own[64], closed[64];
        struct wire_listener l;
        const struct {
                const char *target;
                int status;
                const char *body;
        } cases[] = {
                { "/proxy", 400, "port is required\n" },
                { "/proxy/", 400, "port is required\n" },
                { "/proxy//x", 400, "port is required\n" },
                { "/proxy/http", 400, "not a port: give a number from 1 to 65535\n" },
                { "/proxy/0/x", 400, "not a port: give a number from 1 to 65535\n" },
                { "/proxy/65536", 400, "not a port: give a number from 1 to 65535\n" },
                { "/proxy/80@evil.com/", 400, "not a port: give a number from 1 to 65535\n" },
                { own, 403, "this port is the agent's own; call it directly\n" },
                { closed, 502, "Bad Gateway\n" },
        };

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        (void) snprintf(own, sizeof(own), "/proxy/%u/ping", port_of(&net.addr));
        (void) snprintf(closed, sizeof(closed), "/proxy/%u/", port_of(&l.addr));
        tcp_unlisten(&l);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].target);
                r = call(&net.w, "POST", cases[i].target, "body");
                check_i64_eq(r.status, cases[i].status);
                check_str_eq(r.body, cases[i].body);
                check_str_eq(reply_header(&net.w, "Content-Type"), "text/plain; charset=utf-8");
        }
}

static void test_server_that_closes(void **state)
{
        struct wire_peer c, server;
        struct wire_listener l;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        pass(&c, &l, &server, "GET", "/ HTTP/1.1\r\nHost: h\r\n\r\n");
        wire_done(&server);
        wire_until(LOOP, wire_has(&c, "\r\n\r\nBad Gateway\n"));
        check_true(wire_has(&c, "HTTP/1.1 502 "));
        wire_done(&c);
        check_case("still there when the agent ends");
        pass(&c, &l, &server, "GET", "/ HTTP/1.1\r\nHost: h\r\n\r\n");
        wire_done(&c);
        wire_done(&server);
        tcp_unlisten(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_request_and_response), T(test_headers),    T(test_headers_of_hutchd),
                T(test_the_other_loopback),   T(test_web_socket), T(test_refusals),
                T(test_server_that_closes),
        };

        return cmocka_run_group_tests_name("proxy of the agent", tests, NULL, NULL);
}
