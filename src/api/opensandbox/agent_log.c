/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/agent_log.h"

#include <unistd.h>

#include "base/base.h"

/* Holds twice what is kept, so that the front is dropped now and then, not with every piece. */
#define HELD_MAX (2 * AGENT_LOG_MAX)

static void log_done(struct agent_log *l, bool failed)
{
        struct http_req *req = l->req;

        timeout_clear(&l->_deadline);
        l->has_failure = failed;
        l->done(l);
        buf_done(&l->_bytes);
        http_req_unref(req);
}

/* --- the call --- */

static void call_head(struct http_call *call)
{
        (void) call; /* call_end checks the status */
}

static void call_body(struct http_call *call, const char *p, size_t n)
{
        struct agent_log *l = container_of(call, struct agent_log, _call);

        l->_seen += n;
        if (l->_seen > AGENT_LOG_READ_MAX) {
                http_call_cancel(call);
                return;
        }
        if (l->_bytes.n + n > HELD_MAX)
                buf_consume(&l->_bytes, l->_bytes.n + n - AGENT_LOG_MAX);
        buf_add(&l->_bytes, p, n);
}

static void call_end(struct http_call *call, int r)
{
        struct agent_log *l = container_of(call, struct agent_log, _call);
        struct str all = buf_str(&l->_bytes);
        size_t at, lines = 0;

        if (r == 0 && call->status == 200) {
                /* Selects the last lines of what is held. */
                if (all.n > AGENT_LOG_MAX)
                        all = str_skip(all, all.n - AGENT_LOG_MAX);
                at = all.n > 0 && all.p[all.n - 1] == '\n' ? all.n - 1 : all.n;
                while (at > 0 && (all.p[at - 1] != '\n' || ++lines < l->lines))
                        at--;
                l->text = str_skip(all, at);
                l->truncated = l->text.n < l->_seen;
                log_done(l, false);
                return;
        }
        if (r < 0)
                (void) err_errno(&l->failure, r, "read the log from the sandbox's agent");
        else if (call->status == 404)
                (void) err_set(&l->failure, ERR_NOT_FOUND, "the sandbox has no program of its own");
        else
                (void) err_set(
                        &l->failure, ERR_UNAVAILABLE,
                        "the sandbox's agent replied with status %d to a request for its log",
                        call->status);
        log_done(l, true);
}

static const struct http_call_hooks call_hooks = { .head = call_head,
                                                   .body = call_body,
                                                   .end = call_end };

static void connected(struct op *op, int result)
{
        struct agent_log *l = container_of(op, struct agent_log, _connect.req.op);
        struct arena *a = &l->req->arena;
        int r;

        if (result < 0) {
                l->failure = l->_connect.req.err;
                log_done(l, true);
                return;
        }
        http_call_init(&l->_call, &call_hooks, a);
        l->_call.method = STR("GET");
        l->_call.target = STR("/entrypoint/logs");
        r = http_headers_add(&l->_call.headers, a, STR("Host"), STR("sandbox"));
        if (r < 0) {
                (void) err_errno(&l->failure, r, "request the log of the sandbox's agent");
                (void) close(TAKE_FD(l->_connect.stream.fd));
                log_done(l, true);
                return;
        }
        l->_connected = true;
        http_call_start_fd(api_of(l->req)->sandbox_client, &l->_call,
                           TAKE_FD(l->_connect.stream.fd));
}

void agent_log_start(struct agent_log *l)
{
        struct api *api = api_of(l->req);

        http_req_ref(l->req);
        buf_init(&l->_bytes, HELD_MAX);
        timeout_init(&l->_deadline);
        timeout_set(&l->_deadline, &api->agent_deadline);
        l->_connect = (struct service_connect){ .caller = api_caller(l->req),
                                                .id = l->req->params[0],
                                                .passive = true };
        op_init(&l->_connect.req.op, connected);
        service_connect(api->service, &l->_connect);
}

void agent_log_cancel(struct agent_log *l)
{
        if (l->_connected)
                http_call_cancel(&l->_call);
        else
                op_cancel(&l->_connect.req.op);
}

void agent_log__expired(struct timeout *t)
{
        agent_log_cancel(container_of(t, struct agent_log, _deadline));
}
