/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/command.h"

#include "api/response.h"
#include "api/problem.h"
#include "base/base.h"

struct call {
        struct service_command command;
        const struct command_kind *kind;
        struct http_req *req;
};

static void refuse(struct http_req *req, const struct command_kind *kind,
                   const struct service_req *result)
{
        const char *code = result->err.code == ERR_INVALID    ? kind->invalid
                           : result->err.code == ERR_CONFLICT ? kind->conflict
                                                              : NULL;

        api_fail_service(req, result, code);
}

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, command.req.op);
        struct http_req *req = c->req;

        http_req_set_hooks(req, NULL, NULL);
        if (result < 0)
                refuse(req, c->kind, &c->command.req);
        else
                c->kind->answer(req, &c->command);
        http_req_unref(req); /* `c` is in its arena */
}

static void call_abort(struct http_req *req, int reason)
{
        struct call *c = req->data;

        (void) reason;
        op_cancel(&c->command.req.op);
}

static const struct http_hooks call_hooks = { .abort = call_abort };

void command_run(struct http_req *req, const struct command_kind *kind,
                 const struct service_command *wish)
{
        struct call *c = arena_new(&req->arena, struct call);

        if (!c) {
                response_too_large(req);
                return;
        }
        c->command = *wish;
        c->command.caller = api_caller(req);
        c->command.id = req->params[0];
        c->kind = kind;
        c->req = http_req_ref(req);
        op_init(&c->command.req.op, call_done);
        http_req_set_hooks(req, &call_hooks, c);
        kind->start(api_of(req)->service, &c->command);
}
