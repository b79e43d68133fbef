/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include "base/base.h"
#include "http/conn.h"
#include "tests/lib/http_peer.h"
#include "tests/lib/ws_collector.h"

/* A WebSocket server against a client that is written by hand, frame by frame. */

static struct world world;
static struct http_ws_group group;
static struct http_ws_options options;
static struct http_ws ws;
static struct buf collected;
static bool echo, pause_at_once;
static int accepted, drains, closes;
static uint16_t close_code;
static char close_reason[128];
static struct buf pieces; /* of messages: [text] (binary) */

static void on_data(struct http_ws *w, enum ws_opcode opcode, unsigned flags, char *p, size_t n)
{
        struct str message;

        if (flags & WS_FIRST)
                buf_add_char(&pieces, opcode == WS_TEXT ? '[' : '(');
        buf_add(&pieces, p, n);
        if (flags & WS_LAST)
                buf_add_char(&pieces, opcode == WS_TEXT ? ']' : ')');
        if (echo && ws_collect(&collected, flags, p, n, &message) == 1)
                check_i64_eq(http_ws_send(w, opcode, message), 0);
}

static void on_drain(struct http_ws *w)
{
        drains++;
}

static void on_closed(struct http_ws *w, uint16_t code, struct str reason)
{
        closes++;
        close_code = code;
        (void) snprintf(close_reason, sizeof(close_reason), "%.*s", STR_ARG(reason));
}

static const struct http_ws_ops ops = { .data = on_data, .drain = on_drain, .closed = on_closed };

static void exec_ws(struct http_req *req)
{
        accepted = http_ws_accept(&ws, req, &group, &ops, &options);
        if (accepted == 0 && pause_at_once)
                http_ws_pause(&ws);
}

static const struct http_route routes[] = {
        { METHOD_ANY, "/ws", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_ws },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

static void open_world(usec_t ping_interval, usec_t close_timeout)
{
        struct http_server_config config = http_server_defaults;

        config.drain_timeout = USEC_PER_SEC;
        world_open(&world, &config, &api);
        http_ws_group_init(&group, &world.loop, ping_interval, close_timeout);
        options = (struct http_ws_options){ .message_max = 64 * KiB };
        buf_init(&pieces, 4 * MiB);
        buf_init(&collected, 64 * KiB);
        echo = pause_at_once = false;
        accepted = 1;
        drains = closes = 0;
        close_code = 0;
        close_reason[0] = '\0';
}

static void close_world(void)
{
        bool opened = accepted == 0;

        http_server_free(world.server, NULL, NULL);
        world_turn(&world, 3);
        if (opened)
                check_i64_eq(closes, 1);
        http_ws_group_close(&group);
        buf_done(&collected);
        buf_done(&pieces);
        net_loop_done(&world.loop);
        (void) unlink(world.path);
        check_i64_eq(rmdir(world.dir), 0);
}

#define KEY     "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT  "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define UPGRADE "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
#define HELLO \
        "GET /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"

static void shake_hands(struct peer *p)
{
        struct peer_reply a;

        peer_open(p, &world);
        a = peer_request(p, HELLO "\r\n");
        check_i64_eq(a.status, 101);
        check_str_eq(response_header(&a, "Sec-WebSocket-Accept"), ACCEPT);
}

/* A frame as a client sends it. opcode may carry 0x80 for "not final". */
static void add_frame(struct buf *b, unsigned opcode, struct str payload)
{
        struct ws_head head = { .opcode = (enum ws_opcode)(opcode & 15),
                                .fin = !(opcode & 0x80),
                                .masked = true,
                                .mask = { 1, 2, 3, 4 },
                                .length = payload.n };
        uint8_t bytes[WS_HEAD_MAX];
        char *at;

        buf_add(b, bytes, ws_head_encode(&head, bytes));
        at = buf_reserve(b, payload.n);
        check_true(at != NULL);
        memcpy(at, payload.p, payload.n);
        ws_mask(at, payload.n, head.mask, 0);
        buf_advance(b, payload.n);
}

static void send_frame(struct peer *p, unsigned opcode, struct str payload)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 4 * MiB);
        add_frame(&b, opcode, payload);
        peer_send(p, buf_str(&b));
}

/* Takes the next frame of the server; its payload is valid until more is read. */
static enum ws_opcode take_frame(struct peer *p, struct str *ret_payload)
{
        static char payload[512 * 1024];
        struct ws_head_decoder d;
        struct ws_head head;
        size_t used;

        for (size_t need = 2;; need++) {
                peer_until_bytes(p, need);
                ws_head_decoder_init(&d, WS_CLIENT, 0);
                if (ws_head_feed(&d, buf_str(&p->in).p, need, &used, &head) == 1)
                        break;
                check_true(need < WS_HEAD_MAX);
        }
        buf_consume(&p->in, used);
        peer_until_bytes(p, head.length);
        check_true(head.fin && head.length <= sizeof(payload));
        memcpy(payload, buf_str(&p->in).p, head.length);
        buf_consume(&p->in, head.length);
        *ret_payload = str_of(payload, head.length);
        return head.opcode;
}

static void check_frame(struct peer *p, enum ws_opcode opcode, struct str payload)
{
        struct str got;

        check_i64_eq(take_frame(p, &got), opcode);
        check_view_eq(got, payload);
}

static void check_close_frame(struct peer *p, uint16_t code)
{
        struct str got;

        check_i64_eq(take_frame(p, &got), WS_CLOSE);
        check_true(got.n >= 2);
        check_i64_eq((uint8_t) got.p[0] << 8 | (uint8_t) got.p[1], code);
}

static void until_closed(void)
{
        usec_t since = clock_mono(&clock_system);

        while (closes == 0 && clock_mono(&clock_system) - since < PEER_TIMEOUT)
                world_turn(&world, 1);
        check_i64_eq(closes, 1);
}

/* --- the handshake --- */

static void handshakes(void **state)
{
        static const struct {
                const char *text;
                int status;
        } cases[] = {
                { HELLO "\r\n", 101 },
                { "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, upgrade\r\n"
                  "Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: " KEY "\r\n\r\n",
                  101 },
                { "GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", 426 },
                { "GET /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Version: 8\r\n"
                  "Sec-WebSocket-Key: " KEY "\r\n\r\n",
                  426 },
                { "GET /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Key: " KEY "\r\n\r\n", 426 },
                { "GET /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\n\r\n", 400 },
                { "GET /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: short\r\n\r\n",
                  400 },
                { HELLO "Sec-WebSocket-Key: " KEY "\r\n\r\n", 400 },
                { "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
                  400 },
                { "POST /ws HTTP/1.1\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: " KEY "\r\n\r\n",
                  400 },
                { "GET /ws HTTP/1.0\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: " KEY "\r\n\r\n",
                  400 },
                { HELLO "Content-Length: 1\r\n\r\nx", 400 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer p;
                struct peer_reply a;

                check_case(cases[i].text);
                open_world(0, USEC_PER_SEC);
                peer_open(&p, &world);
                a = peer_request(&p, cases[i].text);
                check_i64_eq(a.status, cases[i].status);
                check_i64_eq(accepted == 0, cases[i].status == 101);
                if (a.status == 101)
                        check_str_eq(response_header(&a, "Upgrade"), "websocket");
                if (a.status == 426)
                        check_str_eq(response_header(&a, "Sec-WebSocket-Version"), "13");
                peer_close(&p);
                close_world();
        }
}

static void protocols(void **state)
{
        static const struct {
                const char *ours, *theirs, *chosen;
        } cases[] = {
                { "a, b", "b, a", "a" },
                { "a, b", "b", "b" },
                { "a, b", "c", NULL },
                { NULL, "a", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[512];
                struct peer p;
                struct peer_reply a;

                check_case(cases[i].theirs);
                open_world(0, USEC_PER_SEC);
                options.protocols = str_from(cases[i].ours);
                (void) snprintf(text, sizeof(text), HELLO "Sec-WebSocket-Protocol: %s\r\n\r\n",
                                cases[i].theirs);
                peer_open(&p, &world);
                a = peer_request(&p, text);
                check_view_eq(response_header(&a, "Sec-WebSocket-Protocol"),
                              str_from(cases[i].chosen));
                peer_close(&p);
                close_world();
        }
}

/* --- messages --- */

static void echoes(void **state)
{
        static char large[60000];
        struct peer p;

        memset(large, 'l', sizeof(large));
        open_world(0, USEC_PER_SEC);
        echo = true;
        shake_hands(&p);
        send_frame(&p, WS_TEXT, STR("hello"));
        check_frame(&p, WS_TEXT, STR("hello"));
        send_frame(&p, WS_BINARY | 0x80, STR("one "));
        send_frame(&p, WS_PING, STR("between"));
        send_frame(&p, WS_CONTINUATION | 0x80, STR("two "));
        send_frame(&p, WS_CONTINUATION, STR("three"));
        check_frame(&p, WS_PONG, STR("between"));
        check_frame(&p, WS_BINARY, STR("one two three"));
        send_frame(&p, WS_TEXT, STR(""));
        check_frame(&p, WS_TEXT, STR(""));
        check_str_eq(buf_str(&pieces), "[hello](one two three)[]");
        send_frame(&p, WS_BINARY, str_of(large, sizeof(large)));
        check_frame(&p, WS_BINARY, str_of(large, sizeof(large)));
        check_true(drains > 0);
        peer_close(&p);
        close_world();
        check_i64_eq(close_code, WS_CLOSE_ABNORMAL);
}

/* Frames that came with the handshake belong to the connection. */
static void an_eager_client_is_heard(void **state)
{
        scoped(buf_done) struct buf b;
        struct peer p;

        open_world(0, USEC_PER_SEC);
        echo = true;
        buf_init(&b, KiB);
        buf_add_str(&b, STR(HELLO "\r\n"));
        add_frame(&b, WS_TEXT, STR("at once"));
        peer_open(&p, &world);
        peer_send(&p, buf_str(&b));
        check_i64_eq(peer_response(&p).status, 101);
        check_frame(&p, WS_TEXT, STR("at once"));
        peer_close(&p);
        close_world();
}

static void errors_close(void **state)
{
        static const struct {
                const char *name;
                struct str bytes; /* unmasked by a mask of zeros */
                uint16_t code;
        } cases[] = {
                { "unmasked", STR("\x81\x01x"), 1002 },
                { "reserved bit", STR("\xc1\x80\0\0\0\0"), 1002 },
                { "unknown opcode", STR("\x83\x80\0\0\0\0"), 1002 },
                { "stray continuation", STR("\x80\x80\0\0\0\0"), 1002 },
                { "bad text", STR("\x81\x81\0\0\0\0\xff"), 1007 },
                { "too big", STR("\x82\xff\0\0\0\0\0\1\0\1\0\0\0\0"), 1009 },
                { "bad close code", STR("\x88\x82\0\0\0\0\x03\xed"), 1002 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer p;

                check_case(cases[i].name);
                open_world(0, USEC_PER_SEC);
                shake_hands(&p);
                peer_send(&p, cases[i].bytes);
                check_close_frame(&p, cases[i].code);
                peer_until_eof(&p);
                peer_close(&p);
                until_closed();
                check_i64_eq(close_code, cases[i].code);
                check_true(close_reason[0] != '\0');
                close_world();
        }
}

/* --- the end --- */

static void the_client_closes(void **state)
{
        struct peer p;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        send_frame(&p, WS_CLOSE, STR("\x0f\xa1taken"));
        check_close_frame(&p, 4001);
        peer_until_eof(&p);
        check_i64_eq(closes, 0);
        check_i64_eq(http_ws_send(&ws, WS_TEXT, STR("x")), -EPIPE);
        peer_close(&p);
        until_closed();
        check_i64_eq(close_code, 4001);
        check_z_eq(close_reason, "taken");
        close_world();
}

static void we_close(void **state)
{
        struct peer p;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        check_i64_eq(http_ws_send(&ws, WS_TEXT, STR("bye")), 0);
        http_ws_close(&ws, WS_CLOSE_NORMAL, STR("done"));
        http_ws_close(&ws, WS_CLOSE_POLICY, STR("twice"));
        check_i64_eq(http_ws_send(&ws, WS_TEXT, STR("x")), -EPIPE);
        check_frame(&p, WS_TEXT, STR("bye"));
        check_frame(&p, WS_CLOSE,
                    STR("\x03\xe8"
                        "done"));
        send_frame(&p, WS_TEXT, STR("late")); /* is not delivered any more */
        send_frame(&p, WS_CLOSE, STR("\x03\xe8"));
        peer_until_eof(&p);
        peer_close(&p);
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_NORMAL);
        check_str_eq(buf_str(&pieces), "");
        close_world();
}

static void an_unanswered_close_times_out(void **state)
{
        struct peer p;

        open_world(0, 20 * USEC_PER_MSEC);
        shake_hands(&p);
        http_ws_close(&ws, WS_CLOSE_NORMAL, STR(""));
        peer_until_eof(&p);
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_ABNORMAL);
        peer_close(&p);
        close_world();
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void a_stopping_server_says_so(void **state)
{
        struct peer p;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        http_server_drain(world.server, set_flag, &world.drained);
        check_close_frame(&p, WS_CLOSE_GOING_AWAY);
        send_frame(&p, WS_CLOSE, STR("\x03\xe9"));
        peer_until_eof(&p);
        peer_close(&p);
        world_until(&world, &world.drained);
        close_world();
}

static void lost_connections(void **state)
{
        struct peer p;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        peer_close(&p);
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_ABNORMAL);
        close_world();

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        http_tunnel_close(&ws.tunnel);
        http_tunnel_close(&ws.tunnel);
        check_i64_eq(closes, 0);
        peer_until_eof(&p);
        until_closed();
        peer_close(&p);
        close_world();
}

/* --- pings --- */

static void pings_and_gives_up(void **state)
{
        struct peer p;

        open_world(20 * USEC_PER_MSEC, USEC_PER_SEC);
        shake_hands(&p);
        for (int i = 0; i < 3; i++) {
                check_frame(&p, WS_PING, STR(""));
                send_frame(&p, WS_PONG, STR(""));
        }
        check_i64_eq(closes, 0);
        peer_until_eof(&p); /* no more pongs */
        check_i64_eq(close_code, WS_CLOSE_ABNORMAL);
        peer_close(&p);
        close_world();
}

/* As if the interval were over now. */
static void ping_is_due(void)
{
        timeout_clear(&ws._timeout);
        group._pings.expired(&ws._timeout);
}

/* The pong lies in the socket when reading goes on; the timer may come before it is read. */
static void resuming_is_not_silence(void **state)
{
        struct peer p;

        open_world(3600 * USEC_PER_SEC, USEC_PER_SEC);
        shake_hands(&p);
        ping_is_due();
        check_frame(&p, WS_PING, STR(""));
        http_ws_pause(&ws);
        send_frame(&p, WS_PONG, STR(""));
        http_ws_resume(&ws);
        ping_is_due();
        check_frame(&p, WS_PING, STR(""));
        check_i64_eq(closes, 0);
        peer_close(&p);
        until_closed();
        close_world();
}

/* --- back-pressure --- */

/* Fills the output until it is not writable. */
static void fill_output(void)
{
        static char text[16 * 1024];

        for (int i = 0; http_ws_writable(&ws); i++) {
                check_i64_eq(http_ws_send(&ws, WS_BINARY, str_of(text, sizeof(text))), 0);
                world_turn(&world, 1);
                check_true(i < 1000);
        }
}

static void a_ping_flood_gets_one_pong(void **state)
{
        struct str payload;
        struct peer p;
        int pongs = 0;
        uint64_t before;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        fill_output();
        before = stream_pending(ws.tunnel.stream);
        for (int i = 0; i < 5000; i++)
                send_frame(&p, WS_PING, STR("again and again"));
        send_frame(&p, WS_PING, STR("last"));
        world_turn(&world, 10);
        check_u64_eq(stream_pending(ws.tunnel.stream), before);
        http_ws_close(&ws, WS_CLOSE_NORMAL, STR(""));
        /* The pong was still owed when the close came: there is none any more. */
        while (take_frame(&p, &payload) != WS_CLOSE)
                pongs += payload.n < 100;
        check_i64_eq(pongs, 0);
        peer_close(&p);
        close_world();

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        fill_output();
        for (int i = 0; i < 100; i++)
                send_frame(&p, WS_PING, STR("again and again"));
        send_frame(&p, WS_PING, STR("last"));
        while (take_frame(&p, &payload) != WS_PONG)
                ;
        check_str_eq(payload, "last");
        peer_close(&p);
        close_world();
}

static void who_does_not_read_is_cut_off(void **state)
{
        static char text[16 * 1024];
        struct str payload;
        struct peer p;
        int r = 0;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        fill_output();
        while (r == 0)
                r = http_ws_send(&ws, WS_BINARY, str_of(text, sizeof(text)));
        check_i64_eq(r, -ENOBUFS);
        check_true(stream_pending(ws.tunnel.stream) <= CONN_OUT_MAX);
        while (take_frame(&p, &payload) != WS_CLOSE)
                ;
        check_i64_eq((uint8_t) payload.p[0] << 8 | (uint8_t) payload.p[1], WS_CLOSE_TRY_LATER);
        peer_close(&p);
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_TRY_LATER);
        close_world();
}

static void sizes(void **state)
{
        static char text[HTTP_WS_SEND_MAX + 1];
        struct str payload;
        struct peer p;

        open_world(0, USEC_PER_SEC);
        shake_hands(&p);
        check_i64_eq(http_ws_send(&ws, WS_BINARY, str_of(text, sizeof(text))), -EMSGSIZE);
        check_i64_eq(http_ws_send(&ws, WS_PING, str_of(text, 126)), -EMSGSIZE);
        check_i64_eq(http_ws_send(&ws, WS_BINARY, str_of(text, sizeof(text) - 1)), 0);
        check_i64_eq(take_frame(&p, &payload), WS_BINARY);
        check_u64_eq(payload.n, sizeof(text) - 1);
        peer_close(&p);
        close_world();
}

static void pauses(void **state)
{
        struct peer p;

        open_world(0, USEC_PER_SEC);
        pause_at_once = true;
        shake_hands(&p);
        send_frame(&p, WS_TEXT, STR("wait"));
        world_turn(&world, 10);
        check_str_eq(buf_str(&pieces), "");
        http_ws_resume(&ws);
        world_turn(&world, 3);
        check_str_eq(buf_str(&pieces), "[wait]");
        peer_close(&p);
        close_world();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(handshakes),
                cmocka_unit_test(protocols),
                cmocka_unit_test(echoes),
                cmocka_unit_test(an_eager_client_is_heard),
                cmocka_unit_test(errors_close),
                cmocka_unit_test(the_client_closes),
                cmocka_unit_test(we_close),
                cmocka_unit_test(an_unanswered_close_times_out),
                cmocka_unit_test(a_stopping_server_says_so),
                cmocka_unit_test(lost_connections),
                cmocka_unit_test(pings_and_gives_up),
                cmocka_unit_test(resuming_is_not_silence),
                cmocka_unit_test(a_ping_flood_gets_one_pong),
                cmocka_unit_test(who_does_not_read_is_cut_off),
                cmocka_unit_test(sizes),
                cmocka_unit_test(pauses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
