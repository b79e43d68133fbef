/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/create_sandbox.h"

#include "api/response.h"
#include "api/forward.h"
#include "api/opensandbox/sandbox_view.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"

struct create_call {
        struct service_create create;
        struct http_req *req;
        struct service_locate locate; /* of an Idempotency-Key, at other nodes */
        char id[64];
};

static void write_created(struct buf *b, const void *data)
{
        sandbox_view_add_created(b, data);
}

static void reply_created(struct http_req *req, const struct sandbox *s)
{
        if (response_write(req, 202, write_created, s) < 0)
                response_too_large(req);
}

/* What a runtime did not find, or was not given, is the image: not the sandbox, which is only to be
 * made, nor who asks, whose key is good. */
static bool is_about_image(enum err_code code)
{
        return code == ERR_NOT_FOUND || code == ERR_UNAUTHORIZED || code == ERR_FORBIDDEN;
}

/* What is wrong with the snapshot that was named; the wish itself is in order. */
static void reply_no_snapshot(struct http_req *req, const struct service_req *r)
{
        enum err_code code = r->err.code;

        if (code == ERR_INVALID)
                http_reply_error(req, 409, "SNAPSHOT::INVALID_RESTORE_CONFIG", "%s",
                                 r->err.message);
        else
                api_fail_service(req, r,
                                 code == ERR_NOT_FOUND  ? CODE_SNAPSHOT_NOT_FOUND
                                 : code == ERR_CONFLICT ? "SNAPSHOT::NOT_READY"
                                                        : NULL);
}

static void reply_failed(struct http_req *req, const struct service_create *c)
{
        const struct service_req *r = &c->req;

        if (c->about_snapshot)
                reply_no_snapshot(req, r);
        else if (is_about_image(r->err.code))
                http_reply_error(req, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", "%s",
                                 r->err.message);
        else
                api_fail_service(req, r, NULL);
}

static void create_done(struct op *op, int result)
{
        struct create_call *c = container_of(op, struct create_call, create.req.op);
        const struct service_req *r = &c->create.req;
        struct http_req *req = c->req;

        http_req_set_hooks(req, NULL, NULL);
        if (result == 0 && r->record)
                reply_created(req, r->record);
        else if (result == 0)
                opensandbox_not_found(req); /* deleted while it was made */
        else if (c->create.problems.detail.n > 0)
                api_fail_problems(req, &c->create.problems);
        else
                reply_failed(req, &c->create);
        http_req_unref(req);
}

static void create_abort(struct http_req *req, int reason)
{
        struct create_call *c = req->data;

        (void) reason;
        op_cancel(&c->create.req.op);
}

static const struct http_hooks create_hooks = { .abort = create_abort };

#define IDEMPOTENCY_KEY_MAX 255

static bool idempotency_key_is_valid(struct str key)
{
        if (key.n == 0 || key.n > IDEMPOTENCY_KEY_MAX)
                return false;
        for (size_t i = 0; i < key.n; i++)
                if (key.p[i] <= ' ' || key.p[i] > '~')
                        return false;
        return true;
}

static void start(struct create_call *c)
{
        struct http_req *req = c->req;

        op_init(&c->create.req.op, create_done);
        http_req_set_hooks(req, &create_hooks, c);
        service_create(api_of(req)->service, &c->create);
        if (c->create.id[0])
                log_ctx_add_str(&req->log, "sandbox", str_from(c->create.id));
}

static void pass_on(struct create_call *c)
{
        struct buf body;

        buf_init(&body, c->req->body.n + 1);
        buf_add_str(&body, c->req->body);
        if (buf_failed(&body))
                response_too_large(c->req);
        else
                forward_to(c->req, &c->locate.node, &body);
        buf_done(&body);
}

static void located(struct op *op, int result)
{
        struct create_call *c = container_of(op, struct create_call, locate.req.op);
        struct http_req *req = c->req;

        if (!http_req_is_gone(req) && result == ERR_RETURN(ERR_NOT_FOUND)) {
                start(c);
                return;
        }
        if (result == 0 && !http_req_is_gone(req))
                pass_on(c);
        else
                api_fail_service(req, &c->locate.req, NULL);
        http_req_unref(req);
}

/* The same key may have made one elsewhere. */
static bool look_elsewhere(struct create_call *c)
{
        struct service *service = api_of(c->req)->service;

        if (!c->create.idempotency_key.p || !forward_is_allowed(c->req))
                return false;
        service_replay_id(service, c->create.caller, c->create.idempotency_key, c->id);
        if (service_find(service, c->create.caller, str_from(c->id)))
                return false;
        c->locate.caller = c->create.caller;
        c->locate.id = str_from(c->id);
        op_init(&c->locate.req.op, located);
        service_locate(service, &c->locate);
        return true;
}

void create_sandbox(struct http_req *req)
{
        struct str key = http_req_header(req, STR("Idempotency-Key"));
        struct create_call *c;

        if ((key.p && !idempotency_key_is_valid(key))
            || http_headers_count(&req->headers, STR("Idempotency-Key")) > 1) {
                http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                                 "Idempotency-Key must be given once and have 1 to %d visible "
                                 "characters",
                                 IDEMPOTENCY_KEY_MAX);
                return;
        }
        c = arena_new(&req->arena, struct create_call);
        if (!c) {
                response_too_large(req);
                return;
        }
        c->req = http_req_ref(req);
        c->create.caller = api_caller(req);
        c->create.request = req->input;
        c->create.arena = &req->arena;
        c->create.idempotency_key = key;
        c->create.body = req->body;
        if (!look_elsewhere(c))
                start(c);
}
