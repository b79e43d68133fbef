/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/relay.h"

#include <sys/socket.h>

#include "base/base.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "http/tunnel.h"
#include "model/text.h"
#include "os/fd.h"

/* Bytes that wait for one side before the other is paused. */
#define HOLD (256 * KiB)

#define LOCAL_OUT_MAX (HOLD + 2 * NET_READ_SIZE)

static const char exec_body[] =
        "{\"AttachStdin\":true,\"AttachStdout\":true,\"AttachStderr\":false,"
        "\"Tty\":false,\"Cmd\":[\"" INSIDE_AGENT "\",\"--relay=" INSIDE_SOCKET "\"]}";
static const char start_body[] = "{\"Detach\":false,\"Tty\":false}";

struct relay {
        struct list node;
        struct engine_worker *worker;
        struct relay_wait *waiting; /* NULL: none, or done */
        struct api_call api;        /* creates the exec instance */
        struct http_call call;      /* starts it */
        char target[128];
        int theirs; /* the other end of the pair, until it is handed over */
        bool asking, calling;
        bool tunnel_open, local_open;
        struct http_tunnel tunnel;
        struct net_stream local;
        struct demux demux;
};

static void check_end(struct relay *r)
{
        struct engine_worker *w = r->worker;

        if (r->asking || r->calling || r->tunnel_open || r->local_open)
                return;
        list_remove(&r->node);
        if (r->waiting)
                r->waiting->_relay = NULL;
        (void) fd_close(r->theirs);
        api_call_done(&r->api);
        free(r);
        engine_worker__part_closed(w);
}

static void close_both(struct relay *r)
{
        if (r->tunnel_open)
                http_tunnel_close(&r->tunnel);
        if (r->local_open)
                stream_close(&r->local);
}

static void relay_finish(struct relay *r, int code, int fd)
{
        struct relay_wait *x = TAKE_PTR(r->waiting);

        if (!x) {
                (void) fd_close(fd);
                return;
        }
        x->_relay = NULL;
        x->done(x, code, fd);
}

/* --- frames --- */

enum { STDIN, STDOUT, STDERR };

bool demux_next(struct demux *d, struct str *bytes, struct str *ret, int *ret_error)
{
        size_t n;

        *ret_error = 0;
        *ret = STR("");
        if (bytes->n == 0)
                return false;
        if (d->left == 0) {
                n = MIN_OF(sizeof(d->head) - d->n, bytes->n);
                memcpy(d->head + d->n, bytes->p, n);
                *bytes = str_skip(*bytes, n);
                d->n += n;
                if (d->n < sizeof(d->head))
                        return false;
                d->n = 0;
                d->left = (uint32_t) d->head[4] << 24 | (uint32_t) d->head[5] << 16
                          | (uint32_t) d->head[6] << 8 | d->head[7];
                if (d->head[0] > STDERR || d->head[1] || d->head[2] || d->head[3])
                        *ret_error = -EBADMSG;
                return *ret_error == 0;
        }
        n = MIN_OF((size_t) d->left, bytes->n);
        if (d->head[0] == STDOUT)
                *ret = str_of(bytes->p, n);
        *bytes = str_skip(*bytes, n);
        d->left -= (uint32_t) n;
        return true;
}

/* --- from the engine --- */

static void tunnel_data(struct http_tunnel *t, char *p, size_t n)
{
        struct relay *r = container_of(t, struct relay, tunnel);
        struct str bytes = str_of(p, n), piece;
        int error = 0;

        while (r->local_open && demux_next(&r->demux, &bytes, &piece, &error))
                if (piece.n > 0)
                        stream_queue(&r->local, piece);
        if (error < 0)
                return close_both(r);
        if (r->local_open && stream_pending(&r->local) > HOLD)
                http_tunnel_pause(t);
}

static void tunnel_eof(struct http_tunnel *t)
{
        http_tunnel_close(t);
}

static void tunnel_drained(struct http_tunnel *t)
{
        struct relay *r = container_of(t, struct relay, tunnel);

        if (r->local_open && !r->local.eof)
                stream_resume_reading(&r->local);
}

static void tunnel_closed(struct http_tunnel *t, int reason)
{
        struct relay *r = container_of(t, struct relay, tunnel);

        (void) reason;
        r->tunnel_open = false;
        if (r->local_open && r->local.eof)
                stream_close(&r->local);
        else if (r->local_open)
                stream_shutdown(&r->local);
        check_end(r);
}

static const struct http_tunnel_ops tunnel_ops = {
        .data = tunnel_data,
        .eof = tunnel_eof,
        .drained = tunnel_drained,
        .closed = tunnel_closed,
};

/* --- from hutchd --- */

static void local_data(struct net_stream *s, char *p, size_t n)
{
        struct relay *r = container_of(s, struct relay, local);

        if (!r->tunnel_open || !r->tunnel.stream)
                return;
        stream_queue(r->tunnel.stream, str_of(p, n));
        if (stream_pending(r->tunnel.stream) > HOLD)
                stream_pause_reading(s);
}

static void local_eof(struct net_stream *s)
{
        struct relay *r = container_of(s, struct relay, local);

        if (r->tunnel_open && r->tunnel.stream)
                stream_shutdown(r->tunnel.stream);
        else
                stream_close(s);
}

static void local_drained(struct net_stream *s)
{
        struct relay *r = container_of(s, struct relay, local);

        if (r->tunnel_open)
                http_tunnel_resume(&r->tunnel);
}

static void local_error(struct net_stream *s, int e)
{
        (void) e;
        close_both(container_of(s, struct relay, local));
}

static void local_closed(struct net_stream *s)
{
        struct relay *r = container_of(s, struct relay, local);

        r->local_open = false;
        check_end(r);
}

static const struct net_stream_ops local_ops = {
        .data = local_data,
        .eof = local_eof,
        .drained = local_drained,
        .error = local_error,
        .closed = local_closed,
};

/* --- opening --- */

static void call_head(struct http_call *call)
{
        (void) call; /* only the upgrade counts */
}

static void call_body(struct http_call *call, const char *p, size_t n)
{
        (void) call, (void) p, (void) n;
}

static struct http_tunnel *call_upgrade(struct http_call *call)
{
        struct relay *r = container_of(call, struct relay, call);
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return NULL;
        r->theirs = pair[1];
        if (stream_open(&r->local, r->worker->loop, pair[0], LOCAL_OUT_MAX, &local_ops) < 0)
                return NULL;
        r->local_open = r->tunnel_open = true;
        r->tunnel = (struct http_tunnel){ .ops = &tunnel_ops };
        stream_resume_reading(&r->local);
        return &r->tunnel;
}

static void call_end(struct http_call *call, int e)
{
        struct relay *r = container_of(call, struct relay, call);

        r->calling = false;
        if (r->tunnel_open) {
                relay_finish(r, 0, TAKE_FD(r->theirs));
        } else if (r->waiting) {
                int code = err_set(&r->waiting->err, ERR_UNAVAILABLE,
                                   "the engine provides no stream to the agent: %s",
                                   e < 0 ? err_text(e) : "it did not upgrade the connection");

                relay_finish(r, code, -EBADF);
        }
        check_end(r);
}

static const struct http_call_hooks call_hooks = {
        .head = call_head,
        .body = call_body,
        .upgrade = call_upgrade,
        .end = call_end,
};

static void start_process(struct relay *r, struct str id)
{
        struct http_call *call = &r->call;
        struct arena *a = &r->api.arena;

        (void) snprintf(r->target, sizeof(r->target), API_BASE "/exec/%.*s/start", STR_ARG(id));
        http_call_init(call, &call_hooks, a);
        call->method = STR("POST");
        call->target = str_from(r->target);
        call->upgrade = STR("tcp");
        http_call_set_body(call, str_from(start_body));
        if (http_headers_add(&call->headers, a, STR("Host"), STR("engine")) < 0
            || http_headers_add(&call->headers, a, STR("Content-Type"), STR("application/json"))
                       < 0)
                call->target = STR("");
        r->calling = true;
        http_call_start(r->worker->streams, call, &r->worker->engine);
}

static void process_made(struct api_call *k)
{
        struct relay *r = container_of(k, struct relay, api);
        struct str id = STR_NULL;
        struct err e;
        int code = 0;

        r->asking = false;
        if (!r->waiting)
                return check_end(r);
        if (k->result < 0)
                code = api_call_error(k, &e, "reach the agent");
        else if (k->status == 404)
                code = err_set(&e, ERR_NOT_FOUND, "there is no such sandbox");
        else if (!api_call_ok(k))
                code = err_set(&e, ERR_UNAVAILABLE,
                               "its agent does not respond: the sandbox is not running");
        else
                code = engine_exec_decode(buf_str(&k->response), &k->arena, &id, &e);
        if (code < 0) {
                r->waiting->err = e;
                relay_finish(r, code, -EBADF);
                return check_end(r);
        }
        return start_process(r, id);
}

void relay_open(struct engine_worker *w, struct relay_wait *x, const char *container)
{
        struct relay *r = xnew(struct relay);

        r->worker = w;
        r->waiting = x;
        r->theirs = -EBADF;
        x->_relay = r;
        w->open++;
        list_append(&w->relays, &r->node);
        api_call_init(&r->api, w);
        api_call_reset(&r->api);
        api_call_target(&r->api, "/containers/%s/exec", container);
        buf_add_str(&r->api.body, str_from(exec_body));
        r->asking = true;
        api_call_start(&r->api, "POST", /* stream= */ false, process_made);
}

void relay_detach(struct relay_wait *x)
{
        struct relay *r = TAKE_PTR(x->_relay);

        if (r)
                r->waiting = NULL;
}

void relays_close(struct engine_worker *w)
{
        list_for_each (n, &w->relays) {
                struct relay *r = container_of(n, struct relay, node);

                close_both(r);
                if (r->asking)
                        api_call_cancel(&r->api);
                else if (r->calling)
                        http_call_cancel(&r->call);
        }
}
