/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_PROXY_WORLD_H
#define HUTCH_TESTS_LIB_PROXY_WORLD_H

/*
 * A client played by the test, our server with a proxy route, and a server behind that is either
 * the test again or our own.
 */

#include "base/base.h"
#include "http/client_impl.h"
#include "http/conn.h"
#include "http/proxy.h"
#include "http/server_impl.h"
#include "tests/lib/wire.h"

static struct net_loop loop;
static struct http_server *front, *back;
static struct http_client *client;
static struct wire_listener listener;
static struct sock_addr front_addr;
static struct http_client_config config;
static struct http_proxy_target target; /* what the route adds to the path */
static bool target_by_fd;
static bool early_header; /* the route adds one to the response before it calls the proxy */
static bool hold;         /* the route only keeps the request, for proxy_held */
static struct http_req *held;
static int freed_count;

/* --- the front --- */

static inline void exec_proxy(struct http_req *req)
{
        struct http_proxy_target t = target;

        if (hold) {
                held = http_req_ref(req);
                return;
        }

        if (early_header)
                http_res_header_const(req, STR("X-Early"), STR("1"));
        t.client = client;
        t.addr = target_by_fd ? NULL : &listener.addr;
        t.prefix = STR("/");
        t.path = req->params[0];
        if (target_by_fd)
                check_i64_eq(sock_connect(&listener.addr, &t.fd), 0);
        http_proxy(req, &t);
}

static inline void proxy_held(void)
{
        struct http_req *req = TAKE_PTR(held);

        hold = false;
        exec_proxy(req);
        http_req_unref(req);
}

static const struct http_route front_routes[] = {
        { METHOD_ANY, "/p/{rest...}", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_proxy },
};

static const struct http_api front_api = {
        .name = "front", .prefix = "", .routes = front_routes, .n_routes = ARRAY_SIZE(front_routes)
};

/* --- our own server behind --- */

static inline void exec_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello"));
}

static inline void exec_echo(struct http_req *req)
{
        scoped(buf_done) struct buf b;
        struct str text;

        buf_init(&b, 64 * KiB);
        buf_addf(&b, "%.*s %.*s\n", STR_ARG(req->method_name), STR_ARG(req->target));
        for (size_t i = 0; i < req->headers.n; i++)
                buf_addf(&b, "%.*s: %.*s\n", STR_ARG(req->headers.v[i].name),
                         STR_ARG(req->headers.v[i].value));
        buf_addf(&b, "\n%.*s", STR_ARG(req->body));
        text = arena_dup_str(&req->arena, buf_str(&b));
        http_reply(req, 200, STR("text/plain"), text);
}

static inline void exec_empty(struct http_req *req)
{
        http_reply_empty(req, 200);
}

static inline void exec_none(struct http_req *req)
{
        http_reply_empty(req, 204);
}

static const struct http_route back_routes[] = {
        { METHOD_GET, "/hello", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_hello },
        { METHOD_ANY, "/echo/{rest...}", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .exec = exec_echo },
        { METHOD_GET, "/empty", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_empty },
        { METHOD_GET, "/none", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_none },
};

static const struct http_api back_api = {
        .name = "back", .prefix = "", .routes = back_routes, .n_routes = ARRAY_SIZE(back_routes)
};

/* --- set-up --- */

static inline int setup(void **state)
{
        int fd = -EBADF;

        (void) state;
        check_case("");
        target = (struct http_proxy_target){ 0 };
        target_by_fd = hold = early_header = false;
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        config = http_client_defaults;
        client = http_client_new(&loop, &config);
        wire_listen(&listener);
        front = http_server_new(&loop, NULL, NULL);
        check_i64_eq(http_server_add_api(front, &front_api), 0);
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &front_addr), 0);
        check_i64_eq(sock_listen(&front_addr, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &front_addr), 0);
        check_i64_eq(http_server_listen(front, fd), 0);
        return 0;
}

/* From now on our own server is the one behind. */
static inline void serve_back(void)
{
        back = http_server_new(&loop, NULL, NULL);
        check_i64_eq(http_server_add_api(back, &back_api), 0);
        check_i64_eq(http_server_listen(back, TAKE_FD(listener.fd)), 0);
}

static inline void remake_client(void)
{
        http_client_free(client, NULL, NULL);
        client = http_client_new(&loop, &config);
}

static inline void freed(void *data)
{
        (void) data;
        freed_count++;
}

static inline int teardown(void **state)
{
        int want = back ? 3 : 2;

        (void) state;
        freed_count = 0;
        http_server_free(front, freed, NULL);
        if (back)
                http_server_free(TAKE_PTR(back), freed, NULL);
        http_client_free(client, freed, NULL);
        wire_until(&loop, freed_count == want);
        wire_unlisten(&listener);
        net_loop_done(&loop);
        return 0;
}

/* --- steps --- */

/* Sends a request to the front and collects the response until `last`. The connection is closed. */
static inline void send_request(struct wire_peer *c, const char *request, const char *last)
{
        wire_connect(c, &front_addr);
        wire_send(&loop, c, str_from(request));
        wire_until(&loop, wire_has(c, last));
}

/* Sends a request to the front and takes it at the back. */
static inline void pass(struct wire_peer *c, struct wire_peer *server, const char *request)
{
        wire_connect(c, &front_addr);
        wire_send(&loop, c, str_from(request));
        wire_accept(&loop, &listener, server);
        wire_until(&loop, wire_has(server, "\r\n\r\n"));
}

static inline void both_done(struct wire_peer *c, struct wire_peer *server)
{
        wire_done(c);
        wire_done(server);
        wire_settle(&loop);
}

static inline size_t count(struct wire_peer *p, const char *text)
{
        struct str s = buf_str(&p->in);
        size_t n = 0;
        const char *at;

        while ((at = memmem(s.p, s.n, text, strlen(text)))) {
                n++;
                s = str_skip(s, (size_t) (at - s.p) + strlen(text));
        }
        return n;
}

#define GET_X "GET /p/x HTTP/1.1\r\nHost: h\r\n\r\n"
#define OK    "HTTP/1.1 200 OK\r\n"

/* --- much --- */

#define BIG (64 * MiB)

static size_t high_water;

static inline void note_high_water(void)
{
        list_for_each (n, &front->conns) {
                struct http_conn *c = container_of(n, struct http_conn, node);

                high_water = MAX_OF(high_water, c->stream.out.n + c->pending.n);
        }
        list_for_each (n, &client->conns) {
                struct http_client_conn *c = container_of(n, struct http_client_conn, node);

                high_water = MAX_OF(high_water, c->stream.out.n);
        }
}

/* The sender pushes whenever it can. The reader takes nothing until everything stands still, so
 * that all buffers on the way are full, and then little at a time. */
static inline void stream_big(struct wire_peer *from, struct wire_peer *to)
{
        static const char chunk[64 * 1024];
        size_t sent = 0, got = 0;

        high_water = 0;
        wire_forget(to);
        for (unsigned still = 0; got < BIG;) {
                size_t want = MIN_OF(sizeof(chunk), BIG - sent);
                ssize_t n = want ? send(from->fd, chunk, want, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

                sent += n > 0 ? (size_t) n : 0;
                still = n > 0 && got == 0 ? 0 : still + 1;
                if (still > 100) {
                        got += wire_read(to, 64 * KiB) ? to->in.n : 0;
                        wire_forget(to);
                        check_false(to->eof);
                }
                net_loop_run_once(&loop, /* wait= */ false);
                note_high_water();
        }
        check_u64_eq(got, BIG);
        check_true(high_water > 0 && high_water <= 256 * KiB);
}

#endif
