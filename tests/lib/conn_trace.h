/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_CONN_TRACE_H
#define HUTCH_TESTS_LIB_CONN_TRACE_H

/*
 * What a server connection made of some bytes, as text: each request that reached a handler with
 * its body, and how many were served and refused. Bytes are put into the connection
 * directly, in pieces; answers go to a real socket and are thrown away.
 */

#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/server.h"
#include "os/fd.h"
#include "tests/lib/pieces.h"

#define CONN_TRACE_MAX (4 * MiB)

struct conn_trace {
        struct net_loop loop;
        struct http_server *server;
        struct http_conn *conn; /* NULL once it was closed */
        int peer;
        struct buf *log;
};

static struct conn_trace *trace_of(struct http_req *req)
{
        return http_server_data(req->server);
}

static void trace_body(struct http_req *req, const char *p, size_t n)
{
        buf_add(trace_of(req)->log, p, n);
}

static void trace_end(struct http_req *req)
{
        buf_add_str(trace_of(req)->log, STR("|end\n"));
        http_reply(req, 200, STR("text/plain"), STR("ok"));
}

static void trace_abort(struct http_req *req, int reason)
{
        (void) reason; /* which one depends on when the end comes, and so on the pieces */
        buf_add_str(trace_of(req)->log, STR("|abort\n"));
}

static const struct http_hooks trace_hooks = { trace_body, trace_end, NULL, trace_abort };

static void trace_stream(struct http_req *req)
{
        buf_addf(trace_of(req)->log, "stream %.*s %.*s ", STR_ARG(req->method_name),
                 STR_ARG(req->target));
        http_req_set_hooks(req, &trace_hooks, NULL);
        http_body_start(req, 100 * KiB);
}

static void trace_collect(struct http_req *req)
{
        buf_addf(trace_of(req)->log, "%.*s %.*s %zu headers, param '%.*s' body '%.*s'\n",
                 STR_ARG(req->method_name), STR_ARG(req->target), req->headers.n,
                 STR_ARG(req->params[0]), STR_ARG(req->body));
        http_reply(req, 200, STR("text/plain"), req->body);
}

static const struct http_route trace_routes[] = {
        { METHOD_ANY, "/stream", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = trace_stream },
        { METHOD_POST, "/closed", .exec = trace_collect },
        { METHOD_ANY, "/{rest...}", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_COLLECT,
          .body_max = 1000, .exec = trace_collect },
};

static const struct http_api trace_api = {
        .name = "trace",
        .prefix = "",
        .routes = trace_routes,
        .n_routes = ARRAY_SIZE(trace_routes),
};

static inline void conn_trace_init(struct conn_trace *t)
{
        *t = (struct conn_trace){ .peer = -EBADF };
        ASSERT(net_loop_init(&t->loop, &clock_system) == 0);
        t->server = http_server_new(&t->loop, NULL, NULL);
        http_server_set_data(t->server, t);
        ASSERT(http_server_add_api(t->server, &trace_api) == 0);
}

static inline void conn_trace_done(struct conn_trace *t)
{
        http_server_free(t->server, NULL, NULL);
        net_loop_done(&t->loop);
}

static void trace_turn(struct conn_trace *t)
{
        char sink[4096];

        net_loop_run_once(&t->loop, /* wait= */ false);
        while (recv(t->peer, sink, sizeof(sink), MSG_DONTWAIT) > 0)
                ;
        if (list_empty(&t->server->conns) || t->conn->state == CONN_CLOSED)
                t->conn = NULL;
}

static int trace_feed(void *arg, char *p, size_t n)
{
        struct conn_trace *t = arg;

        if (!t->conn)
                return -ECONNRESET;
        /* As the stream does: a connection that does not read gets nothing. */
        for (int i = 0; t->conn && !t->conn->stream.reading && i < 100; i++)
                trace_turn(t);
        if (t->conn)
                t->conn->stream.ops->data(&t->conn->stream, p, n);
        trace_turn(t);
        return 0;
}

/* Runs the input through a fresh connection. *ret_log is the caller's to free. */
static inline void conn_trace_run(struct conn_trace *t, struct str input, struct cut cut,
                                  struct buf *ret_log)
{
        struct http_server_stats before = http_server_stats(t->server), after;
        int fds[2];

        buf_init(ret_log, CONN_TRACE_MAX);
        t->log = ret_log;
        ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        http_server_serve(t->server, fds[0]);
        t->conn = container_of(list_last(&t->server->conns), struct http_conn, node);
        t->peer = fds[1];

        (void) pieces_feed(input, cut, trace_feed, t);
        for (int i = 0; i < 3; i++)
                trace_turn(t);
        t->peer = fd_close(t->peer);
        for (int i = 0; i < 100 && !list_empty(&t->server->conns); i++)
                net_loop_run_once(&t->loop, /* wait= */ false);
        ASSERT(list_empty(&t->server->conns));
        ASSERT(t->server->live_reqs == 0);

        after = http_server_stats(t->server);
        /* Which of two mistakes is told first depends on the pieces; that one is told does not. */
        buf_addf(ret_log, "%llu served, %llu refused\n",
                 (unsigned long long) (after.responses[2] - before.responses[2]),
                 (unsigned long long) (after.responses[4] + after.responses[5] - before.responses[4]
                                       - before.responses[5]));
}

#endif
