/* SPDX-License-Identifier: Apache-2.0 */

/* Calls: what they send, which connection carries them, how they end. */

#include "tests/lib/call_probe.h"

#define H HEAD_OK

/* --- requests --- */

static void test_request_bytes(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        x.call.target = STR("/a%2Fb/../c?x=%20&y");
        add_header(&x, STR("X-A"), STR("1"));
        start_and_accept(&x, &server);
        check_str_eq(buf_str(&server.in),
                     "GET /a%2Fb/../c?x=%20&y HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n");
        wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        wire_done(&server);
        probe_done(&x);
}

static void test_request_refused(void **state)
{
        static const struct {
                const char *name, *method, *target, *header, *value;
        } cases[] = {
                { "space in target", "GET", "/a b", "A", "b" },
                { "line in target", "GET", "/a\r\nX: y", "A", "b" },
                { "empty target", "GET", "", "A", "b" },
                { "bad method", "GE T", "/", "A", "b" },
                { "no method for us", "CONNECT", "/", "A", "b" },
                { "line in value", "GET", "/", "A", "b\r\nC: d" },
                { "bad name", "GET", "/", "A:", "b" },
                { "framing", "GET", "/", "content-length", "3" },
                { "framing", "GET", "/", "Transfer-Encoding", "chunked" },
                { "connection", "GET", "/", "Connection", "close" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct probe x;

                check_case(cases[i].name);
                probe_init(&x, str_from(cases[i].method));
                x.call.target = str_from(cases[i].target);
                add_header(&x, str_from(cases[i].header), str_from(cases[i].value));
                start(&x);
                end_with(&x, -EINVAL);
                probe_done(&x);
        }
}

static void test_sized_body(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("DELETE"));
        x.call.body = HTTP_CALL_SIZED;
        x.call.body_length = 5;
        start(&x);
        wire_accept(&loop, &listener, &server);
        wire_until(&loop, x.drains);
        check_true(http_call_writable(&x.call));
        http_call_write(&x.call, STR("he")); /* check-words: he */
        http_call_write(&x.call, STR("llo"));
        http_call_end_body(&x.call);
        wire_until(&loop, wire_has(&server, "hello"));
        check_true(wire_has(&server, "Content-Length: 5\r\n\r\nhello"));
        wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        check_u64_eq(http_client_stats(client).idle, 1);
        wire_done(&server);
        probe_done(&x);
}

/* The client sends a body in memory, on a new connection and on a pooled one. */
static void test_body_in_memory(void **state)
{
        static char large[600 * 1024];
        const struct str bodies[] = { STR("hello"), str_of(large, sizeof(large)), STR("") };
        struct wire_peer server = { .fd = -EBADF };

        (void) state;
        memset(large, 'x', sizeof(large));
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                struct probe x;
                size_t head;

                probe_init(&x, STR("POST"));
                http_call_set_body(&x.call, bodies[i]);
                start(&x);
                if (server.fd < 0)
                        wire_accept(&loop, &listener, &server);
                wire_until(&loop, wire_has(&server, "\r\n\r\n"));
                head = (size_t) ((const char *) memmem(buf_str(&server.in).p, server.in.n,
                                                       "\r\n\r\n", 4)
                                 - buf_str(&server.in).p)
                       + 4;
                wire_until(&loop,
                           wire_has(&server, "\r\n\r\n") && server.in.n == head + bodies[i].n);
                check_true(bodies[i].n == 0
                           || memcmp(buf_str(&server.in).p + head, bodies[i].p, bodies[i].n) == 0);
                check_i64_eq(x.drains, 0);
                wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
                end_with(&x, 0);
                check_u64_eq(http_client_stats(client).idle, 1);
                buf_reset(&server.in);
                probe_done(&x);
        }
        wire_done(&server);
}

static void test_chunked_body(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("POST"));
        x.call.body = HTTP_CALL_CHUNKED;
        start_and_accept(&x, &server);
        http_call_write(&x.call, STR("hello"));
        http_call_write(&x.call, STR(""));
        http_call_end_body(&x.call);
        wire_until(&loop, wire_has(&server, "0\r\n\r\n"));
        check_true(wire_has(&server, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
        wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        wire_done(&server);
        probe_done(&x);
}

static void test_body_lengths_are_held(void **state)
{
        (void) state;
        for (int more = 0; more < 2; more++) {
                struct wire_peer server;
                struct probe x;

                probe_init(&x, STR("PUT"));
                x.call.body = HTTP_CALL_SIZED;
                x.call.body_length = 3;
                start_and_accept(&x, &server);
                http_call_write(&x.call, more ? STR("hello") : STR("h"));
                if (!more)
                        http_call_end_body(&x.call);
                check_i64_eq(x.ends, 0);
                end_with(&x, -EMSGSIZE);
                wire_done(&server);
                probe_done(&x);
        }
}

/* A response that comes before the body is complete is a response; the connection is not used again. */
static void test_early_response(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("POST"));
        x.call.body = HTTP_CALL_SIZED;
        x.call.body_length = 1000;
        start_and_accept(&x, &server);
        http_call_write(&x.call, STR("some"));
        wire_send(&loop, &server, STR("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"));
        end_with(&x, 0);
        check_i64_eq(x.call.status, 413);
        check_u64_eq(http_client_stats(client).idle, 0);
        wire_done(&server);
        probe_done(&x);
}

/* The server answered and closed without reading: writing fails first, the response still counts. */
static void test_answer_behind_a_broken_pipe(void **state)
{
        static const char chunk[32 * 1024];
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("POST"));
        x.call.body = HTTP_CALL_SIZED;
        x.call.body_length = 64 * MiB;
        start_and_accept(&x, &server);
        wire_send(&loop, &server, STR("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"));
        http_call_write(&x.call, str_of(chunk, sizeof(chunk)));
        wire_done(&server);
        end_with(&x, 0);
        check_i64_eq(x.call.status, 413);
        check_str_eq(buf_str(&x.body), "no");
        probe_done(&x);
}

/* --- connections --- */

static void exchange(struct wire_peer *server)
{
        struct probe x;

        probe_init(&x, STR("GET"));
        start(&x);
        if (server->fd < 0)
                wire_accept(&loop, &listener, server);
        wire_until(&loop, wire_has(server, "\r\n\r\n"));
        wire_forget(server);
        wire_send(&loop, server, STR(H "Content-Length: 2\r\n\r\nhi"));
        end_with(&x, 0);
        probe_done(&x);
}

static void test_reuse(void **state)
{
        struct wire_peer server = { .fd = -EBADF };

        (void) state;
        for (int i = 0; i < 5; i++)
                exchange(&server);
        check_u64_eq(http_client_stats(client).connects, 1);
        check_u64_eq(http_client_stats(client).reuses, 4);
        check_u64_eq(http_client_stats(client).idle, 1);
        wire_done(&server);
}

static void test_pool_is_bounded_and_lifo(void **state)
{
        struct wire_peer servers[3];
        struct probe x[3];

        (void) state;
        config.idle_max = 2;
        remake_client();
        for (int i = 0; i < 3; i++) {
                probe_init(&x[i], STR("GET"));
                start_and_accept(&x[i], &servers[i]);
        }
        for (int i = 0; i < 3; i++) {
                wire_send(&loop, &servers[i], STR(H "Content-Length: 0\r\n\r\n"));
                end_with(&x[i], 0);
                probe_done(&x[i]);
        }
        check_u64_eq(http_client_stats(client).idle, 2);
        wire_until(&loop, wire_at_end(&servers[2]));
        wire_forget(&servers[1]);
        exchange(&servers[1]);
        for (int i = 0; i < 3; i++)
                wire_done(&servers[i]);
}

static void test_pool_is_bounded_over_all_endpoints(void **state)
{
        struct wire_peer server = { .fd = -EBADF }, other;
        struct wire_listener second;
        struct probe x;

        (void) state;
        config.idle_total = 1;
        remake_client();
        exchange(&server);
        wire_listen(&second);
        probe_init(&x, STR("GET"));
        http_call_start(client, &x.call, &second.addr);
        wire_accept(&loop, &second, &other);
        wire_until(&loop, wire_has(&other, "\r\n\r\n"));
        wire_send(&loop, &other, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        wire_until(&loop, wire_at_end(&server));
        check_u64_eq(http_client_stats(client).idle, 1);
        wire_done(&server);
        wire_done(&other);
        wire_unlisten(&second);
        probe_done(&x);
}

static void test_idle_timeout(void **state)
{
        struct wire_peer server = { .fd = -EBADF };

        (void) state;
        config.idle_timeout = 5 * USEC_PER_MSEC;
        remake_client();
        exchange(&server);
        wire_until(&loop, wire_at_end(&server));
        check_u64_eq(http_client_stats(client).timeouts, 0);
        wire_done(&server);
}

static void test_start_from_end(void **state)
{
        struct wire_peer server;
        struct probe x, y;

        (void) state;
        probe_init(&x, STR("GET"));
        probe_init(&y, STR("GET"));
        x.next = &y;
        start_and_accept(&x, &server);
        wire_forget(&server);
        wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
        wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&y, 0);
        check_u64_eq(http_client_stats(client).connects, 1);
        wire_done(&server);
        probe_done(&x);
        probe_done(&y);
}

/* --- once more --- */

/* The server closes the idle connection in the moment in which the next request is sent. */
static void stale(const char *method, enum http_call_body body, bool read_first, int result)
{
        struct wire_peer server = { .fd = -EBADF }, second;
        uint64_t before = http_client_stats(client).retries;
        struct probe x;

        exchange(&server);
        probe_init(&x, str_from(method));
        x.call.body = body;
        x.call.body_length = 3;
        start(&x);
        if (body != HTTP_CALL_NO_BODY)
                http_call_write(&x.call, STR("abc"));
        if (read_first)
                wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        wire_done(&server);
        if (result == 0) {
                wire_accept(&loop, &listener, &second);
                wire_until(&loop, wire_has(&second, "\r\n\r\n"));
                wire_send(&loop, &second, STR(H "Content-Length: 2\r\n\r\nhi"));
        }
        end_with(&x, result);
        check_u64_eq(http_client_stats(client).retries - before, result == 0);
        probe_done(&x);
        if (result == 0)
                wire_done(&second);
        wire_settle(&loop);
}

/* A body in memory can be sent a second time. */
static void test_retry_with_a_body_in_memory(void **state)
{
        struct wire_peer server = { .fd = -EBADF }, second;
        struct probe x;

        (void) state;
        exchange(&server);
        probe_init(&x, STR("PUT"));
        http_call_set_body(&x.call, STR("hello"));
        start(&x);
        wire_until(&loop, wire_has(&server, "hello"));
        wire_done(&server);
        wire_accept(&loop, &listener, &second);
        wire_until(&loop, wire_has(&second, "Content-Length: 5\r\n\r\nhello"));
        wire_send(&loop, &second, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        check_u64_eq(http_client_stats(client).retries, 1);
        probe_done(&x);
        wire_done(&second);
}

static void test_retry_on_stale_connection(void **state)
{
        (void) state;
        check_case("not even written");
        stale("GET", HTTP_CALL_NO_BODY, false, 0);
        check_case("read and dropped");
        stale("GET", HTTP_CALL_NO_BODY, true, 0);
        check_case("POST, nothing written");
        stale("POST", HTTP_CALL_NO_BODY, false, 0);
        check_case("POST, may have been done");
        stale("POST", HTTP_CALL_NO_BODY, true, -ECONNRESET);
        check_case("body begun");
        stale("PUT", HTTP_CALL_SIZED, false, -ECONNRESET);
}

/* "408 Request Timeout" of a server that grew tired of an idle connection is no response to the
 * request that was just given to it. */
static void test_answer_before_the_request(void **state)
{
        static char late[] = "HTTP/1.1 408 Too Late\r\nContent-Length: 0\r\n\r\n";
        struct wire_peer server = { .fd = -EBADF }, second;
        struct net_stream *s;
        struct probe x;

        (void) state;
        exchange(&server);
        probe_init(&x, STR("POST"));
        start(&x);
        s = &x.call._conn->stream;
        s->bytes_in += sizeof(late) - 1;
        s->ops->data(s, late, sizeof(late) - 1);
        wire_accept(&loop, &listener, &second);
        wire_until(&loop, wire_has(&second, "\r\n\r\n"));
        wire_send(&loop, &second, STR(H "Content-Length: 0\r\n\r\n"));
        end_with(&x, 0);
        check_i64_eq(x.call.status, 200);
        wire_done(&server);
        wire_done(&second);
        probe_done(&x);
}

static void test_no_retry_on_fresh_connection(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        start_and_accept(&x, &server);
        wire_done(&server);
        end_with(&x, -ECONNRESET);
        check_u64_eq(http_client_stats(client).connects, 1);
        probe_done(&x);
}

static void test_no_retry_after_a_byte(void **state)
{
        struct wire_peer server = { .fd = -EBADF };
        struct probe x;

        (void) state;
        exchange(&server);
        probe_init(&x, STR("GET"));
        start(&x);
        wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        wire_send(&loop, &server, STR("H"));
        wire_done(&server);
        end_with(&x, -ECONNRESET);
        probe_done(&x);
}

/* --- failures --- */

static void test_connect_refused(void **state)
{
        struct probe x;

        (void) state;
        listener.fd = fd_close(listener.fd);
        probe_init(&x, STR("GET"));
        start(&x);
        end_with(&x, -ECONNREFUSED);
        probe_done(&x);
}

static void test_connect_refused_tcp(void **state)
{
        struct sock_addr addr;
        struct probe x;
        int fd;

        (void) state;
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &addr), 0);
        (void) fd_close(fd);
        probe_init(&x, STR("GET"));
        http_call_start(client, &x.call, &addr);
        check_i64_eq(x.ends, 0);
        end_with(&x, -ECONNREFUSED);
        probe_done(&x);
}

static void test_timeouts(void **state)
{
        static const struct {
                const char *name, *bytes;
        } cases[] = {
                { "no byte", "" },
                { "half a head", H },
                { "half a body", H "Content-Length: 5\r\n\r\nhel" },
        };

        (void) state;
        config.head_timeout = config.body_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wire_peer server;
                struct probe x;

                check_case(cases[i].name);
                probe_init(&x, STR("GET"));
                start_and_accept(&x, &server);
                wire_send(&loop, &server, str_from(cases[i].bytes));
                end_with(&x, -ETIMEDOUT);
                wire_done(&server);
                probe_done(&x);
        }
}

static void test_cancel(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        check_case("at once");
        probe_init(&x, STR("GET"));
        start(&x);
        http_call_cancel(&x.call);
        http_call_cancel(&x.call);
        check_i64_eq(x.ends, 0);
        end_with(&x, -ECANCELED);
        wire_settle(&loop);
        probe_done(&x);
        wire_accept(&loop, &listener, &server);
        wire_done(&server);

        check_case("inside the body");
        probe_init(&x, STR("GET"));
        x.cancel_in_body = true;
        start_and_accept(&x, &server);
        wire_send(&loop, &server,
                  STR(H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"));
        end_with(&x, -ECANCELED);
        check_str_eq(buf_str(&x.body), "a");
        wire_until(&loop, wire_at_end(&server));
        wire_done(&server);
        probe_done(&x);
}

static void test_free_ends_calls(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        start_and_accept(&x, &server);
        remake_client();
        check_i64_eq(x.ends, 0);
        end_with(&x, -ECANCELED);
        wire_done(&server);
        probe_done(&x);
}

/* --- the rest --- */

static void test_pause(void **state)
{
        static const char chunk[64 * 1024];
        struct wire_peer server;
        struct probe x;
        size_t sent = 0;

        (void) state;
        probe_init(&x, STR("GET"));
        x.pause_in_body = true;
        start_and_accept(&x, &server);
        wire_send(&loop, &server, STR(H "Content-Length: 16777216\r\n\r\n"));
        /* The kernel's buffers fill, then nothing goes any more. */
        for (int idle = 0; idle < 50;) {
                ssize_t n = send(server.fd, chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL);

                sent += n > 0 ? (size_t) n : 0;
                idle = n > 0 ? 0 : idle + 1;
                net_loop_run_once(&loop, /* wait= */ false);
        }
        check_true(sent < 2 * MiB);
        check_true(x.body.n <= 2 * NET_READ_SIZE);
        x.pause_in_body = false;
        http_call_set_paused(&x.call, false);
        while (sent < 16 * MiB) {
                size_t n = MIN_OF(sizeof(chunk), 16 * MiB - sent);

                wire_send(&loop, &server, str_of(chunk, n));
                sent += n;
        }
        end_with(&x, 0);
        check_u64_eq(x.body.n, 16 * MiB);
        wire_done(&server);
        probe_done(&x);
}

static void test_given_descriptor(void **state)
{
        struct wire_peer server;
        struct probe x;
        int fds[2];

        (void) state;
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        wire_take(&server, fds[1]);
        probe_init(&x, STR("GET"));
        http_call_start_fd(client, &x.call, fds[0]);
        wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        check_true(wire_has(&server, "Connection: close\r\n"));
        wire_send(&loop, &server, STR(H "Content-Length: 2\r\n\r\nhi"));
        end_with(&x, 0);
        wire_until(&loop, wire_at_end(&server));
        wire_done(&server);
        probe_done(&x);
}

static void test_upgrade(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        x.call.upgrade = STR("echo");
        start_and_accept(&x, &server);
        check_true(wire_has(&server, "Connection: Upgrade\r\nUpgrade: echo\r\n"));
        wire_send(&loop, &server,
                  STR("HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst"));
        end_with(&x, 0);
        check_i64_eq(x.call.status, 101);
        wire_until(&loop, x.tunneled.n == 5);
        stream_queue(x.tunnel.stream, STR("up"));
        wire_forget(&server);
        wire_until(&loop, wire_has(&server, "up"));
        (void) shutdown(server.fd, SHUT_WR);
        wire_until(&loop, x.tunnel_eof);
        http_tunnel_close(&x.tunnel);
        check_false(x.tunnel_closed);
        wire_until(&loop, x.tunnel_closed);
        wire_done(&server);
        probe_done(&x);
}

/* The server reads no more but keeps the connection. Whoever writes the body must not wait for a
 * drain that never comes, and the time for the response runs. */
static void test_server_reads_no_more(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        config.head_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        probe_init(&x, STR("PUT"));
        x.call.body = HTTP_CALL_SIZED;
        x.call.body_length = 9;
        start_and_accept(&x, &server);
        wire_until(&loop, x.drains == 1);
        (void) shutdown(server.fd, SHUT_RD);
        http_call_write(&x.call, STR("abc"));
        wire_until(&loop, x.drains == 2);
        check_true(http_call_writable(&x.call));
        http_call_write(&x.call, STR("defghi"));
        http_call_end_body(&x.call);
        end_with(&x, -ETIMEDOUT);
        wire_done(&server);
        probe_done(&x);
}

/* The same with a body in memory: the client stops sending it. */
static void test_server_reads_no_more_of_a_body_in_memory(void **state)
{
        static char large[4 * MiB];
        struct wire_peer server;
        struct probe x;

        (void) state;
        config.head_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        probe_init(&x, STR("PUT"));
        http_call_set_body(&x.call, str_of(large, sizeof(large)));
        start_and_accept(&x, &server);
        (void) shutdown(server.fd, SHUT_RD);
        end_with(&x, -ETIMEDOUT);
        wire_done(&server);
        probe_done(&x);
}

/* The tunnel would have to write behind what is left of the body. */
static void test_upgrade_before_the_body_was_read(void **state)
{
        static char large[32 * MiB];
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("POST"));
        x.call.upgrade = STR("echo");
        http_call_set_body(&x.call, str_of(large, sizeof(large)));
        start_and_accept(&x, &server);
        wire_settle(&loop);
        wire_send(&loop, &server,
                  STR("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"));
        end_with(&x, -EBADMSG);
        wire_done(&server);
        probe_done(&x);
}

/* A tunnel may want no input from its first byte on. */
static void test_upgrade_paused(void **state)
{
        struct wire_peer server;
        struct probe x;

        (void) state;
        probe_init(&x, STR("GET"));
        x.call.upgrade = STR("echo");
        x.pause_tunnel = true;
        start_and_accept(&x, &server);
        wire_send(&loop, &server,
                  STR("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"));
        end_with(&x, 0);
        wire_send(&loop, &server, STR("later"));
        wire_settle(&loop);
        check_u64_eq(x.tunneled.n, 0);
        http_tunnel_resume(&x.tunnel);
        wire_until(&loop, x.tunneled.n == 5);
        http_tunnel_close(&x.tunnel);
        wire_until(&loop, x.tunnel_closed);
        probe_done(&x);
        wire_done(&server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_request_bytes),
                T(test_request_refused),
                T(test_sized_body),
                T(test_body_in_memory),
                T(test_chunked_body),
                T(test_body_lengths_are_held),
                T(test_early_response),
                T(test_answer_behind_a_broken_pipe),
                T(test_reuse),
                T(test_pool_is_bounded_and_lifo),
                T(test_pool_is_bounded_over_all_endpoints),
                T(test_idle_timeout),
                T(test_start_from_end),
                T(test_retry_with_a_body_in_memory),
                T(test_retry_on_stale_connection),
                T(test_answer_before_the_request),
                T(test_no_retry_on_fresh_connection),
                T(test_no_retry_after_a_byte),
                T(test_connect_refused),
                T(test_connect_refused_tcp),
                T(test_timeouts),
                T(test_cancel),
                T(test_free_ends_calls),
                T(test_pause),
                T(test_given_descriptor),
                T(test_upgrade),
                T(test_upgrade_before_the_body_was_read),
                T(test_upgrade_paused),
                T(test_server_reads_no_more),
                T(test_server_reads_no_more_of_a_body_in_memory),
        };

        return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
