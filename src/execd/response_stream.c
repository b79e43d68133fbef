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

static void run_slice(struct net_task *t)
{
        struct response_stream *s = container_of(t, struct response_stream, _task);
        struct agent *a = agent_of(s->req);
        usec_t end = usec_add(clock_mono(a->clock), AGENT_SLICE);
        int r = 1;

        while (r > 0 && http_stream_writable(s->req)) {
                r = s->ops->produce(s, &s->_out);
                if (buf_failed(&s->_out))
                        r = -ENOMEM;
                if (r == 0 || (r > 0 && s->_out.n >= RESPONSE_STREAM_PIECE)) {
                        http_stream_write(s->req, buf_str(&s->_out));
                        buf_reset(&s->_out);
                }
                if (clock_mono(a->clock) >= end)
                        break;
        }
        if (r > 0 && !http_req_is_gone(s->req)) {
                /* If it is not writable, the drain hook continues. */
                if (http_stream_writable(s->req))
                        net_task_queue(a->loop, t);
                return;
        }
        if (r == 0)
                http_stream_end(s->req);
        else if (r < 0)
                http_stream_fail(s->req);
        stream_release(s);
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
        net_task_init(&s->_task, run_slice);
        buf_init(&s->_out, RESPONSE_STREAM_MAX);
        http_req_set_hooks(req, &hooks, s);
        http_res_header_const(req, STR("Content-Type"), type);
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        if (req->method == METHOD_HEAD) {
                http_stream_end(req);
                stream_release(s);
                return;
        }
        run_slice(&s->_task);
}
