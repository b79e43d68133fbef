/* SPDX-License-Identifier: Apache-2.0 */

/* Protocol switches through the proxy. */

#include "tests/lib/proxy_world.h"

#define UPGRADE                                                                \
        "GET /p/ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n" \
        "Upgrade: websocket\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define SWITCHED                                                     \
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n" \
        "Connection: Upgrade\r\nSec-WebSocket-Accept: xyz\r\n\r\n"

static void open_tunnel(struct wire_peer *c, struct wire_peer *server)
{
        pass(c, server, UPGRADE);
        check_true(wire_has(server, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
        check_true(wire_has(server, "Sec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n"));
        wire_send(&loop, server, STR(SWITCHED));
        wire_until(&loop, wire_has(c, "\r\n\r\n"));
        check_true(str_starts_with(buf_str(&c->in), STR("HTTP/1.1 101 Switching Protocols\r\n")));
        check_true(wire_has(c, "Sec-WebSocket-Accept: xyz\r\n"));
        check_true(wire_has(c, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
        check_false(wire_has(c, "Content-Length"));
        check_false(wire_has(c, "Transfer-Encoding"));
        wire_forget(c);
        wire_forget(server);
}

static void test_upgrade(void **state)
{
        struct wire_peer c, server;

        (void) state;
        open_tunnel(&c, &server);
        for (int i = 0; i < 5; i++) {
                wire_send(&loop, &c, STR("ping\0"));
                wire_until(&loop, server.in.n == 5 || wire_has(&server, "ping"));
                wire_send(&loop, &server, buf_str(&server.in));
                wire_until(&loop, wire_has(&c, "ping"));
                wire_forget(&c);
                wire_forget(&server);
        }
        check_case("half-close");
        (void) shutdown(c.fd, SHUT_WR);
        wire_until(&loop, wire_at_end(&server));
        wire_send(&loop, &server, STR("bye"));
        wire_until(&loop, wire_has(&c, "bye"));
        (void) shutdown(server.fd, SHUT_WR);
        wire_until(&loop, wire_at_end(&c));
        wire_until(&loop, http_client_stats(client).connections == 0);
        check_u64_eq(http_server_stats(front).connections, 0);
        both_done(&c, &server);
}

/* Bytes that follow the heads at once are part of the new protocol, in both directions. */
static void test_upgrade_with_bytes_behind(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, UPGRADE "early");
        wire_send(&loop, &server, STR(SWITCHED "hello"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nhello"));
        wire_until(&loop, wire_has(&server, "early"));
        both_done(&c, &server);
}

static void test_upgrade_refused(void **state)
{
        struct wire_peer c, server;

        (void) state;
        pass(&c, &server, UPGRADE);
        wire_send(&loop, &server, STR("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"));
        wire_until(&loop, wire_has(&c, "\r\n\r\nno"));
        check_true(wire_has(&c, "HTTP/1.1 403 Forbidden\r\n"));
        check_false(wire_at_end(&c));
        both_done(&c, &server);
}

/* HTTP inside the tunnel would be a way round the proxy. */
static void test_no_way_round(void **state)
{
        static const char *const protocols[] = { "h2c", "websocket, H2C", "HTTP/2.0", "TLS/1.0" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
                struct wire_peer c, server;
                char request[256];

                check_case(protocols[i]);
                (void) snprintf(request, sizeof(request),
                                "GET /p/x HTTP/1.1\r\nHost: h\r\nUpgrade: %s\r\n"
                                "Connection: Upgrade, HTTP2-Settings\r\n"
                                "HTTP2-Settings: AAMAAABk\r\n\r\n",
                                protocols[i]);
                pass(&c, &server, request);
                check_false(wire_has(&server, "Upgrade"));
                check_false(wire_has(&server, "HTTP2-Settings"));
                both_done(&c, &server);
        }
}

static void test_tunnel_is_bounded(void **state)
{
        struct wire_peer c, server;

        (void) state;
        open_tunnel(&c, &server);
        check_case("down");
        stream_big(&server, &c);
        check_case("up");
        stream_big(&c, &server);
        both_done(&c, &server);
}

static void test_tunnel_ends(void **state)
{
        (void) state;
        for (int who = 0; who < 2; who++) {
                struct wire_peer c, server;

                open_tunnel(&c, &server);
                wire_done(who ? &c : &server);
                wire_until(&loop, wire_at_end(who ? &server : &c));
                wire_done(who ? &server : &c);
                wire_until(&loop, http_client_stats(client).connections == 0);
                wire_until(&loop, http_server_stats(front).connections == 0);
        }
}

static void test_tunnel_idle_limit(void **state)
{
        struct wire_peer c, server;

        (void) state;
        config.tunnel_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        open_tunnel(&c, &server);
        wire_send(&loop, &c, STR("x"));
        wire_until(&loop, wire_at_end(&c));
        wire_until(&loop, wire_at_end(&server));
        both_done(&c, &server);
}

/* A server behind that does not care about the FIN of a client must not keep it all for ever. */
static void test_half_closed_tunnel_limit(void **state)
{
        struct wire_peer c, server;

        (void) state;
        config.half_closed_timeout = 20 * USEC_PER_MSEC;
        remake_client();
        for (int who = 0; who < 2; who++) {
                open_tunnel(&c, &server);
                wire_done(who ? &c : &server);
                wire_until(&loop, http_client_stats(client).connections == 0);
                wire_until(&loop, http_server_stats(front).connections == 0);
                wire_done(who ? &server : &c);
        }
}

/* What is on its way to the client when the call's side goes still arrives; the client object and
 * its timers are gone by then. */
static void test_stop_with_full_tunnel(void **state)
{
        static const char chunk[64 * 1024];
        struct wire_peer c, server;
        size_t sent = 0, got = 0;

        (void) state;
        open_tunnel(&c, &server);
        for (int still = 0; still < 100; still++) {
                ssize_t n = send(server.fd, chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL);

                sent += n > 0 ? (size_t) n : 0;
                still = n > 0 ? 0 : still;
                net_loop_run_once(&loop, /* wait= */ false);
        }
        remake_client();
        wire_settle(&loop);
        while (!c.eof) {
                got += wire_read(&c, 64 * KiB) ? c.in.n : 0;
                wire_forget(&c);
                net_loop_run_once(&loop, /* wait= */ false);
        }
        check_true(got > 64 * KiB && got <= sent);
        both_done(&c, &server);
}

static void test_stop_with_open_tunnel(void **state)
{
        struct wire_peer c, server;

        (void) state;
        open_tunnel(&c, &server);
        remake_client();
        wire_until(&loop, wire_at_end(&c));
        both_done(&c, &server);
        open_tunnel(&c, &server);
        wire_done(&c); /* the rest is teardown's */
        wire_done(&server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_upgrade),
                T(test_upgrade_with_bytes_behind),
                T(test_upgrade_refused),
                T(test_no_way_round),
                T(test_tunnel_is_bounded),
                T(test_tunnel_ends),
                T(test_tunnel_idle_limit),
                T(test_stop_with_open_tunnel),
                T(test_stop_with_full_tunnel),
                T(test_half_closed_tunnel_limit),
        };

        return cmocka_run_group_tests_name("proxy upgrade", tests, NULL, NULL);
}
