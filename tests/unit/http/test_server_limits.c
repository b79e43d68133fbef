/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "tests/lib/http_peer.h"

/* What the server refuses, how long it waits, and how it ends. */

static struct world world;
static struct http_req *held;
static int abort_reason;
static uint64_t body_seen;

static void on_abort(struct http_req *req, int reason)
{
        abort_reason = reason;
}

static void on_body(struct http_req *req, const char *p, size_t n)
{
        body_seen += n;
}

static const struct http_hooks hooks = { .abort = on_abort, .body = on_body };

static void exec_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello\n"));
}

static void exec_later(struct http_req *req)
{
        if (held)
                http_req_unref(held);
        http_req_set_hooks(req, &hooks, NULL);
        held = http_req_ref(req);
}

static void exec_stream(struct http_req *req)
{
        exec_later(req);
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        http_stream_write(req, STR("begun"));
}

static void exec_upload(struct http_req *req)
{
        exec_later(req);
        http_body_start(req, 100);
}

static void exec_transfer(struct http_req *req)
{
        exec_later(req);
        http_body_start(req, HTTP_LENGTH_UNKNOWN);
}

static void exec_flood(struct http_req *req)
{
        static char zeros[1 * MiB];

        http_reply(req, 200, STR("application/octet-stream"), str_of(zeros, sizeof(zeros)));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/hello", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_hello },
        { METHOD_GET, "/flood", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_flood },
        { METHOD_POST, "/small", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .body_max = 10, .exec = exec_hello },
        { METHOD_GET, "/later", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_later },
        { METHOD_GET, "/stream", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_stream },
        { METHOD_POST, "/upload", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_upload },
        { METHOD_POST, "/transfer", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_transfer },
        { METHOD_POST, "/collect", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .exec = exec_hello },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void open_world(const struct http_server_config *config)
{
        held = NULL;
        abort_reason = 0;
        body_seen = 0;
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

/* --- nonsense --- */

#define POST "POST /small HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

static const struct {
        const char *text;
        int status;
} nonsense[] = {
        { POST HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400 },
        { POST HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: 3, 3\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: -1\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: +3\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: 0x3\r\n\r\nabc", 400 },
        { POST HOST "Content-Length: 99999999999999999999\r\n\r\nabc", 400 },
        { POST HOST "Content-Length : 3\r\n\r\nabc", 400 },
        { POST HOST "Transfer-Encoding: identity\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501 },
        { POST HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400 },
        { "POST /small HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n", 400 },
        { POST HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n A: b\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\nHost: x\n\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\n\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: x/y\r\n\r\n", 400 },
        { "GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n", 400 },
        { "GET hello HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET  /hello HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET /hello  HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET /hello RTSP/1.1\r\nHost: x\r\n\r\n", 505 },
        { "SOURCE /hello ICE/1.0\r\nHost: x\r\n\r\n", 505 },
        { "GET /hello\r\n\r\n", 505 },
        { "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "hello\r\n\r\n", 400 },
        { "\x16\x03\x01\x02\r\n\r\n", 400 },
        { "GET /hello HTTP/1.2\r\nHost: x\r\n\r\n", 505 },
        { "GET /hello HTTP/2.0\r\nHost: x\r\n\r\n", 505 },
        { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505 },
};

/* Whatever follows such a request must not be taken for another one. */
static void refuses_nonsense(void **state)
{
        struct http_server_config config = quick();

        open_world(&config);
        for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
                struct peer p;
                struct peer_reply a;

                check_case(nonsense[i].text);
                peer_open(&p, &world);
                peer_sendz(&p, nonsense[i].text);
                peer_sendz(&p, GET("/hello"));
                a = peer_response(&p);
                check_i64_eq(a.status, nonsense[i].status);
                check_str_eq(response_header(&a, "Connection"), "close");
                check_true(id_is_hex(response_header(&a, "X-Request-ID")));
                peer_until_eof(&p);
                check_u64_eq(p.in.n, 0);
                peer_close(&p);
        }
        check_u64_eq(http_server_stats(world.server).bad_requests, ARRAY_SIZE(nonsense));
        close_world();
}

/* --- sizes --- */

static void send_repeated(struct peer *p, const char *text, size_t n)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 4 * MiB);
        for (size_t i = 0; i < n; i++)
                buf_add_str(&b, str_from(text));
        peer_send(p, buf_str(&b));
}

static void limits_heads(void **state)
{
        static const struct {
                const char *name, *before, *repeated;
                size_t n;
                int status;
        } cases[] = {
                { "target", "GET /", "a", 17 * 1024, 414 },
                { "one field", "GET /hello HTTP/1.1\r\nHost: x\r\nA: ", "b", 70 * 1024, 431 },
                { "many fields", "GET /hello HTTP/1.1\r\nHost: x\r\n", "A: b\r\n", 200, 431 },
                { "never ending", "GET /hello HTTP/1.1\r\nHost: x\r\n", "A: b\r\n", 20000, 431 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_server_config config = quick();
                struct peer p;
                struct peer_reply a;

                check_case(cases[i].name);
                open_world(&config);
                peer_open(&p, &world);
                peer_sendz(&p, cases[i].before);
                send_repeated(&p, cases[i].repeated, cases[i].n);
                peer_sendz(&p, "\r\n\r\n");
                a = peer_response(&p);
                check_i64_eq(a.status, cases[i].status);
                peer_until_eof(&p);
                peer_close(&p);
                close_world();
        }
}

static void limits_bodies(void **state)
{
        struct http_server_config config = quick();
        struct peer p;
        struct peer_reply a;

        open_world(&config);
        check_case("announced, short enough to be read over");
        peer_open(&p, &world);
        a = peer_request(&p, POST HOST "Content-Length: 11\r\n\r\n01234567890" GET("/hello"));
        check_i64_eq(a.status, 413);
        a = peer_response(&p);
        check_i64_eq(a.status, 200);

        check_case("in chunks");
        a = peer_request(&p,
                         POST HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n567890\r\n"
                                   "0\r\n\r\n" GET("/hello"));
        check_i64_eq(a.status, 413);
        a = peer_response(&p);
        check_i64_eq(a.status, 200);

        check_case("announced, too long to be worth the connection");
        a = peer_request(&p, POST HOST "Content-Length: 1000000\r\n\r\n");
        check_i64_eq(a.status, 413);
        check_str_eq(response_header(&a, "Connection"), "close");
        peer_until_eof(&p);
        peer_close(&p);

        check_case("chunks without end");
        peer_open(&p, &world);
        peer_sendz(&p, POST HOST "Transfer-Encoding: chunked\r\n\r\n");
        send_repeated(&p, "10\r\n0123456789abcdef\r\n", 40000);
        a = peer_response(&p);
        check_i64_eq(a.status, 413);
        peer_close(&p);
        close_world();
}

/* A body may be bounded and the way it is wrapped be endless. */
static void limits_framing(void **state)
{
        static const struct {
                const char *name, *before, *repeated;
                size_t n;
                int status;
        } cases[] = {
                { "an extension", "1;", "a", 200 * 1024, 400 },
                { "many extensions", "", "1;abcdefghijklmnopqrstuvwxyz\r\na\r\n", 9, 0 },
                { "leading zeros", "", "0", 200 * 1024, 400 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_server_config config = quick();
                struct peer p;

                check_case(cases[i].name);
                open_world(&config);
                peer_open(&p, &world);
                peer_sendz(&p, POST HOST "Transfer-Encoding: chunked\r\n\r\n");
                peer_sendz(&p, cases[i].before);
                send_repeated(&p, cases[i].repeated, cases[i].n);
                if (cases[i].status == 0)
                        peer_sendz(&p, "0\r\n\r\n");
                check_i64_eq(peer_response(&p).status, cases[i].status ? cases[i].status : 200);
                peer_close(&p);
                close_world();
        }
}

static void tells_a_streaming_handler(void **state)
{
        struct http_server_config config = quick();
        struct peer p;

        open_world(&config);
        peer_open(&p, &world);
        check_i64_eq(peer_request(&p,
                                  "POST /upload HTTP/1.1\r\n" HOST
                                  "Transfer-Encoding: chunked\r\n\r\n40\r\n"
                                  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                  "\r\n40\r\n"
                                  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                  "\r\n0\r\n\r\n")
                             .status,
                     413);
        check_i64_eq(abort_reason, -EMSGSIZE);
        check_u64_eq(body_seen, 64);
        peer_close(&p);
        close_world();
}

/* --- times --- */

static void times_out(void **state)
{
        static const struct {
                const char *name, *text;
                size_t offset; /* of the timeout in the config */
                int status;    /* 0: closed without a word */
                int reason;
        } cases[] = {
                { "idle from the beginning", "", offsetof(struct http_server_config, idle_timeout),
                  0, 0 },
                { "head", "GET /hel", offsetof(struct http_server_config, head_timeout), 408, 0 },
                { "body", "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
                  offsetof(struct http_server_config, body_timeout), 408, -ETIMEDOUT },
                { "collected body", POST HOST "Content-Length: 9\r\n\r\nabc",
                  offsetof(struct http_server_config, body_timeout), 408, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_server_config config = quick();
                struct peer p;

                check_case(cases[i].name);
                *(usec_t *) (void *) ((char *) &config + cases[i].offset) = 20 * USEC_PER_MSEC;
                open_world(&config);
                peer_open(&p, &world);
                peer_sendz(&p, cases[i].text);
                if (cases[i].status)
                        check_i64_eq(peer_response(&p).status, cases[i].status);
                peer_until_eof(&p);
                check_u64_eq(p.in.n, 0);
                check_i64_eq(abort_reason, cases[i].reason);
                check_true(http_server_stats(world.server).timeouts >= 1);
                peer_close(&p);
                close_world();
        }
}

/* Bytes that trickle in win no time for a head. */
static void a_trickled_head_times_out(void **state)
{
        struct http_server_config config = quick();
        struct peer p;

        config.head_timeout = 50 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        peer_sendz(&p, "GET /hello HTTP/1.1\r\nA: ");
        for (peer_read(&p); p.in.n == 0; peer_read(&p))
                peer_sendz(&p, "b");
        check_i64_eq(peer_response(&p).status, 408);
        peer_close(&p);
        close_world();
}

#define DRIPS_MAX 500000

/* Sends a body byte by byte; how many there were when the server responded, DRIPS_MAX if it did not. */
static size_t drip(struct peer *p, const char *path, usec_t at_most)
{
        usec_t until = usec_add(net_loop_now(&world.loop), at_most);
        size_t n = 0;

        peer_sendz(p, path);
        peer_sendz(p, " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
        while (n < DRIPS_MAX && p->in.n == 0 && !p->eof && net_loop_now(&world.loop) < until) {
                peer_sendz(p, "x");
                n++;
                world_turn(&world, 1);
                peer_read(p);
        }
        return p->in.n > 0 ? n : DRIPS_MAX;
}

/* Nor do they for a body, if they are too few. */
static void a_body_needs_its_minimum_rate(void **state)
{
        static const char *const paths[] = { "POST /transfer", "POST /collect" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct http_server_config config = quick();
                struct peer p;

                check_case(paths[i]);
                config.body_timeout = 30 * USEC_PER_MSEC;
                config.body_rate_min = GiB;
                open_world(&config);
                peer_open(&p, &world);
                check_true(drip(&p, paths[i], PEER_TIMEOUT / 2) < DRIPS_MAX);
                check_i64_eq(peer_response(&p).status, 408);
                peer_until_eof(&p);
                check_u64_eq(http_server_stats(world.server).timeouts, 1);
                check_i64_eq(abort_reason, i == 0 ? -ETIMEDOUT : 0);
                peer_close(&p);
                close_world();
        }
}

/* A body that is collected has a deadline, whatever its rate; a transfer has none. */
static void a_collected_body_has_a_deadline(void **state)
{
        struct http_server_config config = quick();
        struct peer p, transfer;

        config.body_deadline = 30 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        check_true(drip(&p, "POST /collect", PEER_TIMEOUT / 2) < DRIPS_MAX);
        check_i64_eq(peer_response(&p).status, 408);
        peer_until_eof(&p);
        peer_open(&transfer, &world);
        check_u64_eq(drip(&transfer, "POST /transfer", 3 * config.body_deadline), DRIPS_MAX);
        check_true(body_seen > 0);
        check_i64_eq(abort_reason, 0);
        peer_close(&p);
        peer_close(&transfer);
        world_turn(&world, 3);
        close_world();
}

static void an_unread_answer_times_out(void **state)
{
        struct http_server_config config = quick();
        struct peer p;
        bool gone = false;

        config.write_timeout = 20 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/flood"));
        while (!gone) {
                world_turn(&world, 1);
                gone = http_server_stats(world.server).connections == 0;
        }
        peer_until_eof(&p);
        check_true(p.in.n < 1 * MiB);
        peer_close(&p);
        close_world();
}

static void a_waiting_handler_has_no_timeout(void **state)
{
        struct http_server_config config = quick();
        struct peer p;
        usec_t since;

        config.head_timeout = config.idle_timeout = config.body_timeout = config.write_timeout =
                10 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/later"));
        since = clock_mono(&clock_system);
        while (clock_mono(&clock_system) - since < 60 * USEC_PER_MSEC)
                world_turn(&world, 1);
        http_reply(held, 200, STR("text/plain"), STR("late"));
        check_i64_eq(peer_response(&p).status, 200);
        peer_close(&p);
        close_world();
}

/* --- the end --- */

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void drains(void **state)
{
        struct http_server_config config = quick();
        struct peer idle, busy;
        struct peer_reply a;

        open_world(&config);
        peer_open(&idle, &world);
        check_i64_eq(peer_request(&idle, GET("/hello")).status, 200);
        peer_open(&busy, &world);
        peer_sendz(&busy, GET("/later"));
        world_turn(&world, 3);
        http_server_drain(world.server, set_flag, &world.drained);
        peer_until_eof(&idle);
        check_false(world.drained);
        http_reply(held, 200, STR("text/plain"), STR("late"));
        http_req_unref(TAKE_PTR(held));
        a = peer_response(&busy);
        check_str_eq(a.body, "late");
        check_str_eq(response_header(&a, "Connection"), "close");
        peer_until_eof(&busy);
        peer_close(&busy);
        world_until(&world, &world.drained);
        check_true(access(world.path, F_OK) < 0);
        peer_close(&idle);
        close_world();
}

static void drain_aborts_what_lasts(void **state)
{
        struct http_server_config config = quick();
        struct peer p;

        config.drain_timeout = 20 * USEC_PER_MSEC;
        open_world(&config);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/stream"));
        peer_until_text(&p, "begun");
        http_server_drain(world.server, set_flag, &world.drained);
        peer_until_eof(&p);
        check_i64_eq(abort_reason, -ESHUTDOWN);
        check_true(http_req_is_gone(held));
        http_req_unref(TAKE_PTR(held));
        world_until(&world, &world.drained);
        peer_close(&p);
        close_world();
}

static void free_aborts_at_once(void **state)
{
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        peer_sendz(&p, GET("/stream"));
        peer_until_text(&p, "begun");
        http_server_free(world.server, set_flag, &world.freed);
        check_i64_eq(abort_reason, -ESHUTDOWN);
        http_req_unref(TAKE_PTR(held));
        world_until(&world, &world.freed);
        net_loop_done(&world.loop);
        check_i64_eq(rmdir(world.dir), 0);
        peer_close(&p);
}

static void makes_room(void **state)
{
        struct http_server_config config = quick();
        struct peer idle, busy, more, most;
        struct peer_reply a;

        config.conns_max = 2;
        open_world(&config);
        peer_open(&idle, &world);
        check_i64_eq(peer_request(&idle, GET("/hello")).status, 200);
        peer_open(&busy, &world);
        peer_sendz(&busy, GET("/later"));
        world_turn(&world, 3);

        check_case("the idle one goes");
        peer_open(&more, &world);
        peer_until_eof(&idle);
        check_u64_eq(http_server_stats(world.server).evicted, 1);
        peer_sendz(&more, GET("/stream"));
        peer_until_text(&more, "begun");

        check_case("no one can go");
        peer_open(&most, &world);
        a = peer_response(&most);
        check_i64_eq(a.status, 503);
        check_str_eq(response_header(&a, "Retry-After"), "1");
        peer_until_eof(&most);
        check_u64_eq(http_server_stats(world.server).refused, 1);

        peer_close(&idle);
        peer_close(&busy);
        peer_close(&more);
        peer_close(&most);
        world_turn(&world, 3);
        close_world();
}

static void an_unfinished_head_makes_room(void **state)
{
        struct http_server_config config = quick();
        struct peer slow, more;

        config.conns_max = 1;
        config.head_timeout = 60 * USEC_PER_SEC;
        open_world(&config);
        peer_open(&slow, &world);
        peer_sendz(&slow, "GET /hello HTTP/1.1\r\n");
        world_turn(&world, 3);
        peer_open(&more, &world);
        peer_until_eof(&slow);
        check_i64_eq(peer_request(&more, GET("/hello")).status, 200);
        peer_close(&slow);
        peer_close(&more);
        world_turn(&world, 3);
        close_world();
}

/* A body that trickles is never late, but it does not hold its place against others. */
static void a_stalled_body_makes_room(void **state)
{
        struct http_server_config config = quick();
        struct peer slow, more;
        bool turned_away = true;

        config.conns_max = 1;
        config.body_timeout = USEC_PER_SEC;
        open_world(&config);
        peer_open(&slow, &world);
        peer_sendz(&slow, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1");
        world_turn(&world, 3);
        /* Whoever is turned away is told so at once, unasked; try until one is not. */
        while (turned_away) {
                peer_open(&more, &world);
                world_turn(&world, 3);
                peer_read(&more);
                turned_away = more.eof || more.in.n > 0;
                if (turned_away)
                        peer_close(&more);
        }
        check_u64_eq(http_server_stats(world.server).evicted, 1);
        check_i64_eq(peer_request(&more, GET("/hello")).status, 200);
        peer_until_eof(&slow);
        peer_close(&slow);
        peer_close(&more);
        world_turn(&world, 3);
        close_world();
}

static struct str odd_shape(struct http_req *req, const struct http_problem *p, struct buf *b)
{
        buf_addf(b, "odd %d", p->status);
        return STR("text/odd");
}

static const struct http_api odd_api = { .name = "odd", .prefix = "/odd", .shape = odd_shape };

/* What can't be parsed is still answered in the words of the API it was meant for. */
static void errors_before_routing_have_the_shape_of_their_api(void **state)
{
        static const char *const requests[] = {
                "GET /odd/a HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
                "GET /odd HTTP/1.1\nHost: h\r\n\r\n",
                "GET /odd/x HTTP/1.1\r\n\r\n",
                "POST /odd HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
        };

        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                struct peer_reply a;
                struct peer p;

                check_case(requests[i]);
                open_world(NULL);
                check_i64_eq(http_server_add_api(world.server, &odd_api), 0);
                peer_open(&p, &world);
                a = peer_request(&p, requests[i]);
                check_i64_eq(a.status, 400);
                check_str_eq(response_header(&a, "Content-Type"), "text/odd");
                check_str_eq(a.body, "odd 400");
                peer_close(&p);
                world_turn(&world, 3);
                close_world();
        }
}

/* The route was wrong, and then the body is, too: the first response is given and stays the only. */
static void nonsense_behind_an_early_answer_does_not_take_it_back(void **state)
{
        struct peer p;

        open_world(NULL);
        peer_open(&p, &world);
        check_i64_eq(peer_request(&p, "POST /nowhere HTTP/1.1\r\nHost: h\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\nzz\r\n")
                             .status,
                     404);
        peer_until_eof(&p);
        check_u64_eq(p.in.n, 0);
        peer_close(&p);
        world_turn(&world, 3);
        close_world();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_nonsense),
                cmocka_unit_test(limits_heads),
                cmocka_unit_test(limits_bodies),
                cmocka_unit_test(limits_framing),
                cmocka_unit_test(tells_a_streaming_handler),
                cmocka_unit_test(times_out),
                cmocka_unit_test(a_trickled_head_times_out),
                cmocka_unit_test(a_body_needs_its_minimum_rate),
                cmocka_unit_test(a_collected_body_has_a_deadline),
                cmocka_unit_test(an_unread_answer_times_out),
                cmocka_unit_test(a_waiting_handler_has_no_timeout),
                cmocka_unit_test(drains),
                cmocka_unit_test(drain_aborts_what_lasts),
                cmocka_unit_test(free_aborts_at_once),
                cmocka_unit_test(makes_room),
                cmocka_unit_test(an_unfinished_head_makes_room),
                cmocka_unit_test(a_stalled_body_makes_room),
                cmocka_unit_test(errors_before_routing_have_the_shape_of_their_api),
                cmocka_unit_test(nonsense_behind_an_early_answer_does_not_take_it_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
