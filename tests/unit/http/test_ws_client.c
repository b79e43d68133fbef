/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include <sys/socket.h>

#include "base/base.h"
#include "http/client.h"
#include "os/fd.h"
#include "tests/lib/http_peer.h"

/* WebSocket as client: its frames on a bare socket pair, and against our own server. */

static struct world world;
static struct http_ws_group group;
static struct http_ws client_ws, server_ws;
static struct buf pieces; /* of what the client received */
static int closes;
static uint16_t close_code;

static void on_data(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p, size_t n)
{
        buf_add(&pieces, p, n);
        if (flags & WS_LAST)
                buf_add_char(&pieces, '|');
}

static void on_closed(struct http_ws *ws, uint16_t code, struct str reason)
{
        closes++;
        close_code = code;
}

static const struct http_ws_ops ops = { .data = on_data, .closed = on_closed };

static void echo_data(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p, size_t n)
{
        check_i64_eq(flags, WS_FIRST | WS_LAST);
        check_i64_eq(http_ws_send(ws, opcode, str_of(p, n)), 0);
}

static void echo_closed(struct http_ws *ws, uint16_t code, struct str reason)
{
}

static const struct http_ws_ops echo_ops = { .data = echo_data, .closed = echo_closed };

static void exec_ws(struct http_req *req)
{
        check_i64_eq(http_ws_accept(&server_ws, req, &group, &echo_ops, NULL), 0);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/ws", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_ws },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

static int set_up(void **state)
{
        world_open(&world, NULL, &api);
        http_ws_group_init(&group, &world.loop, 0, USEC_PER_SEC);
        buf_init(&pieces, MiB);
        closes = 0;
        close_code = 0;
        return 0;
}

static int tear_down(void **state)
{
        buf_done(&pieces);
        http_ws_group_close(&group);
        world_close(&world);
        return 0;
}

static void until_closed(void)
{
        usec_t since = clock_mono(&clock_system);

        while (closes == 0 && clock_mono(&clock_system) - since < PEER_PATIENCE)
                world_turn(&world, 1);
        check_i64_eq(closes, 1);
}

/* --- over a tunnel of our own --- */

struct wire {
        struct net_stream stream;
        struct http_tunnel *tunnel;
        struct net_task closing;
        bool closed;
};

static struct http_tunnel *tunnel_of(struct net_stream *s)
{
        return container_of(s, struct wire, stream)->tunnel;
}

static void wire_data(struct net_stream *s, char *p, size_t n)
{
        tunnel_of(s)->ops->data(tunnel_of(s), p, n);
}

static void wire_eof(struct net_stream *s)
{
        tunnel_of(s)->ops->eof(tunnel_of(s));
}

static void wire_drained(struct net_stream *s)
{
        tunnel_of(s)->ops->drained(tunnel_of(s));
}

static void wire_end(struct net_task *task)
{
        struct wire *w = container_of(task, struct wire, closing);

        stream_close(&w->stream);
        w->tunnel->stream = NULL;
        w->tunnel->_conn = NULL;
        w->tunnel->ops->closed(w->tunnel, 0);
}

static void wire_error(struct net_stream *s, int r)
{
        wire_end(&container_of(s, struct wire, stream)->closing);
}

static void wire_closed(struct net_stream *s)
{
        container_of(s, struct wire, stream)->closed = true;
}

static void wire_close(struct http_tunnel *t)
{
        struct wire *w = t->_conn;

        net_task_queue(&world.loop, &w->closing);
}

static const struct net_stream_ops wire_ops = {
        .data = wire_data,
        .eof = wire_eof,
        .drained = wire_drained,
        .error = wire_error,
        .closed = wire_closed,
};

/* Returns the other end. */
static int wire_open(struct wire *w, struct http_tunnel *t)
{
        int fds[2];

        *w = (struct wire){ .tunnel = t };
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        check_i64_eq(stream_open(&w->stream, &world.loop, fds[0], MiB, &wire_ops), 0);
        net_task_init(&w->closing, wire_end);
        t->stream = &w->stream;
        t->_conn = w;
        t->_close = wire_close;
        stream_resume_reading(&w->stream);
        return fds[1];
}

static void masks_and_leaves_the_end_to_the_server(void **state)
{
        struct wire wire;
        struct peer raw = { .world = &world };
        uint8_t frame[11];

        http_ws_init_client(&client_ws, &group, &ops, NULL);
        raw.fd = wire_open(&wire, &client_ws.tunnel);
        buf_init(&raw.in, MiB);
        http_ws_start_client(&client_ws);
        check_i64_eq(http_ws_send(&client_ws, WS_TEXT, STR("hello")), 0);
        peer_until_bytes(&raw, sizeof(frame));
        memcpy(frame, buf_str(&raw.in).p, sizeof(frame));
        check_i64_eq(frame[0], 0x81);
        check_i64_eq(frame[1], 0x85);
        ws_mask(frame + 6, 5, frame + 2, 0);
        check_view_eq(str_of((char *) frame + 6, 5), STR("hello"));

        peer_send(&raw, STR("\x81\x02hi\x88\x02\x03\xe8"));
        peer_until_bytes(&raw, sizeof(frame) + 8);
        check_str_eq(buf_str(&pieces), "hi|");
        world_turn(&world, 3);
        peer_read(&raw);
        check_false(raw.eof);
        check_i64_eq(closes, 0);
        peer_finish(&raw);
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_NORMAL);
        world_until(&world, &wire.closed);
        peer_close(&raw);
}

/* --- against our server --- */

struct connect {
        struct http_call call;
        struct arena arena;
        char key[HTTP_WS_KEY_SIZE];
        bool ended;
        int result;
};

static struct http_tunnel *connect_upgrade(struct http_call *call)
{
        struct connect *c = container_of(call, struct connect, call);
        struct str accept = http_headers_get(&call->response, STR("Sec-WebSocket-Accept"));

        if (!http_ws_accept_is_valid(str_of(c->key, sizeof(c->key)), accept))
                return NULL;
        http_ws_start_client(&client_ws);
        return &client_ws.tunnel;
}

static void connect_end(struct http_call *call, int r)
{
        struct connect *c = container_of(call, struct connect, call);

        c->result = r;
        c->ended = true;
}

static const struct http_call_hooks connect_hooks = { .upgrade = connect_upgrade,
                                                      .end = connect_end };

static void connect_start(struct connect *c, struct http_client *client)
{
        char text[128];
        struct sock_addr to;
        struct http_headers *h = &c->call.headers;

        memset(c, 0, sizeof(*c));
        arena_init(&c->arena, MiB);
        http_call_init(&c->call, &connect_hooks, &c->arena);
        http_ws_make_key(&group, c->key);
        (void) snprintf(text, sizeof(text), "unix:%s", world.path);
        check_i64_eq(sock_addr_from_string(str_from(text), &to), 0);
        c->call.method = STR("GET");
        c->call.target = STR("/ws");
        c->call.upgrade = STR("websocket");
        check_i64_eq(http_headers_add(h, &c->arena, STR("Host"), STR("x")), 0);
        check_i64_eq(http_headers_add(h, &c->arena, STR("Sec-WebSocket-Version"), STR("13")), 0);
        check_i64_eq(http_headers_add(h, &c->arena, STR("Sec-WebSocket-Key"),
                                      str_of(c->key, sizeof(c->key))),
                     0);
        http_ws_init_client(&client_ws, &group, &ops, NULL);
        http_call_start(client, &c->call, &to);
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void talks_to_our_server(void **state)
{
        struct http_client *client = http_client_new(&world.loop, NULL);
        struct connect c;
        bool freed = false;
        usec_t since = clock_mono(&clock_system);

        connect_start(&c, client);
        world_until(&world, &c.ended);
        check_i64_eq(c.result, 0);
        check_i64_eq(http_ws_send(&client_ws, WS_TEXT, STR("there")), 0);
        check_i64_eq(http_ws_send(&client_ws, WS_BINARY, STR("and back")), 0);
        while (pieces.n < 15 && clock_mono(&clock_system) - since < PEER_PATIENCE)
                world_turn(&world, 1);
        check_str_eq(buf_str(&pieces), "there|and back|");
        http_ws_close(&client_ws, WS_CLOSE_NORMAL, STR("enough"));
        until_closed();
        check_i64_eq(close_code, WS_CLOSE_NORMAL);
        http_client_free(client, set_flag, &freed);
        world_until(&world, &freed);
        arena_done(&c.arena);
}

static void keys(void **state)
{
        static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
        static const char accept[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        char made[HTTP_WS_KEY_SIZE], other[HTTP_WS_KEY_SIZE], text[WS_ACCEPT_SIZE];

        check_true(http_ws_accept_is_valid(str_from(key), str_from(accept)));
        check_false(http_ws_accept_is_valid(str_from(key), STR("S3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
        check_false(http_ws_accept_is_valid(STR("x"), str_from(accept)));
        check_false(http_ws_accept_is_valid(str_from(key), STR_NULL));
        http_ws_make_key(&group, made);
        http_ws_make_key(&group, other);
        check_i64_eq(ws_accept_key(str_of(made, sizeof(made)), text), 0);
        check_true(memcmp(made, other, sizeof(made)) != 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                TEST(masks_and_leaves_the_end_to_the_server),
                TEST(talks_to_our_server),
                TEST(keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
