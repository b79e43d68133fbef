/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_CALL_PROBE_H
#define HUTCH_TESTS_LIB_CALL_PROBE_H

/*
 * A client, a call that notes what it hears, and a listener whose connections the test answers
 * itself: it sends what no honest server would.
 */

#include "base/base.h"
#include "http/client.h"
#include "http/client_impl.h"
#include "tests/lib/wire.h"

static struct net_loop loop;
static struct http_client *client;
static struct wire_listener listener;
static bool client_freed;

struct probe {
        struct http_call call;
        struct arena arena;
        struct buf body;
        int heads, ends, drains;
        int result;
        bool cancel_in_body, pause_in_body, pause_tunnel, again;
        struct http_tunnel tunnel;
        struct buf tunneled;
        bool tunnel_closed, tunnel_eof;
        struct probe *next; /* started from end */
};

static inline struct probe *probe_of(struct http_call *call)
{
        return container_of(call, struct probe, call);
}

static inline void on_head(struct http_call *call)
{
        probe_of(call)->heads++;
}

static inline void on_body(struct http_call *call, const char *p, size_t n)
{
        struct probe *x = probe_of(call);

        buf_add(&x->body, p, n);
        if (x->cancel_in_body)
                http_call_cancel(call);
        if (x->pause_in_body)
                http_call_set_paused(call, true);
}

static inline void on_drain(struct http_call *call)
{
        probe_of(call)->drains++;
}

static inline void on_end(struct http_call *call, int r)
{
        struct probe *x = probe_of(call);

        x->ends++;
        x->result = r;
        if (x->next)
                http_call_start(client, &TAKE_PTR(x->next)->call, &listener.addr);
}

static inline void tunnel_data(struct http_tunnel *t, char *p, size_t n)
{
        buf_add(&container_of(t, struct probe, tunnel)->tunneled, p, n);
}

static inline void tunnel_eof(struct http_tunnel *t)
{
        container_of(t, struct probe, tunnel)->tunnel_eof = true;
}

static inline void tunnel_drained(struct http_tunnel *t)
{
        (void) t;
}

static inline void tunnel_closed(struct http_tunnel *t, int reason)
{
        (void) reason;
        container_of(t, struct probe, tunnel)->tunnel_closed = true;
}

static const struct http_tunnel_ops tunnel_ops = {
        .data = tunnel_data,
        .eof = tunnel_eof,
        .drained = tunnel_drained,
        .closed = tunnel_closed,
};

static inline struct http_tunnel *on_upgrade(struct http_call *call)
{
        struct probe *x = probe_of(call);

        x->tunnel = (struct http_tunnel){ .ops = &tunnel_ops };
        if (x->pause_tunnel)
                http_tunnel_pause(&x->tunnel);
        return &x->tunnel;
}

static const struct http_call_hooks hooks = {
        .head = on_head,
        .body = on_body,
        .drain = on_drain,
        .upgrade = on_upgrade,
        .end = on_end,
};

static inline void add_header(struct probe *x, struct str name, struct str value)
{
        check_i64_eq(http_headers_add(&x->call.headers, &x->arena, name, value), 0);
}

static inline void probe_init(struct probe *x, struct str method)
{
        *x = (struct probe){ 0 };
        arena_init(&x->arena, ARENA_MAX_REQUEST);
        buf_init(&x->body, WIRE_MAX);
        buf_init(&x->tunneled, WIRE_MAX);
        http_call_init(&x->call, &hooks, &x->arena);
        x->call.method = method;
        x->call.target = STR("/x");
        add_header(x, STR("Host"), STR("h"));
}

static inline void probe_done(struct probe *x)
{
        check_i64_eq(x->ends, 1);
        arena_done(&x->arena);
        buf_done(&x->body);
        buf_done(&x->tunneled);
}

static inline void start(struct probe *x)
{
        http_call_start(client, &x->call, &listener.addr);
        check_i64_eq(x->ends, 0);
}

/* Starts, accepts, and waits until the server has the head. */
static inline void start_and_accept(struct probe *x, struct wire_peer *server)
{
        start(x);
        wire_accept(&loop, &listener, server);
        wire_until(&loop, wire_has(server, "\r\n\r\n"));
}

static inline void end_with(struct probe *x, int r)
{
        wire_until(&loop, x->ends);
        check_i64_eq(x->result, r);
}

static inline void freed(void *data)
{
        (void) data;
        client_freed = true;
}

static struct http_client_config config;

static inline int setup(void **state)
{
        (void) state;
        check_case("");
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        config = http_client_defaults;
        client = http_client_new(&loop, &config);
        wire_listen(&listener);
        return 0;
}

static inline void remake_client(void)
{
        http_client_free(client, NULL, NULL);
        client = http_client_new(&loop, &config);
}

static inline int teardown(void **state)
{
        (void) state;
        client_freed = false;
        http_client_free(client, freed, NULL);
        wire_until(&loop, client_freed);
        wire_unlisten(&listener);
        net_loop_done(&loop);
        return 0;
}

#define HEAD_OK "HTTP/1.1 200 OK\r\n"

#endif
