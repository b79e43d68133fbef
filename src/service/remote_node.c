/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes of other nodes on the same store: where they are, and what becomes of them when their node is lost. */

#include "base/base.h"
#include "service/service_impl.h"

bool service_is_shared(const struct service *s)
{
        return s->config.nodes != NULL;
}

int service_may_serve(const struct service *s, struct err *e)
{
        if (!s->config.nodes || nodes_may_serve(s->config.nodes))
                return 0;
        return err_set(
                e, ERR_UNAVAILABLE,
                "this node could not renew its lease in the store; it refuses requests until "
                "it can");
}

bool remote_node__has(const struct service *s, const struct sandbox *record)
{
        return s->config.nodes && !sandbox_is_foreign(record)
               && !str_eq(record->node, s->config.node);
}

void remote_node__copy(struct service_node *to, const struct nodes_find *from)
{
        memcpy(to->id, from->id, sizeof(to->id));
        memcpy(to->address, from->address, sizeof(to->address));
        memcpy(to->process, from->process, sizeof(to->process));
}

int remote_node__silent(const struct nodes_find *f, struct err *e)
{
        if (f->status == NODE_UNKNOWN)
                return err_set(e, ERR_UNAVAILABLE,
                               "the sandbox is on node '%s', which this store does not know: start "
                               "that node, or delete its records from the store",
                               f->id);
        return err_set(e, ERR_UNAVAILABLE,
                       "the sandbox is on node '%s', which does not respond; try again later",
                       f->id);
}

void remote_node__lost(struct service *s, struct str id)
{
        const struct sandbox *record = registry_peek(s->config.registry, id);

        if (!record)
                return;
        log_fields(s->config.log, LOG_WARN, "sandbox of a lost node given up",
                   LOG_F_STR("sandbox", record->id), LOG_F_STR("message", record->status.message));
        events_notify(&s->events, "sandbox.state", clock_wall(s->config.clock), record);
        sandbox_ctl__settle(sandbox_ctl__obtain(s, record->id));
}

/* --- service_locate --- */

struct locate_op {
        struct service *service;
        struct service_locate *l;
        struct sandbox *record;
        struct registry_get get;
        struct nodes_find find;
        struct registry_fail_lost lose;
};

/* As the last statement of the inner operation's done. */
static void locate_end(struct locate_op *x, int result, const struct err *err)
{
        struct service *s = x->service;
        struct service_req *req = &x->l->req;

        req__prepare(req, NULL, result, err);
        req->_kept = TAKE_PTR(x->record);
        free(x);
        s->locates--;
        service__settle(s);
        op_finish_now(&req->op, result);
}

static void locate_not_found(struct locate_op *x)
{
        struct err e;

        sandbox_freep(&x->record);
        locate_end(x, service__not_found(&e), &e);
}

static void lost_failed(struct op *op, int result)
{
        struct locate_op *x = container_of(op, struct locate_op, lose.req.op);

        if (result == 0)
                remote_node__lost(x->service, x->record->id);
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND))
                locate_not_found(x);
        else
                locate_end(x, remote_node__silent(&x->find, &x->lose.req.err), &x->lose.req.err);
}

static void node_found(struct op *op, int result)
{
        struct locate_op *x = container_of(op, struct locate_op, find.req.op);
        struct err e = x->find.req.err;

        if (result == 0 && x->find.status == NODE_LIVE) {
                remote_node__copy(&x->l->node, &x->find);
                locate_end(x, 0, NULL);
        } else if (result == 0 && x->find.status == NODE_LOST) {
                op_init(&x->lose.req.op, lost_failed);
                registry_fail_lost(x->service->config.registry, &x->lose, x->record->id);
        } else {
                locate_end(x, result < 0 ? result : remote_node__silent(&x->find, &e), &e);
        }
}

static void record_found(struct op *op, int result)
{
        struct locate_op *x = container_of(op, struct locate_op, get.req.op);
        const struct sandbox *record = x->get.record;
        const struct caller *caller = x->l->caller;

        if (result < 0 && result != ERR_RETURN(ERR_NOT_FOUND)) {
                locate_end(x, result, &x->get.req.err);
                return;
        }
        if (result == 0 && remote_node__has(x->service, record)
            && (!caller || caller->all_tenants || str_eq(record->tenant, caller->tenant)))
                x->record = sandbox_copy(record);
        if (!x->record) {
                locate_not_found(x);
                return;
        }
        op_init(&x->find.req.op, node_found);
        nodes_find(x->service->config.nodes, &x->find, record->node);
}

void service_locate(struct service *s, struct service_locate *l)
{
        struct locate_op *x;
        int r;

        l->node = (struct service_node){ 0 };
        req__begin(s, &l->req, /* cancel= */ NULL);
        r = service__ready(s, &l->req.err);
        if (r == 0 && !s->config.nodes)
                r = service__not_found(&l->req.err);
        if (r < 0) {
                req__finish(&l->req, NULL, r, &l->req.err);
                return;
        }
        x = xnew(struct locate_op);
        x->service = s;
        x->l = l;
        s->locates++;
        op_init(&x->get.req.op, record_found);
        registry_get(s->config.registry, &x->get, l->id);
}

/* --- all sandboxes of a lost node --- */

static void lost_one(struct registry_sweep *sweep, const struct sandbox *record)
{
        remote_node__lost(container_of(sweep, struct service, sweep), record->id);
}

static void swept(struct op *op, int result)
{
        struct service *s = container_of(op, struct service, sweep.req.op);

        s->sweeping = false;
        if (result < 0)
                (void) log_err(result, s->config.log,
                               "cannot give up the sandboxes of node '%s': %s", s->sweep_node,
                               s->sweep.req.err.message);
        else if (s->sweep.left == 0 && !s->sweep.stop)
                nodes_forget(s->config.nodes, str_from(s->sweep_node));
        service__settle(s);
}

void service_node_lost(struct service *s, struct str node)
{
        if (s->sweeping || s->phase != PHASE_READY)
                return; /* it is reported again */
        s->sweeping = true;
        ASSERT(node.n < sizeof(s->sweep_node));
        memcpy(s->sweep_node, node.p, node.n);
        s->sweep_node[node.n] = '\0';
        s->sweep.each = lost_one;
        op_init(&s->sweep.req.op, swept);
        registry_sweep(s->config.registry, &s->sweep);
}
