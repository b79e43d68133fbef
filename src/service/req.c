/* SPDX-License-Identifier: Apache-2.0 */

/* Requests from outside: begun, told, done. Their record is a copy: what the registry shows may be
 * another one, or none, by the time `done` is called. */

#include "service/service_impl.h"

#include "base/base.h"

static void req_done(struct op *op, int result)
{
        struct service_req *r = container_of(op, struct service_req, op);
        struct sandbox *kept = TAKE_PTR(r->_kept);

        r->record = kept;
        op->done = r->_done;
        op->done(op, result); /* may free r, or start it again */
        sandbox_free(kept);
}

void req__begin(struct service *s, struct service_req *r, op_cancel_fn *cancel)
{
        r->err = (struct err){ 0 };
        r->retry_after = 0;
        r->record = NULL;
        r->_service = s;
        r->_kept = NULL;
        r->_impl = NULL;
        list_init(&r->_node);
        r->_done = r->op.done;
        r->op.done = req_done;
        op_begin(&r->op, s->config.loop, cancel);
}

void req__finish(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                 const struct err *err)
{
        const struct sandbox *record = ctl ? sandbox_ctl__record(ctl) : NULL;

        list_remove(&r->_node);
        r->_impl = NULL;
        if (result < 0 && err != &r->err)
                r->err = *err;
        if (result == ERR_RETURN(ERR_EXHAUSTED) && r->retry_after == 0)
                r->retry_after = QUOTA_RETRY_AFTER;
        if (result == ERR_RETURN(ERR_UNAVAILABLE) && r->retry_after == 0)
                r->retry_after = USEC_PER_SEC;
        if (record)
                r->_kept = sandbox_copy(record);
        op_finish(&r->op, result);
}
