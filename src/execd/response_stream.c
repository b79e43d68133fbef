/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/response_stream.h"

#include "base/base.h"
#include "execd/agent.h"

#define SLICE (2 * USEC_PER_MSEC)

static void finish(struct response_stream *f)
{
        struct http_req *req = f->req;

        net_task_cancel(&f->_task);
        buf_done(&f->_out);
        http_req_set_hooks(req, NULL, NULL);
        f->ops->release(f);
        http_req_unref(req);
}

static void flush(struct response_stream *f)
{
        http_stream_write(f->req, buf_str(&f->_out));
        buf_reset(&f->_out);
}

/* What there is to do next: as produce says it. */
static int run_until(struct response_stream *f, usec_t end)
{
        const struct clock *clock = agent_of(f->req)->clock;
        int r;

        do {
                r = f->ops->produce(f, &f->_out);
                if (buf_failed(&f->_out))
                        r = -ENOMEM;
                if (r >= 0 && f->_out.n >= RESPONSE_STREAM_PIECE)
                        flush(f);
        } while (r > 0 && http_stream_writable(f->req) && clock_mono(clock) < end);
        return r;
}

static void run_slice(struct response_stream *f)
{
        int r = 1;

        if (http_stream_writable(f->req))
                r = run_until(f, usec_add(clock_mono(agent_of(f->req)->clock), SLICE));
        if (http_req_is_gone(f->req)) {
                finish(f);
                return;
        }
        if (r > 0) {
                /* Else drain goes on. */
                if (http_stream_writable(f->req))
                        net_task_queue(agent_of(f->req)->loop, &f->_task);
                return;
        }
        if (r == 0) {
                flush(f);
                http_stream_end(f->req);
        } else {
                http_stream_fail(f->req);
        }
        finish(f);
}

static void run_task(struct net_task *t)
{
        run_slice(container_of(t, struct response_stream, _task));
}

static void on_drain(struct http_req *req)
{
        struct response_stream *f = req->data;

        net_task_queue(agent_of(req)->loop, &f->_task);
}

static void on_abort(struct http_req *req, int reason)
{
        (void) reason;
        finish(req->data);
}

void response_stream_start(struct response_stream *f, struct http_req *req, struct str type,
                           const struct response_stream_ops *ops)
{
        static const struct http_hooks hooks = { .drain = on_drain, .abort = on_abort };

        f->req = http_req_ref(req);
        f->ops = ops;
        net_task_init(&f->_task, run_task);
        buf_init(&f->_out, RESPONSE_STREAM_MAX);
        http_req_set_hooks(req, &hooks, f);
        http_res_header_const(req, STR("Content-Type"), type);
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        if (req->method == METHOD_HEAD) {
                http_stream_end(req);
                finish(f);
                return;
        }
        run_slice(f);
}
