/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client reads the same answer however it is cut, ends the call exactly once, and keeps nothing
 * alive afterwards. The first byte chooses the pieces, the second what was asked for: bit 0 HEAD,
 * bit 1 an upgrade. The bytes are put into the connection directly; the request goes to a socket
 * that no one reads.
 */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "http/client.h"
#include "http/client_impl.h"
#include "os/fd.h"
#include "tests/lib/pieces.h"

struct run {
        struct http_call call;
        struct arena arena;
        struct http_tunnel tunnel;
        struct http_client_conn *conn;
        struct net_loop *loop;
        struct buf log;
        int ends;
        bool tunnel_open;
};

static struct run *run_of(struct http_call *call)
{
        return container_of(call, struct run, call);
}

static void on_head(struct http_call *call)
{
        struct run *x = run_of(call);

        ASSERT(call->status >= 200 && call->status <= 599);
        buf_addf(&x->log, "%d, %zu headers, length %lld: ", call->status, call->response.n,
                 (long long) call->length);
}

static void on_body(struct http_call *call, const char *p, size_t n)
{
        struct run *x = run_of(call);

        ASSERT(call->status != 204 && call->status != 304 && call->method.p[0] != 'H');
        buf_add(&x->log, p, n);
}

static void tunnel_data(struct http_tunnel *t, char *p, size_t n)
{
        buf_add(&container_of(t, struct run, tunnel)->log, p, n);
}

static void tunnel_quiet(struct http_tunnel *t)
{
        (void) t;
}

static void tunnel_closed(struct http_tunnel *t, int reason)
{
        (void) reason;
        container_of(t, struct run, tunnel)->tunnel_open = false;
}

static const struct http_tunnel_ops tunnel_ops = {
        .data = tunnel_data,
        .eof = tunnel_quiet,
        .drained = tunnel_quiet,
        .closed = tunnel_closed,
};

static struct http_tunnel *on_upgrade(struct http_call *call)
{
        struct run *x = run_of(call);

        x->tunnel = (struct http_tunnel){ .ops = &tunnel_ops };
        x->tunnel_open = true;
        return &x->tunnel;
}

static void on_end(struct http_call *call, int r)
{
        struct run *x = run_of(call);

        x->ends++;
        /* Which of two mistakes is met first depends on the pieces; that one is met does not. */
        buf_addf(&x->log, "|%s\n", r == 0 ? "end" : r == -ECONNRESET ? "short" : "refused");
}

static const struct http_call_hooks hooks = { on_head, on_body, NULL, on_upgrade, on_end };

static int feed(void *arg, char *p, size_t n)
{
        struct run *x = arg;

        if (x->ends && !x->tunnel_open)
                return -ECONNRESET;
        x->conn->stream.ops->data(&x->conn->stream, p, n);
        return 0;
}

static void start(struct run *x, struct http_client *client, uint8_t what, int fd)
{
        arena_init(&x->arena, ARENA_MAX_REQUEST);
        buf_init(&x->log, 4 * MiB);
        http_call_init(&x->call, &hooks, &x->arena);
        x->call.method = what & 1 ? STR("HEAD") : STR("GET");
        x->call.target = STR("/");
        x->call.upgrade = what & 2 ? STR("x") : STR_NULL;
        http_call_start_fd(client, &x->call, fd);
        x->conn = x->call._conn;
}

static struct run run(struct http_client *client, struct str in, uint8_t what, struct cut cut)
{
        struct net_loop *loop = client->loop;
        struct run x = { .loop = loop };
        int fds[2];

        ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        start(&x, client, what, fds[0]);
        net_loop_run_once(loop, /* wait= */ false); /* the request leaves */
        (void) pieces_feed(in, cut, feed, &x);
        (void) fd_close(fds[1]); /* FIN */
        for (int i = 0; i < 100 && (!x.ends || http_client_stats(client).connections); i++) {
                if (x.tunnel_open)
                        http_tunnel_close(&x.tunnel);
                net_loop_run_once(loop, /* wait= */ false);
        }
        ASSERT(x.ends == 1 && !x.tunnel_open);
        ASSERT(http_client_stats(client).connections == 0);
        return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static struct net_loop loop;
        static struct http_client *client;
        struct run complete, cut;
        struct str in;

        if (!client) {
                ASSERT(net_loop_init(&loop, &clock_system) == 0);
                client = http_client_new(&loop, NULL);
        }
        if (n < 2)
                return 0;
        in = str_of((const char *) p + 2, n - 2);
        complete = run(client, in, p[1], CUT_NONE);
        cut = run(client, in, p[1], CUT_EVERY((size_t) p[0] + 1));
        ASSERT(str_eq(buf_str(&complete.log), buf_str(&cut.log)));
        arena_done(&complete.arena);
        arena_done(&cut.arena);
        buf_done(&complete.log);
        buf_done(&cut.log);
        return 0;
}
