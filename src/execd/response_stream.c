/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/response_stream.h"

#include "base/base.h"
#include "execd/agent.h"

static void stream_release(struct response_stream *s)
{
        struct http_req *req = s->req;

        net_task_cancel(&s->_task);
        buf_done(&s->_out);
        http_req_set_hooks(req, NULL, NULL);
        s->ops->release(s);
        http_req_unref(req);
}

static void flush(struct response_stream *s)
{
        http_stream_write(s->req, buf_str(&s->_out));
        buf_reset(&s->_out);
}

/* Returns the last result of produce. */
static int produce_slice(struct response_stream *s)
{
        const struct clock *clock = agent_of(s->req)->clock;
        usec_t end = usec_add(clock_mono(clock), AGENT_SLICE);
        int r;

        do {
                r = s->ops->produce(s, &s->_out);
                if (buf_failed(&s->_out))
                        r = -ENOMEM;
                if (r >= 0 && s->_out.n >= RESPONSE_STREAM_PIECE)
                        flush(s);
        } while (r > 0 && http_stream_writable(s->req) && clock_mono(clock) < end);
        return r;
}

static void run_slice(struct response_stream *s)
{
        int r = http_stream_writable(s->req) ? produce_slice(s) : 1;

        if (r > 0 && !http_req_is_gone(s->req)) {
                /* If it is not writable, the drain hook continues. */
                if (http_stream_writable(s->req))
                        net_task_queue(agent_of(s->req)->loop, &s->_task);
                return;
        }
        if (r == 0) {
                flush(s);
                http_stream_end(s->req);
        } else if (r < 0) {
                http_stream_fail(s->req);
        }
        stream_release(s);
}

static void run_task(struct net_task *t)
{
        run_slice(container_of(t, struct response_stream, _task));
}

static void on_drain(struct http_req *req)
{
        struct response_stream *s = req->data;

        net_task_queue(agent_of(req)->loop, &s->_task);
}

static void on_abort(struct http_req *req, int reason)
{
        (void) reason;
        stream_release(req->data);
}

void response_stream_start(struct response_stream *s, struct http_req *req, struct str type,
                           const struct response_stream_ops *ops)
{
        static const struct http_hooks hooks = { .drain = on_drain, .abort = on_abort };

        s->req = http_req_ref(req);
        s->ops = ops;
        net_task_init(&s->_task, run_task);
        buf_init(&s->_out, RESPONSE_STREAM_MAX);
        http_req_set_hooks(req, &hooks, s);
        http_res_header_const(req, STR("Content-Type"), type);
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        if (req->method == METHOD_HEAD) {
                http_stream_end(req);
                stream_release(s);
                return;
        }
        run_slice(s);
}
