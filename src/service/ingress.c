/* SPDX-License-Identifier: Apache-2.0 */

/* Requests into a sandbox: streams, commands and files. They take no lock. Each has a copy of the record, which its
 * driver may use until the request is done. */

#include "service/service_impl.h"

#include "base/base.h"
#include "model/extensions.h"

struct ingress {
        struct list node; /* service->ingresses */
        struct service *service;
        struct sandbox *record;
        struct driver *driver;
        struct op *inner; /* canceled with the request */
};

/* The extension that renews by access: at most one renewal per ACCESS_RENEW_EVERY. */
static void count_access(const struct ingress *v)
{
        struct service *s = v->service;
        const struct sandbox *record = v->record;
        struct sandbox_ctl *ctl;
        usec_t now = clock_mono(s->config.clock);
        struct sandbox_op *o;

        if (!record->expiry || extensions_renew_by(&record->extensions) == 0)
                return;
        ctl = sandbox_ctl__obtain(s, record->id);
        if (ctl->renewed_at > 0 && now < usec_add(ctl->renewed_at, ACCESS_RENEW_EVERY))
                return;
        ctl->renewed_at = now;
        o = sandbox_op__new(s, ctl, COMMAND_ACCESS);
        o->background = true;
        sandbox_op__start(o);
}

static void ingress_cancel(struct op *op)
{
        struct ingress *v = container_of(op, struct service_req, op)->_impl;

        op_cancel(v->inner);
}

/* NULL: the request is finished already. No one who sends a request into a sandbox needs its record, so there is none to
 * keep for `done`. */
static struct ingress *ingress_begin(struct service *s, struct service_req *req,
                                     const struct caller *caller, struct str id)
{
        struct ingress *v = xnew(struct ingress);
        const struct sandbox *record = NULL;
        struct err *e = &req->err;
        int r;

        *req = (struct service_req){ .op = req->op, ._service = s };
        list_init(&req->_node);
        op_begin(&req->op, s->config.loop, ingress_cancel);
        r = service__ready(s, e);
        if (r == 0) {
                record = service_find(s, caller, id);
                r = record ? service_check_ingress(record, &req->retry_after, e)
                           : service__not_found(e);
        }
        if (r == 0 && record) {
                v->driver = service__driver(s, record->driver);
                v->record = v->driver ? sandbox_copy(record) : NULL;
                if (!v->record)
                        r = err_set(e, ERR_UNAVAILABLE, "%s",
                                    v->driver ? "no memory for the record"
                                              : "the driver of this sandbox is not enabled on this "
                                                "server");
        }
        if (r < 0 || !v->record) {
                free(v);
                req__finish(req, NULL, r, e);
                return NULL;
        }
        v->service = s;
        req->_impl = v;
        list_append(&s->ingresses, &v->node);
        s->stats.under_way++;
        return v;
}

/* All inner operations are placed alike, so one `done` serves them all. */
#define SAME_PLACE(call, member)                                                         \
        static_assert(offsetof(struct call, member.req.op)                               \
                                      == offsetof(struct service_exec, exec.req.op)      \
                              && offsetof(struct call, member.req.err)                   \
                                         == offsetof(struct service_exec, exec.req.err), \
                      #call)
SAME_PLACE(service_connect, stream);
SAME_PLACE(service_read, read);
SAME_PLACE(service_write, write);
SAME_PLACE(service_git_credential, git);

static void ingress_done(struct op *op, int result)
{
        struct service_exec *x = container_of(op, struct service_exec, exec.req.op);
        struct ingress *v = x->req._impl;
        struct service *s = v->service;

        list_remove(&v->node);
        s->stats.under_way--;
        sandbox_free(v->record);
        free(v);
        req__prepare(&x->req, NULL, result, &x->exec.req.err);
        service__settle(s);
        op_finish_now(&x->req.op, result);
}

void ingress__stop(struct service *s)
{
        list_for_each (n, &s->ingresses)
                op_cancel(container_of(n, struct ingress, node)->inner);
}

/* --- streams --- */

void service_connect(struct service *s, struct service_connect *c)
{
        struct ingress *v;

        c->stream.fd = -EBADF;
        v = ingress_begin(s, &c->req, c->caller, c->id);
        if (!v)
                return;
        if (!c->passive)
                count_access(v);
        v->inner = &c->stream.req.op;
        op_init(v->inner, ingress_done);
        driver_start(v->driver, driver_connect_req(&c->stream, v->record));
}

/* --- calls to the agent --- */

void service_exec(struct service *s, struct service_exec *x)
{
        struct ingress *v = ingress_begin(s, &x->req, x->caller, x->id);

        if (!v)
                return;
        count_access(v);
        v->inner = &x->exec.req.op;
        op_init(v->inner, ingress_done);
        agent_exec(s->config.agents, &x->exec, v->driver, v->record);
}

void service_read_file(struct service *s, struct service_read *x)
{
        struct ingress *v = ingress_begin(s, &x->req, x->caller, x->id);

        if (!v)
                return;
        count_access(v);
        v->inner = &x->read.req.op;
        op_init(v->inner, ingress_done);
        agent_read(s->config.agents, &x->read, v->driver, v->record);
}

void service_write_files(struct service *s, struct service_write *x)
{
        struct ingress *v = ingress_begin(s, &x->req, x->caller, x->id);

        if (!v)
                return;
        count_access(v);
        v->inner = &x->write.req.op;
        op_init(v->inner, ingress_done);
        agent_write(s->config.agents, &x->write, v->driver, v->record);
}

void service_set_git_credential(struct service *s, struct service_git_credential *x)
{
        struct ingress *v = ingress_begin(s, &x->req, x->caller, x->id);

        if (!v)
                return;
        v->inner = &x->git.req.op;
        op_init(v->inner, ingress_done);
        agent_git(s->config.agents, &x->git, v->driver, v->record);
}
