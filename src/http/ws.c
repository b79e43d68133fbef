/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include "base/base.h"

/*
 * Theory of operation. Frames are appended to the stream's output and sent at the end of the loop
 * iteration. Nothing here frees or closes immediately: http_tunnel_close leads to tunnel_closed, from the
 * loop, which is the only place that calls ops->closed. So users may call any function from anywhere.
 */

/* With this much unsent output the sender must wait, and pongs are deferred. */
#define OUT_LOW (64 * KiB)

/* Output space that messages may not use, so that a close and a pong always fit. */
#define OUT_RESERVE (2 * (WS_HEAD_MAX + WS_CONTROL_MAX))

static struct http_ws *ws_of(struct http_tunnel *t)
{
        return container_of(t, struct http_ws, tunnel);
}

static struct http_ws *ws_of_parser(struct ws_parser *p)
{
        return container_of(p, struct http_ws, _parser);
}

/* --- output --- */

/* The caller has checked that it fits. */
static void add_frame(struct http_ws *ws, enum ws_opcode opcode, struct str payload)
{
        struct buf *out = &ws->tunnel.stream->out;
        struct ws_head head = { .opcode = opcode, .fin = true, .length = payload.n };
        uint8_t bytes[WS_HEAD_MAX];

        buf_add(out, bytes, ws_head_encode(&head, bytes));
        buf_add_str(out, payload);
        stream_queue_flush(ws->tunnel.stream);
}

bool http_ws_writable(const struct http_ws *ws)
{
        return ws->state == HTTP_WS_OPEN && ws->tunnel.stream
               && stream_pending(ws->tunnel.stream) < OUT_LOW;
}

/* --- closing --- */

static void set_close_code(struct http_ws *ws, uint16_t code, struct str reason)
{
        if (ws->_code != 0)
                return;
        ws->_code = code;
        ws->_pong_due = false;
        ws->_payload_n = (uint8_t) MIN_OF(reason.n, sizeof(ws->_payload));
        if (ws->_payload_n > 0)
                memcpy(ws->_payload, reason.p, ws->_payload_n);
}

static void send_close(struct http_ws *ws, uint16_t code, struct str reason)
{
        uint8_t payload[WS_CONTROL_MAX];
        size_t n = ws_close_encode(code, reason, payload);

        add_frame(ws, WS_CLOSE, str_of((const char *) payload, n));
        ws->state = HTTP_WS_CLOSING;
        timeout_set(&ws->_timeout, &ws->_group->_closes);
        http_tunnel_resume(&ws->tunnel); /* or the client's close would not be read */
}

/* Both sides have sent a close frame. The server closes the connection first (RFC 6455, 7.1.1), so that
 * TIME_WAIT is on its side. It sends FIN and waits for the client's, because unread input would reset the
 * connection before the client has read the close frame. */
static void ws_end(struct http_ws *ws)
{
        ws->state = HTTP_WS_ENDING;
        timeout_set(&ws->_timeout, &ws->_group->_closes);
        stream_shutdown(ws->tunnel.stream);
}

void http_ws_close(struct http_ws *ws, uint16_t code, struct str reason)
{
        if (ws->state == HTTP_WS_OPEN && ws->tunnel.stream)
                send_close(ws, code, reason);
}

static void ws_fail(struct http_ws *ws, uint16_t code, const char *reason)
{
        set_close_code(ws, code, str_from(reason));
        if (ws->state == HTTP_WS_OPEN)
                send_close(ws, code, str_from(reason));
        ws_end(ws);
}

int http_ws_send(struct http_ws *ws, enum ws_opcode opcode, struct str payload)
{
        if (ws->state != HTTP_WS_OPEN || !ws->tunnel.stream)
                return -EPIPE;
        if (payload.n > (ws_is_control(opcode) ? WS_CONTROL_MAX : HTTP_WS_SEND_MAX))
                return -EMSGSIZE;
        if (buf_room(&ws->tunnel.stream->out) < payload.n + WS_HEAD_MAX + OUT_RESERVE) {
                ws_fail(ws, WS_CLOSE_TRY_LATER, "the client does not read");
                return -ENOBUFS;
        }
        add_frame(ws, opcode, payload);
        return 0;
}

/* --- input --- */

static int got_data(struct ws_parser *p, enum ws_opcode opcode, unsigned flags, char *bytes,
                    size_t n)
{
        struct http_ws *ws = ws_of_parser(p);

        if (ws->state == HTTP_WS_OPEN)
                ws->ops->data(ws, opcode, flags, bytes, n);
        return 0;
}

/* Only the last ping needs a pong (RFC 6455, 5.5.3). */
static int got_ping(struct ws_parser *p, struct str payload)
{
        struct http_ws *ws = ws_of_parser(p);

        if (ws->state != HTTP_WS_OPEN)
                return 0;
        if (http_ws_writable(ws)) {
                add_frame(ws, WS_PONG, payload);
                return 0;
        }
        ws->_pong_due = true;
        ws->_payload_n = (uint8_t) payload.n;
        memcpy(ws->_payload, payload.p, payload.n);
        return 0;
}

static int got_pong(struct ws_parser *p, struct str payload)
{
        (void) p; /* any received byte counts, see ping_due */
        (void) payload;
        return 0;
}

static int got_close(struct ws_parser *p, uint16_t code, struct str reason)
{
        struct http_ws *ws = ws_of_parser(p);

        set_close_code(ws, code, reason);
        if (ws->state == HTTP_WS_OPEN)
                send_close(ws, code, STR("")); /* the code is echoed, as the RFC suggests */
        ws_end(ws);
        return 0;
}

static const struct ws_parser_ops parser_ops = {
        .data = got_data,
        .ping = got_ping,
        .pong = got_pong,
        .close = got_close,
};

static void tunnel_data(struct http_tunnel *t, char *p, size_t n)
{
        struct http_ws *ws = ws_of(t);

        if (ws->state == HTTP_WS_ENDING)
                return;
        if (ws_parser_feed(&ws->_parser, p, n) < 0)
                ws_fail(ws, ws->_parser.close_code, ws->_parser.reason);
}

static void tunnel_eof(struct http_tunnel *t)
{
        http_tunnel_close(t);
}

static void tunnel_drained(struct http_tunnel *t)
{
        struct http_ws *ws = ws_of(t);

        if (ws->state != HTTP_WS_OPEN)
                return;
        if (ws->_pong_due) {
                ws->_pong_due = false;
                add_frame(ws, WS_PONG, str_of(ws->_payload, ws->_payload_n));
        }
        if (ws->ops->drain)
                ws->ops->drain(ws);
}

static void tunnel_retire(struct http_tunnel *t)
{
        http_ws_close(ws_of(t), WS_CLOSE_GOING_AWAY, STR("the server stops"));
}

static void tunnel_closed(struct http_tunnel *t, int reason)
{
        struct http_ws *ws = ws_of(t);

        (void) reason;
        timeout_clear(&ws->_timeout);
        set_close_code(ws, WS_CLOSE_ABNORMAL, STR(""));
        ws->state = HTTP_WS_ENDING;
        ws->ops->closed(ws, ws->_code, str_of(ws->_payload, ws->_payload_n));
}

static const struct http_tunnel_ops tunnel_ops = {
        .data = tunnel_data,
        .eof = tunnel_eof,
        .drained = tunnel_drained,
        .closed = tunnel_closed,
        .retire = tunnel_retire,
};

void http_ws_pause(struct http_ws *ws)
{
        if (ws->state == HTTP_WS_OPEN)
                http_tunnel_pause(&ws->tunnel);
}

void http_ws_resume(struct http_ws *ws)
{
        if (ws->tunnel.paused)
                ws->_pinged = false; /* unread input is not silence */
        http_tunnel_resume(&ws->tunnel);
}

/* --- timers --- */

static void ping_due(struct timeout *t)
{
        struct http_ws *ws = container_of(t, struct http_ws, _timeout);
        const struct net_stream *st = ws->tunnel.stream;

        if (ws->_pinged && st->bytes_in == ws->_heard && st->reading) {
                http_tunnel_close(&ws->tunnel);
                return;
        }
        timeout_set(&ws->_timeout, &ws->_group->_pings);
        ws->_heard = st->bytes_in;
        ws->_pinged = http_ws_writable(ws);
        if (ws->_pinged)
                add_frame(ws, WS_PING, STR(""));
}

static void close_due(struct timeout *t)
{
        http_tunnel_close(&container_of(t, struct http_ws, _timeout)->tunnel);
}

void http_ws_group_init(struct http_ws_group *g, struct net_loop *l, usec_t ping_interval,
                        usec_t close_timeout)
{
        timeout_kind_init(&g->_pings, l, ping_interval, ping_due);
        timeout_kind_init(&g->_closes, l, close_timeout, close_due);
}

void http_ws_group_close(struct http_ws_group *g)
{
        timeout_kind_close(&g->_pings);
        timeout_kind_close(&g->_closes);
}

/* --- the handshake --- */

/* Replies and returns false if this is not a handshake we can accept. */
static bool check_handshake(struct http_req *req, char ret_accept[static WS_ACCEPT_SIZE])
{
        struct str key = http_req_header(req, STR("Sec-WebSocket-Key"));
        const char *wrong = NULL;

        if (!http_headers_has_token(&req->headers, STR("Upgrade"), STR("websocket"))
            || !str_eq(http_req_header(req, STR("Sec-WebSocket-Version")), STR("13"))) {
                http_res_header_const(req, STR("Sec-WebSocket-Version"), STR("13"));
                http_res_header_const(req, STR("Upgrade"), STR("websocket"));
                http_reply_error(req, 426, "UPGRADE_REQUIRED",
                                 "this path requires WebSocket, version 13");
                return false;
        }
        if (req->method != METHOD_GET || req->minor < 1 || req->has_body)
                wrong = "a WebSocket handshake is a GET of HTTP/1.1 without a body";
        else if (!http_headers_has_token(&req->headers, STR("Connection"), STR("upgrade")))
                wrong = "Connection must name upgrade";
        else if (http_headers_count(&req->headers, STR("Sec-WebSocket-Key")) != 1
                 || ws_accept_key(key, ret_accept) < 0)
                wrong = "Sec-WebSocket-Key must be 16 bytes in base64";
        if (wrong)
                http_reply_error(req, 400, "BAD_REQUEST", "%s", wrong);
        return !wrong;
}

int http_ws_accept(struct http_ws *ws, struct http_req *req, struct http_ws_group *g,
                   const struct http_ws_ops *ops, const struct http_ws_options *options)
{
        struct str ours = options ? options->protocols : STR_NULL, name;
        char accept[WS_ACCEPT_SIZE];
        int r;

        if (http_req_is_gone(req))
                return -ECONNRESET;
        if (!check_handshake(req, accept))
                return -EBADMSG;
        *ws = (struct http_ws){ .tunnel.ops = &tunnel_ops, .ops = ops, ._group = g };
        timeout_init(&ws->_timeout);
        ws_parser_init(&ws->_parser, WS_SERVER,
                       options && options->message_max ? options->message_max : HTTP_WS_MESSAGE_MAX,
                       &parser_ops);
        http_res_header_const(req, STR("Upgrade"), STR("websocket"));
        http_res_header_const(req, STR("Connection"), STR("Upgrade"));
        (void) http_res_header(req, STR("Sec-WebSocket-Accept"), str_of(accept, sizeof(accept)));
        /* Selects our first protocol that the client offers, too. If there is none, the response names
         * none, and the client decides whether to continue (RFC 6455, 4.2.2). */
        while (str_split(&ours, ',', &name)) {
                name = str_trim(name);
                if (name.n == 0
                    || !http_headers_has_token(&req->headers, STR("Sec-WebSocket-Protocol"), name))
                        continue;
                (void) http_res_header(req, STR("Sec-WebSocket-Protocol"), name);
                break;
        }
        r = http_req_upgrade(req, &ws->tunnel);
        if (r < 0) {
                http_reply_error(req, 400, "BAD_REQUEST", "the connection cannot be switched");
                return r;
        }
        if (g->_pings.length > 0)
                timeout_set(&ws->_timeout, &g->_pings);
        return 0;
}
