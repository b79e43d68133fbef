/* SPDX-License-Identifier: Apache-2.0 */

/* What the client makes of responses, honest and hostile. */

#include "tests/lib/call_probe.h"

struct response_case {
        const char *name;
        const char *method;
        const char *bytes;
        int result;
        int status;
        const char *body;
        bool kept; /* the connection */
        bool fin;  /* the server closes behind */
};

static char huge_head[70 * 1024];

#define H HEAD_OK

static const struct response_case answers[] = {
        { "sized", "GET", H "Content-Length: 5\r\n\r\nhello", 0, 200, "hello", .kept = true },
        { "empty", "GET", H "Content-Length: 0\r\n\r\n", 0, 200, "", .kept = true },
        { "chunked", "GET",
          H "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 0, 200,
          "hello", .kept = true },
        { "trailers", "GET", H "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n", 0,
          200, "hi", .kept = true },
        { "until the end", "GET", H "\r\nhello", 0, 200, "hello", .fin = true },
        { "HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 0, 200, "hi" },
        { "HTTP/1.0 kept", "GET",
          "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi", 0, 200, "hi",
          .kept = true },
        { "close", "GET", H "Connection: close\r\nContent-Length: 2\r\n\r\nhi", 0, 200, "hi" },
        { "HEAD with a length", "HEAD", H "Content-Length: 500\r\n\r\n", 0, 200, "", .kept = true },
        { "HEAD chunked", "HEAD", H "Transfer-Encoding: chunked\r\n\r\n", 0, 200, "",
          .kept = true },
        { "HEAD without", "HEAD", H "\r\n", 0, 200, "", .kept = true },
        { "204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 0, 204, "", .kept = true },
        { "204 that lies", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", 0, 204,
          "" },
        { "304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 0,
          304, "", .kept = true },
        { "interim", "GET",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" H
          "Content-Length: 2\r\n\r\nhi",
          0, 200, "hi", .kept = true },
        { "no reason phrase", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 0, 200, "",
          .kept = true },
        { "more than the response", "GET", H "Content-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n", 0,
          200, "hi" },
        { "two responses", "GET", H "Content-Length: 0\r\n\r\n" H "Content-Length: 0\r\n\r\n", 0,
          200, "" },

        { "garbage", "GET", "\x16\x03\x01 no http\r\n\r\n", -EBADMSG },
        { "a request", "GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", -EBADMSG },
        { "both lengths", "GET",
          H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EBADMSG },
        { "both lengths, other order", "GET",
          H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", -EBADMSG },
        { "two lengths", "GET", H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", -EBADMSG },
        { "the same length twice", "GET", H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
          -EBADMSG },
        { "list of lengths", "GET", H "Content-Length: 5, 5\r\n\r\nhello", -EBADMSG },
        { "signed length", "GET", H "Content-Length: +5\r\n\r\nhello", -EBADMSG },
        { "empty length", "GET", H "Content-Length: \r\n\r\n", -EBADMSG },
        { "length beyond 64 bits", "GET", H "Content-Length: 99999999999999999999\r\n\r\n",
          -EBADMSG },
        { "unknown coding", "GET", H "Transfer-Encoding: gzip\r\n\r\nx", -EBADMSG, .fin = true },
        { "two codings", "GET", H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", -EBADMSG },
        { "coding twice", "GET",
          H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EBADMSG },
        { "chunked in HTTP/1.0", "GET",
          "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EBADMSG },
        { "bare LF", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", -EBADMSG },
        { "folded line", "GET", H "A: b\r\n c\r\nContent-Length: 0\r\n\r\n", -EBADMSG },
        { "control character", "GET", H "A: b\001c\r\nContent-Length: 0\r\n\r\n", -EBADMSG },
        { "space before colon", "GET", H "Content-Length : 5\r\n\r\nhello", -EBADMSG },
        { "bad chunk size", "GET", H "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", -EBADMSG },
        { "bad chunk end", "GET", H "Transfer-Encoding: chunked\r\n\r\n2\r\nhiXX0\r\n\r\n",
          -EBADMSG },
        { "HTTP/2", "GET", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", -EBADMSG },
        { "status 99", "GET", "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", -EBADMSG },
        { "status 999", "GET", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", -EBADMSG },
        { "101 no one asked for", "GET",
          "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", -EBADMSG },
        { "interim with a body", "GET", "HTTP/1.1 100 C\r\nContent-Length: 2\r\n\r\nhi", -EBADMSG },
        { "huge head", "GET", huge_head, -E2BIG },
        { "short", "GET", H "Content-Length: 5\r\n\r\nhel", -ECONNRESET, .fin = true },
        { "short chunk", "GET", H "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", -ECONNRESET,
          .fin = true },
        { "no last chunk", "GET", H "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", -ECONNRESET,
          .fin = true },
        { "half a head", "GET", "HTTP/1.1 200 OK\r\nContent-", -ECONNRESET, .fin = true },
        { "nothing", "GET", "", -ECONNRESET, .fin = true },
};

static void check_response(const struct response_case *c, size_t piece)
{
        struct wire_peer server;
        struct probe x;

        check_case(c->name);
        probe_init(&x, str_from(c->method));
        start_and_accept(&x, &server);
        wire_send_cut(&loop, &server, str_from(c->bytes), piece);
        if (c->fin)
                (void) shutdown(server.fd, SHUT_WR);
        end_with(&x, c->result);
        if (c->result == 0) {
                check_i64_eq(x.heads, 1);
                check_i64_eq(x.call.status, c->status);
                check_str_eq(buf_str(&x.body), c->body);
        }
        wire_settle(&loop);
        check_u64_eq(http_client_stats(client).idle, c->kept);
        wire_done(&server);
        wire_until(&loop, http_client_stats(client).connections == 0);
        probe_done(&x);
}

static void test_responses(void **state)
{
        int n = snprintf(huge_head, sizeof(huge_head), H);

        (void) state;
        while ((size_t) n < sizeof(huge_head) - 100)
                n += snprintf(huge_head + n, sizeof(huge_head) - (size_t) n, "A: %050d\r\n", 1);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                check_response(&answers[i], 64 * KiB);
}

static void test_answers_in_pieces(void **state)
{
        (void) state;
        for (size_t piece = 1; piece <= 7; piece += 3)
                for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                        if (answers[i].bytes != huge_head)
                                check_response(&answers[i], piece);
}

static void test_too_many_headers(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        start_and_accept(&x, &server);
        wire_send(&loop, &server, STR(H));
        for (int i = 0; i < 200; i++)
                wire_send(&loop, &server, STR("A: b\r\n"));
        wire_send(&loop, &server, STR("\r\n"));
        end_with(&x, -E2BIG);
        wire_done(&server);
        probe_done(&x);
}

static void test_endless_interim(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        start_and_accept(&x, &server);
        for (int i = 0; i < 100 && !x.ends; i++)
                wire_send_cut(&loop, &server, STR("HTTP/1.1 102 Processing\r\n\r\n"), 1000);
        end_with(&x, -EBADMSG);
        wire_done(&server);
        probe_done(&x);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_responses),
                T(test_answers_in_pieces),
                T(test_too_many_headers),
                T(test_endless_interim),
        };

        return cmocka_run_group_tests_name("client answers", tests, NULL, NULL);
}
