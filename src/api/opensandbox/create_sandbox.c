/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/forward.h"
#include "api/opensandbox/opensandbox.h"
#include "api/opensandbox/sandbox_view.h"
#include "base/base.h"

/*
 * POST /sandboxes: 202 with the new sandbox, Running or, if that takes longer, Pending.
 *
 * With the header Idempotency-Key a client that does not know whether its request arrived may repeat it: the same key and
 * body return the same sandbox, another body is refused with 409. The key determines the id, so in a cluster the node that
 * gets the repetition first looks for that id on the other nodes.
 */

#define IDEMPOTENCY_KEY_MAX 255

static void create_done(struct http_req *req, void *operation, int result)
{
        const struct service_create *c = operation;
        enum err_code code = c->req.err.code;

        if (result == 0 && c->req.record)
                response_send(req, 202, sandbox_view_add_created, c->req.record);
        else if (result == 0)
                api_fail_not_found(req); /* deleted while it was being created */
        else if (c->problems.detail.n > 0)
                api_fail_problems(req, &c->problems);
        else if (c->about_snapshot && code == ERR_INVALID)
                /* The named snapshot can't be used; the request itself is valid. */
                http_reply_error(req, 409, "SNAPSHOT::INVALID_RESTORE_CONFIG", "%s",
                                 c->req.err.message);
        else if (c->about_snapshot)
                api_fail_service(req, &c->req,
                                 code == ERR_NOT_FOUND  ? CODE_SNAPSHOT_NOT_FOUND
                                 : code == ERR_CONFLICT ? "SNAPSHOT::NOT_READY"
                                                        : NULL);
        else if (code == ERR_NOT_FOUND || code == ERR_UNAUTHORIZED || code == ERR_FORBIDDEN)
                /* About the image: the sandbox does not exist yet, and the caller is authorized. */
                http_reply_error(req, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", "%s",
                                 c->req.err.message);
        else
                api_fail_service(req, &c->req, NULL);
}

static void start_create(struct http_req *req, struct str idempotency_key)
{
        struct service_create *c = api_call_new(req, struct service_create, req.op, create_done, 0);

        if (!c)
                return;
        c->caller = api_caller(req);
        c->request = req->input;
        c->arena = &req->arena;
        c->idempotency_key = idempotency_key;
        c->body = req->body;
        service_create(api_of(req)->service, c);
        if (c->id[0])
                log_ctx_add_str(&req->log, "sandbox", str_from(c->id));
}

struct locate_call {
        struct service_locate locate;
        struct str key;
        char id[64];
};

static void locate_done(struct http_req *req, void *operation, int result)
{
        const struct locate_call *c = operation;
        struct buf body;

        if (http_req_is_gone(req))
                return;
        if (result == ERR_RETURN(ERR_NOT_FOUND)) {
                start_create(req, c->key);
                return;
        }
        if (result < 0) {
                api_fail_service(req, &c->locate.req, NULL);
                return;
        }
        buf_init(&body, req->body.n + 1);
        buf_add_str(&body, req->body);
        if (buf_failed(&body))
                api_fail_too_large(req);
        else
                forward_to(req, &c->locate.node, &body);
        buf_done(&body);
}

void create_sandbox(struct http_req *req)
{
        struct str key = http_req_header(req, STR("Idempotency-Key"));
        bool valid = !key.p || (key.n > 0 && key.n <= IDEMPOTENCY_KEY_MAX);
        struct service *service = api_of(req)->service;
        struct locate_call *c;
        char id[64];

        for (size_t i = 0; key.p && i < key.n; i++)
                valid &= key.p[i] > ' ' && key.p[i] <= '~';
        if (!valid || http_headers_count(&req->headers, STR("Idempotency-Key")) > 1) {
                http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                                 "Idempotency-Key must be given once and have 1 to %d visible "
                                 "characters",
                                 IDEMPOTENCY_KEY_MAX);
                return;
        }
        if (key.p && forward_is_allowed(req))
                service_replay_id(service, api_caller(req), key, id);
        if (!key.p || !forward_is_allowed(req)
            || service_find(service, api_caller(req), str_from(id))) {
                start_create(req, key);
                return;
        }
        c = api_call_new(req, struct locate_call, locate.req.op, locate_done, API_CALL_DETACHED);
        if (!c)
                return;
        c->key = key;
        (void) snprintf(c->id, sizeof(c->id), "%s", id);
        c->locate.caller = api_caller(req);
        c->locate.id = str_from(c->id);
        service_locate(service, &c->locate);
}
