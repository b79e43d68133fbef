/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/tunnel.h"

#include <inttypes.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/server_impl.h"
#include "http/ws_parser.h"
#include "tests/lib/agent_net.h"

#define BIG (64 * MiB)

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

/* --- a client, frame by frame --- */

struct client {
        struct wire_peer wire;
        struct ws_parser parser;
        struct buf got; /* payload of binary messages, unless it is only counted */
        uint64_t n_got; /* bytes, compared with byte_at if !keep */
        bool keep;
        uint16_t close_code; /* of the close frame that came, or 0 */
        bool pinged;
};

/* The byte at a position of a long transfer. */
static char byte_at(uint64_t pos)
{
        return (char) (pos ^ pos >> 8 ^ pos >> 16);
}

static int on_data(struct ws_parser *w, enum ws_opcode opcode, unsigned flags, char *p, size_t n)
{
        struct client *c = container_of(w, struct client, parser);

        (void) flags;
        check_i64_eq(opcode, WS_BINARY);
        if (c->keep)
                buf_add(&c->got, p, n);
        for (size_t i = 0; i < n && !c->keep; i++)
                if (p[i] != byte_at(c->n_got + i))
                        CHECK_FAIL_("wrong byte at %" PRIu64, c->n_got + i);
        c->n_got += n;
        return 0;
}

static int on_ping(struct ws_parser *w, struct str payload)
{
        (void) payload;
        container_of(w, struct client, parser)->pinged = true;
        return 0;
}

static int on_pong(struct ws_parser *w, struct str payload)
{
        (void) w;
        (void) payload;
        return 0;
}

static int on_close(struct ws_parser *w, uint16_t code, struct str reason)
{
        (void) reason;
        container_of(w, struct client, parser)->close_code = code;
        return 0;
}

static const struct ws_parser_ops parser_ops = {
        .data = on_data,
        .ping = on_ping,
        .pong = on_pong,
        .close = on_close,
};

static void send_handshake(struct client *c, unsigned port)
{
        char text[256];

        (void) snprintf(text, sizeof(text),
                        "GET /tunnel/%u HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
                        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                        port);
        *c = (struct client){ .keep = true };
        buf_init(&c->got, WIRE_MAX);
        ws_parser_init(&c->parser, WS_CLIENT, UINT64_MAX, &parser_ops);
        wire_connect(&c->wire, &net.addr);
        wire_send(LOOP, &c->wire, str_from(text));
}

static bool feed(struct client *c)
{
        struct str in = buf_str(&c->wire.in);

        if (in.n == 0 || c->close_code)
                return false;
        check_i64_eq(ws_parser_feed(&c->parser, (char *) in.p, in.n), 0);
        wire_forget(&c->wire);
        return true;
}

static void take_switch(struct client *c)
{
        const char *end;

        wire_until(LOOP, wire_has(&c->wire, "\r\n\r\n"));
        check_true(str_starts_with(buf_str(&c->wire.in), STR("HTTP/1.1 101 ")));
        end = memmem(buf_str(&c->wire.in).p, c->wire.in.n, "\r\n\r\n", 4);
        buf_consume(&c->wire.in, (size_t) (end + 4 - buf_str(&c->wire.in).p));
        (void) feed(c);
}

static void client_open(struct client *c, struct wire_listener *l, struct wire_peer *server)
{
        send_handshake(c, port_of(&l->addr));
        wire_accept(LOOP, l, server);
        take_switch(c);
}

static void client_done(struct client *c)
{
        wire_done(&c->wire);
        buf_done(&c->got);
        wire_settle(LOOP);
}

/* Takes what has come, at most max bytes of the wire. */
static bool client_read(struct client *c, size_t max)
{
        bool some = !c->wire.eof && wire_read(&c->wire, max);

        return feed(c) || some;
}

static bool client_got(struct client *c, const char *text)
{
        while (client_read(c, 64 * KiB))
                ;
        return str_eq(buf_str(&c->got), str_from(text));
}

static bool client_closed(struct client *c)
{
        while (client_read(c, 64 * KiB))
                ;
        return c->close_code != 0;
}

static void make_frame(struct buf *b, enum ws_opcode opcode, struct str payload)
{
        struct ws_head head = { .opcode = opcode,
                                .fin = true,
                                .masked = true,
                                .mask = { 9, 8, 7, 6 },
                                .length = payload.n };
        uint8_t bytes[WS_HEAD_MAX];
        char *at;

        buf_add(b, bytes, ws_head_encode(&head, bytes));
        at = buf_reserve(b, payload.n + 1);
        check_true(at != NULL);
        memcpy(at, payload.p, payload.n);
        ws_mask(at, payload.n, head.mask, 0);
        buf_advance(b, payload.n);
}

static void client_send(struct client *c, enum ws_opcode opcode, struct str payload)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 2 * MiB);
        make_frame(&b, opcode, payload);
        wire_send(LOOP, &c->wire, buf_str(&b));
}

#define CLOSE_1000 STR("\x03\xe8")

/* --- a server that checks the end --- */

/* 0: orderly; an errno: broken; -1: not yet. Data before the end is discarded. */
static int end_of(struct wire_peer *p)
{
        char text[4096];
        ssize_t n;

        while ((n = recv(p->fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
                ;
        if (n == 0)
                return 0;
        return errno == EAGAIN ? -1 : errno;
}

static void reset(struct wire_peer *p)
{
        const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

        check_i64_eq(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
        wire_done(p);
}

static bool all_gone(void)
{
        return list_empty(&net.w.agent->tunnels.all)
               && http_server_stats(net.w.agent->server).connections == 0;
}

/* --- tests --- */

static void test_bytes_go_both_ways(void **state)
{
        static const char *const addresses[] = { "127.0.0.1:0", "[::1]:0" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                struct wire_listener l;
                struct wire_peer server;
                struct client c;

                check_case(addresses[i]);
                if (!tcp_listen(addresses[i], &l))
                        skip_because("no IPv6 here");
                client_open(&c, &l, &server);
                client_send(&c, WS_BINARY, STR("hel\0"));
                client_send(&c, WS_BINARY, STR(""));
                client_send(&c, WS_BINARY, STR("lo"));
                wire_until(LOOP, (wire_read(&server, 100), server.in.n == 6));
                check_true(str_eq(buf_str(&server.in), STR("hel\0lo")));
                wire_send(LOOP, &server, STR("world"));
                wire_until(LOOP, client_got(&c, "world"));
                client_send(&c, WS_CLOSE, CLOSE_1000);
                wire_until(LOOP, client_closed(&c));
                check_i64_eq(c.close_code, 1000);
                client_done(&c);
                wire_done(&server);
                wire_until(LOOP, all_gone());
                tcp_unlisten(&l);
        }
}

/* A server that speaks first, and a client that speaks with its handshake. */
static void test_early_bytes(void **state)
{
        struct wire_listener l;
        struct wire_peer server;
        struct client c;
        scoped(buf_done) struct buf b;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        buf_init(&b, KiB);
        make_frame(&b, WS_BINARY, STR("early"));
        send_handshake(&c, port_of(&l.addr));
        wire_send(LOOP, &c.wire, buf_str(&b));
        wire_accept(LOOP, &l, &server);
        wire_send(LOOP, &server, STR("220 hello"));
        take_switch(&c);
        wire_until(LOOP, client_got(&c, "220 hello"));
        wire_until(LOOP, wire_has(&server, "early"));
        wire_done(&server);
        client_done(&c);
        tcp_unlisten(&l);
}

static void test_refusals(void **state)
{
        char own[32], closed[32];
        struct wire_listener l;
        struct client c;
        const struct {
                const char *target;
                int status;
        } cases[] = {
                { "/tunnel/x", 400 },       { "/tunnel/0", 400 }, { "/tunnel/70000", 400 },
                { "/tunnel/127.1:5", 400 }, { own, 403 },         { closed, 426 },
        };

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        tcp_unlisten(&l);
        (void) snprintf(own, sizeof(own), "/tunnel/%u", port_of(&net.addr));
        (void) snprintf(closed, sizeof(closed), "/tunnel/%u", port_of(&l.addr));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].target);
                check_i64_eq(call(&net.w, "GET", cases[i].target, NULL).status, cases[i].status);
        }
        check_case("no listener: a reply, no switch");
        send_handshake(&c, port_of(&l.addr));
        wire_until(LOOP, wire_has(&c.wire, "}"));
        check_true(wire_has(&c.wire, "HTTP/1.1 502 "));
        check_true(wire_has(&c.wire, "{\"code\":\"RUNTIME_ERROR\",\"message\":\"can't connect"));
        client_done(&c);
        wire_until(LOOP, all_gone());
}

static void test_text_is_refused(void **state)
{
        struct wire_listener l;
        struct wire_peer server;
        struct client c;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        client_send(&c, WS_TEXT, STR("hello"));
        wire_until(LOOP, client_closed(&c));
        check_i64_eq(c.close_code, 1003);
        client_send(&c, WS_CLOSE, STR("\x03\xeb"));
        client_done(&c);
        wire_until(LOOP, end_of(&server) == ECONNRESET);
        wire_done(&server);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

/* --- large transfers --- */

struct flow {
        uint64_t sent, got;
};

/* Pushes what the socket takes; whole frames if it is the client's. */
static bool push(struct wire_peer *p, struct flow *f, struct buf *frame, bool frames)
{
        static char chunk[60000];
        ssize_t n;

        if (frame->n == 0 && f->sent < BIG) {
                size_t want = MIN_OF(sizeof(chunk), (size_t) (BIG - f->sent));

                for (size_t i = 0; i < want; i++)
                        chunk[i] = byte_at(f->sent + i);
                if (frames)
                        make_frame(frame, WS_BINARY, str_of(chunk, want));
                else
                        buf_add(frame, chunk, want);
                f->sent += want;
        }
        n = frame->n ? send(p->fd, buf_str(frame).p, frame->n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (n > 0)
                buf_consume(frame, (size_t) n);
        return n > 0;
}

static bool pull_server(struct wire_peer *server, struct flow *f, size_t max)
{
        bool some = wire_read(server, max);
        struct str in = buf_str(&server->in);

        for (size_t i = 0; i < in.n; i++)
                if (in.p[i] != byte_at(f->got + i))
                        CHECK_FAIL_("wrong byte at %" PRIu64, f->got + i);
        f->got += in.n;
        wire_forget(server);
        return some;
}

/* Nothing is read until both senders block: what they could send by then is in buffers, including the
 * agent's. Then everything arrives, complete and in order. */
static void test_large_transfers_both_ways(void **state)
{
        scoped(buf_done) struct buf up_frame, down_frame;
        struct flow up = { 0 }, down = { 0 };
        struct wire_listener l;
        struct wire_peer server;
        struct client c;
        usec_t give_up;

        (void) state;
        buf_init(&up_frame, MiB);
        buf_init(&down_frame, MiB);
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        c.keep = false;
        for (int still = 0; still < 200; still++) {
                bool up_went = push(&c.wire, &up, &up_frame, true);
                bool down_went = push(&server, &down, &down_frame, false);

                if (up_went || down_went)
                        still = 0;
                net_loop_run_once(LOOP, /* wait= */ false);
        }
        check_true(up.sent < BIG && down.sent < BIG);
        give_up = clock_mono(&clock_system) + 60 * USEC_PER_SEC;
        while (up.got < BIG || c.n_got < BIG) {
                (void) push(&c.wire, &up, &up_frame, true);
                (void) push(&server, &down, &down_frame, false);
                (void) pull_server(&server, &up, 100 * KiB);
                (void) client_read(&c, 30 * KiB);
                net_loop_run_once(LOOP, /* wait= */ false);
                check_true(clock_mono(&clock_system) < give_up);
        }
        check_u64_eq(up.got, BIG);
        check_u64_eq(c.n_got, BIG);
        client_done(&c);
        wire_done(&server);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

/* The server is done and gone long before the client has read it all. */
static void test_server_ends_before_a_slow_client(void **state)
{
        scoped(buf_done) struct buf frame;
        struct flow down = { 0 };
        struct wire_listener l;
        struct wire_peer server;
        struct client c;

        (void) state;
        buf_init(&frame, MiB);
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        c.keep = false;
        for (int still = 0; still < 100; still++) {
                if (push(&server, &down, &frame, false))
                        still = 0;
                net_loop_run_once(LOOP, /* wait= */ false);
        }
        down.sent -= frame.n; /* not sent */
        wire_done(&server);
        while (!c.close_code) {
                (void) client_read(&c, 16 * KiB);
                net_loop_run_once(LOOP, /* wait= */ false);
        }
        check_i64_eq(c.close_code, 1000);
        check_u64_eq(c.n_got, down.sent);
        client_send(&c, WS_CLOSE, CLOSE_1000);
        wire_until(LOOP, wire_at_end(&c.wire));
        client_done(&c);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

static size_t waiting_for_client(void)
{
        struct list *n = list_first(&net.w.agent->server->conns);

        return n ? container_of(n, struct http_conn, node)->stream.out.n : 0;
}

/* The server has ended, and the agent holds the last of its data: a client that needs longer than a close may
 * take is not disconnected before it has received it. */
static void test_the_last_bytes_wait_for_the_client(void **state)
{
        static const char piece[4096];
        struct wire_listener l;
        struct wire_peer server;
        struct client c;
        uint64_t sent = 0;
        usec_t later;

        (void) state;
        net.w.agent->tunnels.group._closes.length = 5 * USEC_PER_MSEC;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        while (waiting_for_client() == 0) {
                wire_send(LOOP, &server, str_of(piece, sizeof(piece)));
                sent += sizeof(piece);
                wire_settle(LOOP);
        }
        check_true(waiting_for_client() < TUNNEL_LOW); /* so that the end will be read */
        wire_done(&server);
        later = clock_mono(&clock_system) + 30 * USEC_PER_MSEC;
        wire_until(LOOP, clock_mono(&clock_system) > later);
        wire_until(LOOP, client_closed(&c));
        check_i64_eq(c.close_code, 1000);
        check_u64_eq(c.n_got, sent);
        client_done(&c);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

/* --- the end of one side --- */

/* A client that has sent a close waits for the agent to end the connection. */
static void drop_on_request(struct client *c)
{
        if (c->wire.fd >= 0 && wire_at_end(&c->wire))
                c->wire.fd = fd_close(c->wire.fd);
}

static void test_client_closes(void **state)
{
        static const char big[MiB];
        struct wire_listener l;
        struct wire_peer server;
        struct client c;
        size_t got = 0;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        client_send(&c, WS_BINARY, str_of(big, sizeof(big)));
        client_send(&c, WS_CLOSE, CLOSE_1000);
        while (!server.eof) {
                got += wire_read(&server, 64 * KiB) ? server.in.n : 0;
                wire_forget(&server);
                drop_on_request(&c);
                net_loop_run_once(LOOP, /* wait= */ false);
        }
        check_u64_eq(got, sizeof(big));
        check_case("what the server still says goes nowhere and blocks nothing");
        wire_send(LOOP, &server, str_of(big, sizeof(big)));
        wire_done(&server);
        client_done(&c);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

static void test_client_is_lost(void **state)
{
        (void) state;
        for (int hard = 0; hard < 2; hard++) {
                struct wire_listener l;
                struct wire_peer server;
                struct client c;

                check_case(hard ? "reset" : "closed without a word");
                check_true(tcp_listen("127.0.0.1:0", &l));
                client_open(&c, &l, &server);
                if (hard)
                        reset(&c.wire);
                client_done(&c);
                wire_until(LOOP, end_of(&server) == ECONNRESET);
                wire_done(&server);
                wire_until(LOOP, all_gone());
                tcp_unlisten(&l);
        }
}

static void test_server_resets(void **state)
{
        struct wire_listener l;
        struct wire_peer server;
        struct client c;

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        wire_send(LOOP, &server, STR("half of i"));
        wire_until(LOOP, client_got(&c, "half of i"));
        reset(&server);
        wire_until(LOOP, client_closed(&c));
        check_i64_eq(c.close_code, 1011);
        client_send(&c, WS_CLOSE, STR("\x03\xf3"));
        wire_until(LOOP, wire_at_end(&c.wire));
        client_done(&c);
        wire_until(LOOP, all_gone());
        tcp_unlisten(&l);
}

static void test_server_that_never_ends_is_reset(void **state)
{
        struct wire_listener l;
        struct wire_peer server;
        struct client c;

        (void) state;
        net.w.agent->tunnels.lingers.length = 10 * USEC_PER_MSEC;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        client_send(&c, WS_CLOSE, CLOSE_1000);
        wire_until(LOOP, (drop_on_request(&c), end_of(&server) == 0));
        client_done(&c);
        wire_until(LOOP, all_gone());
        wire_done(&server);
        tcp_unlisten(&l);
}

static void test_silence_is_broken_by_pings(void **state)
{
        struct wire_listener l;
        struct wire_peer server;
        struct client c;

        (void) state;
        net.w.agent->tunnels.pings.length = 1 * USEC_PER_MSEC;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c, &l, &server);
        wire_until(LOOP, (client_read(&c, 100), c.pinged));
        client_done(&c);
        wire_done(&server);
        tcp_unlisten(&l);
}

/* The rest is the agent's end. */
static void test_agent_ends_with_tunnels(void **state)
{
        struct wire_listener l;
        struct wire_peer servers[2];
        struct client c[3];

        (void) state;
        check_true(tcp_listen("127.0.0.1:0", &l));
        client_open(&c[0], &l, &servers[0]);
        client_open(&c[1], &l, &servers[1]);
        client_send(&c[1], WS_CLOSE, CLOSE_1000);
        wire_until(LOOP, client_closed(&c[1]));
        send_handshake(&c[2], port_of(&l.addr));
        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                c[i].wire.fd = fd_close(c[i].wire.fd);
                buf_done(&c[i].wire.in);
                buf_done(&c[i].got);
        }
        wire_done(&servers[0]);
        wire_done(&servers[1]);
        tcp_unlisten(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
                T(test_bytes_go_both_ways),
                T(test_early_bytes),
                T(test_refusals),
                T(test_text_is_refused),
                T(test_large_transfers_both_ways),
                T(test_server_ends_before_a_slow_client),
                T(test_the_last_bytes_wait_for_the_client),
                T(test_client_closes),
                T(test_client_is_lost),
                T(test_server_resets),
                T(test_server_that_never_ends_is_reset),
                T(test_silence_is_broken_by_pings),
                T(test_agent_ends_with_tunnels),
        };

        return cmocka_run_group_tests_name("tunnel", tests, NULL, NULL);
}
