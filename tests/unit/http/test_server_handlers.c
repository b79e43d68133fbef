/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/server.h"
#include "tests/lib/http_peer.h"

/* Handlers that speak at odd moments, and what the server owes them and their clients then. */

static struct world world;
static struct http_req *held;
static int abort_reason;
static struct net_task later;

static void reply_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello\n"));
}

static void reply_later(struct net_task *t)
{
        reply_hello(held);
}

static void abort_noted(struct http_req *req, int reason)
{
        abort_reason = reason;
}

static void abort_replies(struct http_req *req, int reason)
{
        abort_reason = reason;
        reply_hello(req);
}

static void abort_replies_later(struct http_req *req, int reason)
{
        abort_reason = reason;
        net_task_queue(&world.loop, &later);
}

static void take_body(struct http_req *req, const struct http_hooks *hooks)
{
        held = http_req_ref(req);
        http_req_set_hooks(req, hooks, NULL);
        http_body_start(req, 100);
}

static void exec_replies(struct http_req *req)
{
        static const struct http_hooks hooks = { .abort = abort_replies };

        take_body(req, &hooks);
}

static void exec_replies_later(struct http_req *req)
{
        static const struct http_hooks hooks = { .abort = abort_replies_later };

        take_body(req, &hooks);
}

static void exec_streams(struct http_req *req)
{
        static const struct http_hooks hooks = { .abort = abort_noted };

        take_body(req, &hooks);
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
}

static void exec_talkative(struct http_req *req)
{
        http_stream_begin(req, 200, 3);
        http_stream_write(req, STR("more than was promised"));
        http_stream_write(req, STR("and more"));
        http_stream_end(req);
}

static void exec_medium(struct http_req *req)
{
        static const char zeros[8 * KiB];

        http_reply(req, 200, STR("application/octet-stream"), str_of(zeros, sizeof(zeros)));
}

static bool tunnel_is_closed;

static void tunnel_data(struct http_tunnel *t, char *p, size_t n)
{
}

static void tunnel_nothing(struct http_tunnel *t)
{
}

static void tunnel_closed(struct http_tunnel *t, int reason)
{
        tunnel_is_closed = true;
}

static void exec_switch(struct http_req *req)
{
        static const struct http_tunnel_ops ops = { .data = tunnel_data,
                                                    .eof = tunnel_nothing,
                                                    .drained = tunnel_nothing,
                                                    .closed = tunnel_closed };
        static struct http_tunnel tunnel;

        tunnel = (struct http_tunnel){ .ops = &ops };
        tunnel_is_closed = false;
        check_i64_eq(http_req_upgrade(req, &tunnel), 0);
}

static void exec_later(struct http_req *req)
{
        held = http_req_ref(req);
}

/* --- a body that is wanted late --- */

static struct buf body;
static struct peer *sender;

static void late_body(struct http_req *req, const char *p, size_t n)
{
        buf_add(&body, p, n);
}

static const struct http_hooks late_hooks = { .body = late_body, .body_end = reply_hello };

static void exec_late(struct http_req *req)
{
        held = http_req_ref(req);
        http_req_set_hooks(req, &late_hooks, NULL);
}

/* Wants the body and lets more of it come before the server's own task can run. */
static void want_body(struct net_task *t)
{
        http_body_start(held, 100);
        check_i64_eq(send(sender->fd, "cd", 2, 0), 2);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/late", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_late },
        { METHOD_GET, "/medium", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_medium },
        { METHOD_GET, "/switch", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_switch },
        { METHOD_GET, "/later", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_later },
        { METHOD_GET, "/hello", .scope = HTTP_SCOPE_PUBLIC, .exec = reply_hello },
        { METHOD_GET, "/talkative", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_talkative },
        { METHOD_POST, "/replies", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_replies },
        { METHOD_POST, "/replies-later", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_replies_later },
        { METHOD_POST, "/streams", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_streams },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

#define GET(path)        "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(path, rest) "POST " path " HTTP/1.1\r\nHost: x\r\n" rest
#define CHUNKED          "Transfer-Encoding: chunked\r\n\r\n"

static void open_world(const struct http_server_config *config)
{
        held = NULL;
        abort_reason = 0;
        net_task_init(&later, reply_later);
        world_open(&world, config, &api);
}

static void close_world(void)
{
        if (held)
                http_req_unref(TAKE_PTR(held));
        world_close(&world);
}

static struct http_server_config quick(void)
{
        struct http_server_config c = http_server_defaults;

        c.linger_timeout = 20 * USEC_PER_MSEC;
        return c;
}

/* --- once the server has answered in the handler's place --- */

static void replies_after_a_refusal_do_nothing(void **state)
{
        static const struct {
                const char *text;
                int status, reason;
        } cases[] = {
                { POST("/replies", CHUNKED "zz\r\n"), 200, -EBADMSG },
                { POST("/replies", "Content-Length: 101\r\n\r\n"), 200, -EMSGSIZE },
                { POST("/replies", "Content-Length: 9\r\n\r\nabc"), 200, -ETIMEDOUT },
                { POST("/replies-later", CHUNKED "zz\r\n"), 400, -EBADMSG },
                { POST("/replies-later", CHUNKED "65\r\n"
                                                 "0123456789012345678901234567890123456789"
                                                 "0123456789012345678901234567890123456789"
                                                 "012345678901234567890\r\n"),
                  413, -EMSGSIZE },
                { POST("/replies-later", "Content-Length: 101\r\n\r\n"), 413, -EMSGSIZE },
                { POST("/replies-later", "Content-Length: 9\r\n\r\nabc"), 408, -ETIMEDOUT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_server_config config = quick();
                struct peer p;

                check_case(cases[i].text);
                config.body_timeout = 20 * USEC_PER_MSEC;
                open_world(&config);
                peer_open(&p, &world);
                peer_sendz(&p, cases[i].text);
                check_i64_eq(peer_response(&p).status, cases[i].status);
                check_i64_eq(abort_reason, cases[i].reason);
                world_turn(&world, 3);
                peer_read(&p);
                check_u64_eq(p.in.n, 0);
                check_true(http_req_is_gone(held));
                peer_close(&p);
                close_world();
        }
}

static void nonsense_ends_a_streamed_response(void **state)
{
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        peer_sendz(&p, POST("/streams", CHUNKED));
        peer_until_text(&p, "\r\n\r\n");
        peer_sendz(&p, "zz\r\n");
        peer_until_eof(&p);
        check_i64_eq(abort_reason, -EBADMSG);
        peer_close(&p);
        close_world();
}

static void writing_past_the_promised_length_breaks_off(void **state)
{
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/talkative"));
        peer_until_eof(&p);
        check_true(memmem(buf_str(&p.in).p, p.in.n, "more", 4) == NULL);
        peer_close(&p);
        close_world();
}

/* --- answers that wait for their client --- */

static const struct http_conn *only_conn(void)
{
        check_false(list_empty(&world.server->conns));
        return container_of(world.server->conns.next, struct http_conn, node);
}

/* Without turning the loop. */
static void send_now(const struct peer *p, const char *text)
{
        size_t n = strlen(text);

        check_i64_eq(send(p->fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT), (int64_t) n);
}

/* The response is queued and the connection idle, but nothing has left yet. */
static void an_answer_is_not_evicted(void **state)
{
        struct http_server_config config = quick();
        struct peer asking, more;

        config.conns_max = 1;
        open_world(&config);
        peer_open(&asking, &world);
        send_now(&asking, GET("/hello"));
        peer_open(&more, &world);
        check_i64_eq(peer_response(&asking).status, 200);
        peer_close(&asking);
        peer_close(&more);
        world_turn(&world, 3);
        close_world();
}

/* A client that reads nothing and switches protocols meanwhile. */
static void a_tunnel_keeps_the_write_timeout(void **state)
{
        struct http_server_config config = quick();
        struct peer p;

        config.write_timeout = 50 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        while (!only_conn()->stream._blocked) {
                send_now(&p, GET("/medium"));
                world_turn(&world, 1);
        }
        peer_sendz(&p, "GET /switch HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                       "Upgrade: raw\r\n\r\n");
        world_turn(&world, 1);
        check_i64_eq(only_conn()->state, CONN_TUNNEL);
        world_until(&world, &tunnel_is_closed);
        peer_close(&p);
        close_world();
}

static void what_was_held_back_goes_on_with_what_comes(void **state)
{
        struct net_task task;
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        sender = &p;
        buf_init(&body, 100);
        peer_sendz(&p, POST("/late", "Content-Length: 4\r\n\r\nab"));
        world_turn(&world, 3);
        check_true(held);
        net_task_init(&task, want_body);
        net_task_queue(&world.loop, &task);
        check_i64_eq(peer_response(&p).status, 200);
        check_str_eq(buf_str(&body), "abcd");
        buf_done(&body);
        peer_close(&p);
        close_world();
}

/* --- the end --- */

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void freeing_ends_draining(void **state)
{
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/later"));
        world_turn(&world, 3);
        http_server_drain(world.server, set_flag, &world.drained);
        http_req_unref(TAKE_PTR(held));
        close_world();
        check_false(world.drained);
        peer_close(&p);
}

static void drained_is_called_from_the_loop(void **state)
{
        struct peer p;

        check_case("a handler gives up the last request");
        open_world(NULL);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/later"));
        world_turn(&world, 3);
        peer_close(&p);
        http_server_drain(world.server, set_flag, &world.drained);
        http_reply_empty(held, 204);
        while (http_server_stats(world.server).connections > 0)
                world_turn(&world, 1);
        world_turn(&world, 3);
        http_req_unref(TAKE_PTR(held));
        check_false(world.drained);
        world_until(&world, &world.drained);
        close_world();

        check_case("there was nothing");
        check_i64_eq(net_loop_init(&world.loop, &clock_system), 0);
        world.server = http_server_new(&world.loop, NULL, NULL);
        world.drained = world.freed = false;
        http_server_drain(world.server, set_flag, &world.drained);
        check_false(world.drained);
        world_until(&world, &world.drained);
        http_server_free(world.server, set_flag, &world.freed);
        world_until(&world, &world.freed);
        net_loop_done(&world.loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(replies_after_a_refusal_do_nothing),
                cmocka_unit_test(nonsense_ends_a_streamed_response),
                cmocka_unit_test(writing_past_the_promised_length_breaks_off),
                cmocka_unit_test(an_answer_is_not_evicted),
                cmocka_unit_test(a_tunnel_keeps_the_write_timeout),
                cmocka_unit_test(what_was_held_back_goes_on_with_what_comes),
                cmocka_unit_test(freeing_ends_draining),
                cmocka_unit_test(drained_is_called_from_the_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
