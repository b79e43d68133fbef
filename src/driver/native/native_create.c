/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"
#include "os/memfd.h"

/*
 * create:
 *
 *         CREATE ─► create_replied ─► done
 *            │            │
 *            ▼            ▼
 *         refused     canceled, or it has ended ─► DESTROY ─► done, failed
 *
 * The warden replies when the agent serves. Once it may have started, every failure ends in a DESTROY. If the
 * warden ends during the CREATE, what it has done is unknown: the next one gets a DESTROY and then, once, the
 * CREATE again.
 */
struct creation {
        struct native_request request;
        struct map_node by_id; /* of n->creates */
        struct native *n;
        struct driver_req *req;
        struct buf spec;
        int record;
        int result;    /* of a failure, while it is undone */
        bool canceled; /* takes effect when the step under way is complete */
        bool retried;
        char id[SANDBOX_ID_MAX + 1];
};

#define CREATION(q) container_of(q, struct creation, request)

static void create_end(struct creation *c, int result)
{
        struct driver_req *req = c->req;

        worker_request_end(&c->request._request);
        map_remove(&c->n->creates, &c->by_id);
        (void) fd_close(c->record);
        buf_done(&c->spec);
        free(c);
        req->_impl = NULL;
        driver_finish(req, result);
}

static int fail_canceled(struct creation *c)
{
        return err_set(&c->req->err, ERR_CANCELED, "canceled");
}

static void undo_replied(struct native_request *q, const struct native_reply *r)
{
        struct creation *c = CREATION(q);

        if (r->result < 0)
                log_warn(c->n->log, "can't remove the remains of sandbox '%s': %s", c->id, r->text);
        create_end(c, c->result);
}

/* --- the request --- */

static void create_replied(struct native_request *q, const struct native_reply *r);

static void destroyed_before_retry(struct native_request *q, const struct native_reply *r)
{
        struct creation *c = CREATION(q);

        if (c->canceled)
                create_end(c, fail_canceled(c));
        else if (r->result < 0)
                create_end(c, native_fail(c->req, r));
        else
                native_send(c->n, q, WARDEN_MSG_CREATE, create_replied);
}

/* A refusal leaves nothing behind; without a reply nothing is known. */
static void create_replied(struct native_request *q, const struct native_reply *r)
{
        struct creation *c = CREATION(q);
        char text[NATIVE_TEXT_MAX];
        int result;

        if (r->result < 0 && !r->msg && q->interrupted && !c->canceled && !c->retried) {
                c->retried = true;
                native_send(c->n, q, WARDEN_MSG_DESTROY, destroyed_before_retry);
                return;
        }
        if (c->canceled)
                result = fail_canceled(c);
        else if (r->result < 0 && q->_request.timed_out)
                result = err_set(&c->req->err, ERR_TIMEOUT, "its agent was not ready in time");
        else if (r->result < 0)
                result = native_fail(c->req, r);
        else if (!instance_is_alive(&r->msg->state))
                result = err_set(&c->req->err, ERR_INVALID,
                                 "it ended before its agent answered: %.*s",
                                 STR_ARG(native_health(&r->msg->state, text).message));
        else
                result = 0;
        if (result == 0)
                native_instance_add(c->n, str_from(c->id), TAKE_FD(r->fds[WARDEN_FD_SOCKET]));
        if (result == 0 || (r->result < 0 && r->msg)) {
                create_end(c, result);
                return;
        }
        c->result = result;
        native_instance_remove(c->n, str_from(c->id));
        native_send(c->n, q, WARDEN_MSG_DESTROY, undo_replied);
}

/* --- starting --- */

/* The record goes to the warden as a file, the spec as bytes. */
static int encode_request(struct creation *c, const struct driver_create *create, struct err *e)
{
        scoped(arena_wipe) struct arena a;
        scoped(buf_done) struct buf text;
        struct plan_spec spec;
        int r;

        arena_init(&a, 4 * PLAN_SPEC_MAX);
        buf_init(&text, RECORD_TEXT_MAX);
        r = native_spec(create, c->n->network, &a, &spec, e);
        if (r == 0)
                r = plan_spec_encode(&spec, &c->spec, e);
        if (r < 0)
                return r;
        sandbox_encode(&text, create->record);
        if (buf_failed(&text))
                return err_set(e, ERR_TOO_LARGE, "the record is too large");
        r = memfd_sealed_bytes(buf_str(&text), "record", &c->record);
        return r < 0 ? err_errno(e, r, "seal the record") : 0;
}

void native__create(struct driver *driver, struct driver_req *req)
{
        struct creation *c = xnew(struct creation);
        const struct driver_create *create = DRIVER_AS(create, req);
        int r;

        c->n = native_of(driver);
        c->req = req;
        c->record = -EBADF;
        (void) snprintf(c->id, sizeof(c->id), "%.*s", STR_ARG(create->record->id));
        buf_init(&c->spec, PLAN_SPEC_MAX);
        buf_mark_secret(&c->spec);
        if (map_get(&c->n->creates, create->record->id)) {
                create_end(c, err_set(&req->err, ERR_CONFLICT,
                                      "sandbox '%s' is already being created", c->id));
                return;
        }
        map_add(&c->n->creates, &c->by_id, str_from(c->id));
        r = encode_request(c, create, &req->err);
        if (r < 0) {
                create_end(c, r);
                return;
        }
        req->_impl = c;
        c->request.id = c->id;
        c->request.spec = buf_str(&c->spec);
        c->request.record = c->record;
        native_send(c->n, &c->request, WARDEN_MSG_CREATE, create_replied);
}

/* A create that was sent is not destroyed before its reply, which may take until the timeout of requests: a
 * refusal would mean that the sandbox of this id is another one. */
void native__cancel_create(struct driver_req *req)
{
        struct creation *c = req->_impl;

        if (!c || c->canceled)
                return;
        c->canceled = true;
        if (c->request._call == WARDEN_MSG_CREATE && !worker_request_sent(&c->request._request))
                create_end(c, fail_canceled(c));
        else if (c->request._call == WARDEN_MSG_DESTROY)
                c->result = fail_canceled(c);
}
