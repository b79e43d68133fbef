/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include "base/base.h"
#include "http/url.h"

/* An event is assembled here, so that it becomes one chunk. Most fit on the stack. */
#define SMALL_EVENT 4096

static void detach(struct http_sse *s)
{
        struct http_req *req = TAKE_PTR(s->req);

        timeout_clear(&s->_ping);
        req->hooks = NULL;
        http_req_unref(req);
}

/* --- hooks of the request --- */

static void sse_drain(struct http_req *req)
{
        struct http_sse *s = req->data;

        if (s->ops->drain)
                s->ops->drain(s);
}

static void sse_abort(struct http_req *req, int reason)
{
        struct http_sse *s = req->data;

        detach(s);
        s->ops->gone(s, reason);
}

static const struct http_hooks sse_hooks = {
        .drain = sse_drain,
        .abort = sse_abort,
};

/* --- pings --- */

static void ping_due(struct timeout *t)
{
        struct http_sse *s = container_of(t, struct http_sse, _ping);

        timeout_set(&s->_ping, &s->_group->_pings);
        if (!http_sse_writable(s))
                return;
        if (s->ops->ping)
                s->ops->ping(s);
        else if (s->_group->framing == HTTP_SSE_FIELDS)
                http_stream_write(s->req, STR(":\n\n"));
}

void http_sse_group_init(struct http_sse_group *g, struct net_loop *l,
                         enum http_sse_framing framing, usec_t ping_interval)
{
        g->framing = framing;
        timeout_kind_init(&g->_pings, l, ping_interval, ping_due);
}

void http_sse_group_close(struct http_sse_group *g)
{
        timeout_kind_close(&g->_pings);
}

/* --- life cycle --- */

int http_sse_begin(struct http_sse *s, struct http_req *req, struct http_sse_group *g,
                   const struct http_sse_ops *ops)
{
        if (http_req_is_gone(req))
                return -ECONNRESET;
        http_res_header_const(req, STR("Content-Type"), STR("text/event-stream"));
        http_res_header_const(req, STR("Cache-Control"), STR("no-cache"));
        http_res_header_const(req, STR("X-Accel-Buffering"), STR("no"));
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        if (req->method == METHOD_HEAD) {
                http_stream_end(req);
                return -ENODATA;
        }
        *s = (struct http_sse){ .ops = ops, .req = http_req_ref(req), ._group = g };
        timeout_init(&s->_ping);
        http_req_set_hooks(req, &sse_hooks, s);
        if (g->_pings.length > 0)
                timeout_set(&s->_ping, &g->_pings);
        return 0;
}

void http_sse_end(struct http_sse *s)
{
        if (!s->req)
                return;
        http_stream_end(s->req);
        detach(s);
}

/* --- events --- */

bool http_sse_writable(const struct http_sse *s)
{
        return s->req && http_stream_writable(s->req);
}

/* CR, LF and CR LF all end a line for the reader, so none may pass unchanged. */
static size_t line_length(struct str s)
{
        size_t i = 0;

        while (i < s.n && s.p[i] != '\r' && s.p[i] != '\n')
                i++;
        return i;
}

static void add_event(struct buf *b, const struct http_sse_event *event)
{
        struct str data = event->data;

        if (event->event.p)
                buf_addf(b, "event: %.*s\n", STR_ARG(event->event));
        if (event->id.p)
                buf_addf(b, "id: %.*s\n", STR_ARG(event->id));
        while (data.p) {
                size_t n = line_length(data);

                buf_add_str(b, STR("data: "));
                buf_add(b, data.p, n);
                buf_add_char(b, '\n');
                if (n == data.n)
                        break;
                n += data.p[n] == '\r' && n + 1 < data.n && data.p[n + 1] == '\n';
                data = str_skip(data, n + 1);
        }
        buf_add_char(b, '\n');
}

static void add_bare(struct buf *b, struct str json, enum http_sse_framing framing)
{
        for (;;) {
                size_t n = line_length(json);

                buf_add(b, json.p, n);
                if (n == json.n)
                        break;
                buf_add_char(b, ' ');
                json = str_skip(json, n + 1);
        }
        buf_add_str(b, framing == HTTP_SSE_BARE ? STR("\n\n") : STR("\n"));
}

/* -EMSGSIZE if it does not fit into b. */
static int write_event(struct http_sse *s, const struct http_sse_event *event,
                       enum http_sse_framing framing, struct buf *b)
{
        if (framing != HTTP_SSE_FIELDS)
                add_bare(b, event->data, framing);
        else
                add_event(b, event);
        if (buf_failed(b))
                return -EMSGSIZE;
        http_stream_write(s->req, buf_str(b));
        return 0;
}

static int send_event(struct http_sse *s, const struct http_sse_event *event,
                      enum http_sse_framing framing)
{
        char storage[SMALL_EVENT];
        struct buf b;
        int r = -EMSGSIZE;

        if (!http_sse_writable(s))
                return -EAGAIN;
        /* Splitting lines makes an event larger than its parts, so the stack may not be enough. */
        if (event->event.n + event->id.n + event->data.n < SMALL_EVENT / 2) {
                buf_init_fixed(&b, storage, sizeof(storage));
                r = write_event(s, event, framing, &b);
        }
        if (r == -EMSGSIZE) {
                buf_init(&b, HTTP_WRITE_MAX);
                r = write_event(s, event, framing, &b);
                buf_done(&b);
        }
        return r;
}

int http_sse_event(struct http_sse *s, const struct http_sse_event *event)
{
        if (line_length(event->event) != event->event.n || line_length(event->id) != event->id.n
            || !http_field_value_is_valid(event->id))
                return -EINVAL;
        return send_event(s, event, HTTP_SSE_FIELDS);
}

int http_sse_json(struct http_sse *s, struct str json)
{
        return send_event(s, &(struct http_sse_event){ .data = json }, s->_group->framing);
}
