/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that have a second address to go to. */

#include "tests/lib/call_probe.h"

#define H HEAD_OK

struct second {
        struct sock_addr refusing; /* no one listens there */
        int fd;                    /* bound, so that no one else will */
};

static void refuse(struct second *s)
{
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &s->refusing), 0);
        s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        check_true(s->fd >= 0);
        check_i64_eq(bind(s->fd, (struct sockaddr *) &s->refusing.ss, s->refusing.len), 0);
        check_i64_eq(sock_local_addr(s->fd, &s->refusing), 0);
}

/* TCP tells later, a unix socket at once. */
static void test_refused_goes_elsewhere(void **state)
{
        struct wire_listener dead;
        struct second s;

        (void) state;
        refuse(&s);
        wire_listen(&dead);
        dead.fd = fd_close(dead.fd);
        for (int i = 0; i < 4; i++) {
                bool body = i & 1, later = i & 2;
                struct wire_peer server;
                struct probe x;

                check_case(later ? "later" : "at once");
                probe_init(&x, body ? STR("POST") : STR("GET"));
                x.call.fallback = &listener.addr;
                x.call.body = body ? HTTP_CALL_SIZED : HTTP_CALL_NO_BODY;
                x.call.body_length = body ? 5 : 0;
                http_call_start(client, &x.call, later ? &s.refusing : &dead.addr);
                wire_accept(&loop, &listener, &server);
                wire_until(&loop, wire_has(&server, "\r\n\r\n"));
                if (body) {
                        check_true(x.drains > 0);
                        http_call_write(&x.call, STR("hello"));
                        http_call_end_body(&x.call);
                        wire_until(&loop, wire_has(&server, "\r\n\r\nhello"));
                }
                wire_send(&loop, &server, STR(H "Connection: close\r\nContent-Length: 0\r\n\r\n"));
                end_with(&x, 0);
                check_i64_eq(x.call.status, 200);
                wire_done(&server);
                probe_done(&x);
        }
        wire_unlisten(&dead);
        (void) fd_close(s.fd);
}

static void test_upgrade_goes_elsewhere(void **state)
{
        struct wire_peer server;
        struct second s;
        struct probe x;

        (void) state;
        refuse(&s);
        probe_init(&x, STR("GET"));
        x.call.fallback = &listener.addr;
        x.call.upgrade = STR("websocket");
        http_call_start(client, &x.call, &s.refusing);
        wire_accept(&loop, &listener, &server);
        wire_until(&loop, wire_has(&server, "\r\n\r\n"));
        wire_send(&loop, &server,
                  STR("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi"));
        end_with(&x, 0);
        wire_until(&loop, x.tunneled.n == 2);
        wire_done(&server);
        wire_until(&loop, x.tunnel_eof);
        http_tunnel_close(&x.tunnel);
        wire_until(&loop, x.tunnel_closed);
        probe_done(&x);
        (void) fd_close(s.fd);
}

static void test_refused_twice(void **state)
{
        struct second s, other;
        struct probe x;

        (void) state;
        refuse(&s);
        refuse(&other);
        probe_init(&x, STR("GET"));
        x.call.fallback = &other.refusing;
        http_call_start(client, &x.call, &s.refusing);
        end_with(&x, -ECONNREFUSED);
        check_u64_eq(http_client_stats(client).connects, 2);
        probe_done(&x);
        check_case("cancelled on the way");
        probe_init(&x, STR("GET"));
        x.call.fallback = &other.refusing;
        http_call_start(client, &x.call, &s.refusing);
        http_call_cancel(&x.call);
        end_with(&x, -ECANCELED);
        probe_done(&x);
        (void) fd_close(s.fd);
        (void) fd_close(other.fd);
}

/* Only a refusal says that no one is there. */
static void test_other_failures_are_final(void **state)
{
        struct sock_addr missing;
        struct probe x;

        (void) state;
        check_i64_eq(sock_addr_from_string(STR("unix:/nonexistent/socket"), &missing), 0);
        probe_init(&x, STR("GET"));
        x.call.fallback = &listener.addr;
        http_call_start(client, &x.call, &missing);
        end_with(&x, -ENOENT);
        probe_done(&x);
}

/* Once a connection stood, the request may have had an effect there. */
static void test_a_server_that_fails_is_not_replaced(void **state)
{
        struct wire_listener other;
        struct wire_peer server;
        struct probe x;

        (void) state;
        wire_listen(&other);
        probe_init(&x, STR("GET"));
        x.call.fallback = &other.addr;
        start_and_accept(&x, &server);
        wire_done(&server);
        end_with(&x, -ECONNRESET);
        check_false(wire_try_accept(&other, &server));
        probe_done(&x);
        wire_unlisten(&other);
}

/* Idle connections of the second address are used again, and a server may change its address. */
static void test_second_address_has_a_pool(void **state)
{
        struct wire_peer server;
        struct second s;
        struct probe x;

        (void) state;
        refuse(&s);
        for (int i = 0; i < 3; i++) {
                probe_init(&x, STR("GET"));
                x.call.fallback = &listener.addr;
                http_call_start(client, &x.call, &s.refusing);
                if (i == 0)
                        wire_accept(&loop, &listener, &server);
                wire_until(&loop, wire_has(&server, "\r\n\r\n"));
                wire_forget(&server);
                wire_send(&loop, &server, STR(H "Content-Length: 0\r\n\r\n"));
                end_with(&x, 0);
                probe_done(&x);
        }
        check_u64_eq(http_client_stats(client).reuses, 2);
        wire_done(&server);
        (void) fd_close(s.fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_refused_goes_elsewhere),
                T(test_upgrade_goes_elsewhere),
                T(test_refused_twice),
                T(test_other_failures_are_final),
                T(test_a_server_that_fails_is_not_replaced),
                T(test_second_address_has_a_pool),
        };

        return cmocka_run_group_tests_name("client fallback", tests, NULL, NULL);
}
