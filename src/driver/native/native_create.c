/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"
#include "os/memfd.h"

/* Of an agent that is there already. A sandbox with a hundredth of a processor takes its time. */
#define READY_TIMEOUT (20 * USEC_PER_SEC)

/*
 * create:
 *
 *         ask create ─► replied ─► ping ─► pinged ─► done
 *              │            │                  │
 *              ▼            ▼                  ▼
 *           failed       canceled          ask inspect (why) ─► ask destroy ─► done, failed
 *
 * Whatever goes wrong once the warden was asked ends in a destroy: also when it is not known what
 * the warden has done, because it has ended. Then the next one is asked, once.
 */
struct making {
        struct native_request ask;
        struct map_node by_id; /* of n->creates */
        struct agent_ping ping;
        struct native *n;
        struct driver_req *req;
        struct buf spec;
        int record;
        int result;    /* so far, if it fails */
        bool canceled; /* told while something was under way that has to end first */
        bool second_time;
        bool ended; /* by itself */
        char id[SANDBOX_ID_MAX + 1];
};

#define CREATION(q) container_of(q, struct making, ask)

static void end(struct making *m, int result)
{
        struct driver_req *req = m->req;

        native_request_drop(&m->ask);
        map_remove(&m->n->creates, &m->by_id);
        (void) fd_close(m->record);
        buf_done(&m->spec);
        free(m);
        req->_impl = NULL;
        driver_finish(req, result);
}

/* --- undoing --- */

static void undone(struct native_request *q, const struct native_reply *a)
{
        struct making *m = CREATION(q);

        if (a->result < 0)
                log_warn(m->n->log, "what is left of sandbox '%s' could not be removed: %s", m->id,
                         a->text);
        end(m, m->result);
}

static void ask(struct making *m, enum warden_msg call, bool again, native_replied_fn *replied)
{
        m->ask.call = call;
        m->ask.again = again;
        m->ask.replied = replied;
        m->ask.record = call == WARDEN_MSG_CREATE ? m->record : -EBADF;
        native_request(m->n, &m->ask);
}

static void undo(struct making *m, int result)
{
        m->result = result;
        native_instance_remove(m->n, str_from(m->id));
        ask(m, WARDEN_MSG_DESTROY, /* again= */ true, undone);
}

static int fail_canceled(struct making *m)
{
        return err_set(&m->req->err, ERR_CANCELED, "canceled");
}

/* --- waiting for the agent --- */

bool native__exited_in_create(struct native *n, struct str id)
{
        struct map_node *node = map_get(&n->creates, id);

        if (node)
                container_of(node, struct making, by_id)->ended = true;
        return node != NULL;
}

/* Whether it has an end of its own to tell, which says more than that it does not answer. */
static void explained(struct native_request *q, const struct native_reply *a)
{
        struct making *m = CREATION(q);
        char text[NATIVE_TEXT_MAX];

        if (a->result == 0 && !instance_is_alive(&a->wire->state))
                m->result = err_set(&m->req->err, ERR_INVALID,
                                    "it ended before its agent replied: %.*s",
                                    STR_ARG(native_health(&a->wire->state, text).message));
        undo(m, m->canceled ? fail_canceled(m) : m->result);
}

static void pinged(struct op *op, int result)
{
        struct making *m = container_of(op, struct making, ping.req.op);

        if (m->canceled) {
                undo(m, fail_canceled(m));
                return;
        }
        if (result == 0 && !m->ended) {
                end(m, 0);
                return;
        }
        if (result == 0)
                (void) err_set(&m->ping.req.err, ERR_UNAVAILABLE, "it has ended");
        m->req->err = m->ping.req.err;
        m->result = ERR_RETURN(m->req->err.code);
        ask(m, WARDEN_MSG_INSPECT, /* again= */ true, explained);
}

static void made(struct native_request *q, const struct native_reply *a);

/* What the warden that has ended left of it is gone: once more. */
static void cleared(struct native_request *q, const struct native_reply *a)
{
        struct making *m = CREATION(q);

        if (m->canceled)
                end(m, fail_canceled(m));
        else if (a->result < 0)
                end(m, native_fail(m->req, a));
        else
                ask(m, WARDEN_MSG_CREATE, /* again= */ false, made);
}

/* A refusal is all there is to it; without an answer nobody knows. */
static void not_made(struct making *m, const struct native_reply *a)
{
        const bool once_more = m->ask.interrupted && !m->canceled && !m->second_time;

        if (a->wire) {
                end(m, m->canceled ? fail_canceled(m) : native_fail(m->req, a));
        } else if (once_more) {
                m->second_time = true;
                ask(m, WARDEN_MSG_DESTROY, /* again= */ true, cleared);
        } else {
                undo(m, m->canceled ? fail_canceled(m) : native_fail(m->req, a));
        }
}

static void made(struct native_request *q, const struct native_reply *a)
{
        struct making *m = CREATION(q);
        int fd = -EBADF, r;

        if (a->result < 0) {
                not_made(m, a);
                return;
        }
        buf_done(&m->spec);
        r = m->canceled ? fail_canceled(m) : native_connect(a->fds[WARDEN_FD_SOCKET], &fd);
        if (r < 0) {
                undo(m, m->canceled ? r : err_errno(&m->req->err, r, "connect to its agent"));
                return;
        }
        native_instance_add(m->n, str_from(m->id), TAKE_FD(a->fds[WARDEN_FD_SOCKET]));
        op_init(&m->ping.req.op, pinged);
        m->ping.req.timeout = READY_TIMEOUT;
        agent_ping_fd(m->n->agents, &m->ping, fd);
}

/* --- beginning --- */

static int seal_record(const struct sandbox *record, int *ret_fd, struct err *e)
{
        scoped(buf_done) struct buf text;
        int r;

        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, record);
        if (buf_failed(&text))
                return err_set(e, ERR_TOO_LARGE, "the record is too large");
        r = memfd_sealed_bytes(buf_str(&text), "record", ret_fd);
        return r < 0 ? err_errno(e, r, "seal the record") : 0;
}

static int encode_spec(const struct driver_create *c, struct native *n, struct buf *b,
                       struct err *e)
{
        scoped(arena_wipe) struct arena a;
        struct plan_spec spec;
        int r;

        arena_init(&a, 4 * PLAN_SPEC_MAX);
        r = native_spec(c, n->network, &a, &spec, e);
        return r < 0 ? r : plan_spec_encode(&spec, b, e);
}

void native__create(struct driver *driver, struct driver_req *req)
{
        struct making *m = xnew(struct making);
        const struct driver_create *c = DRIVER_AS(create, req);
        int r;

        m->n = native_of(driver);
        m->req = req;
        m->record = -EBADF;
        (void) snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(c->record->id));
        buf_init(&m->spec, PLAN_SPEC_MAX);
        buf_mark_secret(&m->spec);
        if (map_get(&m->n->creates, c->record->id)) {
                end(m, err_set(&req->err, ERR_CONFLICT, "such a sandbox is being made"));
                return;
        }
        map_add(&m->n->creates, &m->by_id, str_from(m->id));
        r = encode_spec(c, m->n, &m->spec, &req->err);
        if (r == 0)
                r = seal_record(c->record, &m->record, &req->err);
        if (r < 0) {
                end(m, r);
                return;
        }
        req->_impl = m;
        m->ask.id = m->id;
        m->ask.spec = buf_str(&m->spec);
        ask(m, WARDEN_MSG_CREATE, /* again= */ false, made);
}

/* A sandbox of that name may be there, and not be ours to destroy: the warden's answer says. */
void native__cancel_create(struct driver_req *req)
{
        struct making *m = req->_impl;

        if (!m || m->canceled)
                return;
        m->canceled = true;
        if (!native_request_pending(&m->ask))
                op_cancel(&m->ping.req.op);
        else if (m->ask.call == WARDEN_MSG_CREATE && !native_request_sent(&m->ask))
                end(m, fail_canceled(m));
        else if (m->ask.call == WARDEN_MSG_DESTROY)
                m->result = fail_canceled(m);
}
