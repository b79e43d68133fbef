/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting until a sandbox has left its transitional state. Events only queue a task, which looks at the record: whoever
 * sends them is in the middle of an operation. */

#include "base/base.h"
#include "service/service_impl.h"

struct await_op {
        struct list node; /* service->awaiting */
        struct service *service;
        struct service_await *w;
        char id[SANDBOX_ID_MAX + 1];
        struct service_listener listener;
        struct net_task check;
        struct deadline deadline;
};

bool service_is_transitional(const struct sandbox *record)
{
        int state = record->status.state;

        return state == STATE_PENDING || state == STATE_PAUSING || state == STATE_RESUMING;
}

static void await_end(struct await_op *a, int result)
{
        struct service *s = a->service;
        struct service_req *req = &a->w->req;

        list_remove(&a->node);
        service_unlisten(&a->listener);
        net_task_cancel(&a->check);
        deadline_clear(&s->schedule, &a->deadline);
        req__finish(req, sandbox_ctl__get(s, str_from(a->id)), result, &req->err);
        free(a);
        service__settle(s);
}

static void await_check(struct net_task *t)
{
        struct await_op *a = container_of(t, struct await_op, check);
        const struct sandbox *record = service_find(a->service, a->w->caller, str_from(a->id));

        if (!record)
                await_end(a, service__not_found(&a->w->req.err));
        else if (!service_is_transitional(record))
                await_end(a, 0);
}

static void event_received(struct service_listener *l, const struct service_event *e)
{
        struct await_op *a = container_of(l, struct await_op, listener);

        if (str_eq(e->record->id, str_from(a->id)))
                net_task_queue(a->service->config.loop, &a->check);
}

static void timed_out(struct deadline *d)
{
        struct await_op *a = container_of(d, struct await_op, deadline);

        await_end(a, err_set(&a->w->req.err, ERR_UNAVAILABLE,
                             "the sandbox is still not ready; try again later"));
}

static void await_cancel(struct op *op)
{
        struct await_op *a = container_of(op, struct service_req, op)->_impl;

        await_end(a, err_set(&a->w->req.err, ERR_CANCELED, "canceled"));
}

void await__stop(struct service *s)
{
        list_for_each (n, &s->awaits) {
                struct await_op *a = container_of(n, struct await_op, node);

                await_end(a, err_set(&a->w->req.err, ERR_UNAVAILABLE, "the server is stopping"));
        }
}

void service_await(struct service *s, struct service_await *w)
{
        struct await_op *a;
        int r;

        req__begin(s, &w->req, await_cancel);
        r = service__ready(s, &w->req.err);
        if (r == 0 && !service_find(s, w->caller, w->id))
                r = service__not_found(&w->req.err);
        if (r < 0) {
                req__finish(&w->req, NULL, r, &w->req.err);
                return;
        }
        a = xnew(struct await_op);
        a->service = s;
        a->w = w;
        memcpy(a->id, w->id.p, w->id.n); /* of a record: it fits */
        a->listener.event = event_received;
        net_task_init(&a->check, await_check);
        deadline_init(&a->deadline, timed_out);
        w->req._impl = a;
        list_append(&s->awaits, &a->node);
        service_listen(s, &a->listener);
        deadline_set(&s->schedule, &a->deadline, usec_add(clock_mono(s->config.clock), w->wait));
        net_task_queue(s->config.loop, &a->check);
}
