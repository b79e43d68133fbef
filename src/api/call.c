/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

#include "api/response.h"
#include "base/base.h"

struct api_call {
        struct http_req *req;
        api_call_done_fn *done;
        struct op operation[]; /* begins with its op */
};

static void call_done(struct op *op, int result)
{
        struct api_call *c = container_of(op, struct api_call, operation[0]);
        struct http_req *req = c->req;

        if (req->data == c)
                http_req_set_hooks(req, NULL, NULL);
        c->done(req, op, result);
        http_req_unref(req); /* `c` is in its arena */
}

static void call_abort(struct http_req *req, int reason)
{
        struct api_call *c = req->data;

        (void) reason;
        op_cancel(c->operation);
}

static const struct http_hooks call_hooks = { .abort = call_abort };

void *api_call__new(struct http_req *req, size_t size, api_call_done_fn *done, unsigned flags)
{
        struct api_call *c = arena_zalloc(&req->arena, sizeof(*c) + size);

        if (!c) {
                api_fail_too_large(req);
                return NULL;
        }
        c->req = http_req_ref(req);
        c->done = done;
        op_init(c->operation, call_done);
        if (!(flags & API_CALL_DETACHED))
                http_req_set_hooks(req, &call_hooks, c);
        return c->operation;
}
