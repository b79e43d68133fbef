/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/tunnel.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/proxy.h"
#include "net/stream.h"

/* A tunnel has two ends, the stream to the server and the WebSocket, and is freed with the last of them. Until
 * the protocol switch the request takes the place of the WebSocket. */

#define OUT_MAX (TUNNEL_LOW + NET_READ_SIZE)

#define WS_CLOSE_UNSUPPORTED 1003

struct tunnel {
        struct list node;
        struct tunnels *all;
        struct http_req *req; /* until the switch; then NULL */
        struct net_stream stream;
        struct http_ws ws;
        struct timeout timeout; /* for connect, then ping, then linger */
        struct local_port port;
        bool second; /* v6 is being tried */
        bool ws_open;
        uint16_t ws_ending; /* code to close with once everything was sent, or 0 */
        int failure;        /* of the last attempt to connect */
};

static void tunnel_free(struct tunnel *t)
{
        list_remove(&t->node);
        timeout_clear(&t->timeout);
        free(t);
}

static struct http_req *take_req(struct tunnel *t)
{
        http_req_set_hooks(t->req, NULL, NULL);
        return TAKE_PTR(t->req);
}

/* --- when one side ends --- */

/* A close waits for the client only briefly, so it is sent when nothing is left to be read before it. */
static void close_ws_when_sent(struct tunnel *t)
{
        if (t->ws_open && t->ws_ending != 0 && t->ws.tunnel.stream
            && stream_pending(t->ws.tunnel.stream) == 0)
                http_ws_close(&t->ws, t->ws_ending, STR(""));
}

/* Without its WebSocket the stream closes when both directions have ended. */
static void close_stream_when_done(struct tunnel *t)
{
        if (!t->ws_open && t->stream.eof && stream_pending(&t->stream) == 0)
                stream_close(&t->stream);
}

static bool is_orderly(uint16_t code)
{
        return code == WS_CLOSE_NORMAL || code == WS_CLOSE_GOING_AWAY || code == WS_CLOSE_NO_CODE
               || code >= 3000;
}

/* --- the client's side --- */

static void ws_data(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p, size_t n)
{
        struct tunnel *t = container_of(ws, struct tunnel, ws);

        (void) flags;
        if (opcode != WS_BINARY) {
                http_ws_close(ws, WS_CLOSE_UNSUPPORTED, STR("bytes travel in binary messages"));
                return;
        }
        if (t->stream._closing)
                return;
        stream_queue(&t->stream, str_of(p, n));
        if (stream_pending(&t->stream) >= TUNNEL_LOW)
                http_ws_pause(ws);
}

static void ws_drain(struct http_ws *ws)
{
        struct tunnel *t = container_of(ws, struct tunnel, ws);

        if (!t->stream._closing && !t->stream.eof)
                stream_resume_reading(&t->stream);
        close_ws_when_sent(t);
}

static void ws_closed(struct http_ws *ws, uint16_t code, struct str reason)
{
        struct tunnel *t = container_of(ws, struct tunnel, ws);

        (void) reason;
        t->ws_open = false;
        if (stream_is_closed(&t->stream)) {
                tunnel_free(t);
                return;
        }
        if (!is_orderly(code)) {
                stream_reset(&t->stream);
                return;
        }
        timeout_set(&t->timeout, &t->all->lingers);
        stream_shutdown(&t->stream);
        stream_resume_reading(&t->stream); /* discarded; only its end matters */
        close_stream_when_done(t);
}

static const struct http_ws_ops ws_ops = {
        .data = ws_data,
        .drain = ws_drain,
        .closed = ws_closed,
};

/* --- the server's side --- */

static void stream_data(struct net_stream *s, char *p, size_t n)
{
        struct tunnel *t = container_of(s, struct tunnel, stream);

        if (!t->ws_open)
                return;
        (void) http_ws_send(&t->ws, WS_BINARY, str_of(p, n));
        if (!http_ws_writable(&t->ws))
                stream_pause_reading(s);
}

static void stream_eof(struct net_stream *s)
{
        struct tunnel *t = container_of(s, struct tunnel, stream);

        t->ws_ending = WS_CLOSE_NORMAL;
        close_ws_when_sent(t);
        close_stream_when_done(t);
}

static void stream_drained(struct net_stream *s)
{
        struct tunnel *t = container_of(s, struct tunnel, stream);

        if (t->ws_open)
                http_ws_resume(&t->ws);
        close_stream_when_done(t);
}

static void stream_error(struct net_stream *s, int r)
{
        struct tunnel *t = container_of(s, struct tunnel, stream);

        t->failure = r;
        stream_close(s);
        if (!t->ws_open)
                return;
        t->ws_ending = WS_CLOSE_INTERNAL;
        close_ws_when_sent(t);
}

/* The request becomes a WebSocket. */
static void stream_connected(struct net_stream *s)
{
        /* Messages are not collected: they may have any size. */
        static const struct http_ws_options options = { .message_max = UINT64_MAX };
        struct tunnel *t = container_of(s, struct tunnel, stream);
        struct http_req *req = take_req(t);

        timeout_clear(&t->timeout);
        t->ws_open = http_ws_accept(&t->ws, req, &t->all->group, &ws_ops, &options) == 0;
        http_req_unref(req);
        if (!t->ws_open) {
                stream_close(s);
                return;
        }
        timeout_set(&t->timeout, &t->all->pings);
        stream_resume_reading(s);
}

static void connect_next(struct tunnel *t);

static void stream_closed(struct net_stream *s)
{
        struct tunnel *t = container_of(s, struct tunnel, stream);

        if (t->req)
                connect_next(t);
        else if (!t->ws_open)
                tunnel_free(t);
}

static const struct net_stream_ops stream_ops = {
        .data = stream_data,
        .eof = stream_eof,
        .drained = stream_drained,
        .error = stream_error,
        .closed = stream_closed,
        .connected = stream_connected,
};

/* --- connecting --- */

static int connect_to(struct tunnel *t, const struct sock_addr *to)
{
        int fd = -EBADF, r = sock_connect(to, &fd);
        bool later = r == -EINPROGRESS;

        if (r < 0 && !later)
                return r;
        r = later ? stream_open_connecting(&t->stream, t->all->loop, fd, OUT_MAX, &stream_ops)
                  : stream_open(&t->stream, t->all->loop, fd, OUT_MAX, &stream_ops);
        if (r < 0)
                return r;
        timeout_set(&t->timeout, &t->all->connects);
        if (!later)
                stream_connected(&t->stream);
        return 0;
}

/* The last attempt failed, and no stream is open. */
static void connect_next(struct tunnel *t)
{
        struct http_req *req;
        int r = t->failure;

        if (r == -ECONNREFUSED && !t->second) {
                t->second = true;
                r = connect_to(t, &t->port.v6);
        }
        if (r >= 0)
                return;
        req = take_req(t);
        http_reply_error(req, 502, CODE_RUNTIME_ERROR, "can't connect to port %u: %s",
                         (unsigned) t->port.number, strerror(-r));
        http_req_unref(req);
        tunnel_free(t);
}

/* The client disconnected, or the agent ends, before there was a connection. */
static void req_abort(struct http_req *req, int reason)
{
        struct tunnel *t = req->data;

        (void) reason;
        stream_close(&t->stream);
        http_req_unref(take_req(t));
}

static const struct http_hooks req_hooks = { .abort = req_abort };

/* --- timers --- */

static void connect_due(struct timeout *timeout)
{
        struct tunnel *t = container_of(timeout, struct tunnel, timeout);

        t->failure = -ETIMEDOUT;
        stream_close(&t->stream);
}

static void linger_due(struct timeout *timeout)
{
        stream_reset(&container_of(timeout, struct tunnel, timeout)->stream);
}

static void ping_due(struct timeout *timeout)
{
        struct tunnel *t = container_of(timeout, struct tunnel, timeout);

        timeout_set(&t->timeout, &t->all->pings);
        if (http_ws_writable(&t->ws))
                (void) http_ws_send(&t->ws, WS_PING, STR(""));
}

void tunnels_init(struct tunnels *ts, struct net_loop *loop)
{
        ts->loop = loop;
        list_init(&ts->all);
        http_ws_group_init(&ts->group, loop, /* ping_interval= */ 0, 5 * USEC_PER_SEC);
        timeout_kind_init(&ts->connects, loop, TUNNEL_CONNECT, connect_due);
        timeout_kind_init(&ts->lingers, loop, TUNNEL_LINGER, linger_due);
        timeout_kind_init(&ts->pings, loop, TUNNEL_PING, ping_due);
}

void tunnels_close(struct tunnels *ts)
{
        list_for_each (n, &ts->all)
                stream_reset(&container_of(n, struct tunnel, node)->stream);
        http_ws_group_close(&ts->group);
        timeout_kind_close(&ts->connects);
        timeout_kind_close(&ts->lingers);
        timeout_kind_close(&ts->pings);
}

/* --- the route --- */

static void get_tunnel(struct http_req *req)
{
        struct agent *a = agent_of(req);
        struct local_port port;
        struct tunnel *t;
        int r = local_port_from_string(a, req->params[0], &port);

        if (r < 0) {
                http_reply_error(req, r == -EPERM ? 403 : 400, CODE_INVALID_BODY, "%s",
                                 local_port_error(r));
                return;
        }
        if (!http_headers_has_token(&req->headers, STR("Upgrade"), STR("websocket"))) {
                http_res_header_const(req, STR("Upgrade"), STR("websocket"));
                http_res_header_const(req, STR("Sec-WebSocket-Version"), STR("13"));
                http_reply_error(req, 426, CODE_INVALID_BODY,
                                 "this path needs a WebSocket handshake");
                return;
        }
        t = xnew(struct tunnel);
        t->all = &a->tunnels;
        t->port = port;
        t->req = http_req_ref(req);
        list_append(&t->all->all, &t->node);
        timeout_init(&t->timeout);
        http_req_set_hooks(req, &req_hooks, t);
        http_req_abort_on_eof(req);
        t->failure = connect_to(t, &t->port.v4);
        if (t->failure < 0)
                connect_next(t);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/tunnel/{port}", .scope = SCOPE_TOKEN, .exec = get_tunnel },
};

const struct http_api api_tunnel = EXECD_API("tunnel", routes);
