/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/e2e/demo/demo.h"
#include "tests/lib/ws_collector.h"

/* --- events: as many as asked for, or without end, as fast as the client takes them --- */

struct events {
        struct http_sse sse;
        uint64_t sent, expected; /* 0: without end */
        struct str data;
        bool idle; /* one event, then silence */
};

static void events_more(struct events *e)
{
        while (http_sse_writable(&e->sse)) {
                if (e->expected && e->sent == e->expected) {
                        http_sse_end(&e->sse);
                        free(e);
                        return;
                }
                if ((e->idle && e->sent > 0)
                    || http_sse_event(&e->sse, &(struct http_sse_event){ .data = e->data }) < 0)
                        return;
                e->sent++;
        }
}

static void events_drain(struct http_sse *s)
{
        events_more(container_of(s, struct events, sse));
}

static void events_gone(struct http_sse *s, int reason)
{
        (void) reason;
        free(container_of(s, struct events, sse));
}

static const struct http_sse_ops events_ops = { .drain = events_drain, .gone = events_gone };

static uint64_t query_u64(struct http_req *req, const char *name, uint64_t otherwise)
{
        struct str text;
        uint64_t v;

        if (http_req_query(req, name, &text) != 1 || parse_u64(text, &v) < 0)
                return otherwise;
        return v;
}

void demo_events(struct http_req *req)
{
        struct events *e = xnew(struct events);
        size_t size = (size_t) MIN_OF(query_u64(req, "size", 5), (uint64_t) 64 * KiB);
        char *data = arena_alloc(&req->arena, size + 1);

        memset(data, 'x', size);
        e->data = str_of(data, size);
        e->expected = query_u64(req, "count", 0);
        e->idle = query_u64(req, "idle", 0) != 0;
        if (http_sse_begin(&e->sse, req, &demo_of(req)->events, &events_ops) < 0)
                free(e);
        else
                events_more(e);
}

/* --- a WebSocket that says what it hears --- */

struct socket {
        struct http_ws ws;
        struct buf message;
};

static void socket_data(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p,
                        size_t n)
{
        struct socket *s = container_of(ws, struct socket, ws);
        struct str message;

        if (ws_collect(&s->message, flags, p, n, &message) != 1)
                return;
        if (opcode == WS_TEXT && str_eq(message, STR("close 4000")))
                http_ws_close(ws, 4000, STR("as requested"));
        else
                (void) http_ws_send(ws, opcode, message);
        if (!http_ws_writable(ws))
                http_ws_pause(ws);
}

static void socket_drain(struct http_ws *ws)
{
        http_ws_resume(ws);
}

static void socket_closed(struct http_ws *ws, uint16_t code, struct str reason)
{
        struct socket *s = container_of(ws, struct socket, ws);

        (void) code;
        (void) reason;
        buf_done(&s->message);
        free(s);
}

static const struct http_ws_ops socket_ops = {
        .data = socket_data,
        .drain = socket_drain,
        .closed = socket_closed,
};

void demo_ws(struct http_req *req)
{
        static const struct http_ws_options options = { .message_max = 256 * KiB,
                                                        .protocols = STR("echo") };
        struct socket *s = xnew(struct socket);

        buf_init(&s->message, 256 * KiB);
        if (http_ws_accept(&s->ws, req, &demo_of(req)->sockets, &socket_ops, &options) < 0) {
                buf_done(&s->message);
                free(s);
        }
}
