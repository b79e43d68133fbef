/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting for a sandbox to come to rest: its news are listened to, and looked at from the loop, because
 * who tells them is in the middle of something. */

#include "base/base.h"
#include "service/service_impl.h"

struct await_op {
        struct list node; /* service->awaiting */
        struct service *service;
        struct service_await *w;
        char id[SANDBOX_ID_MAX + 1];
        size_t id_n;
        struct service_listener listener;
        struct net_task look;
        struct deadline deadline;
};

bool service_is_transitional(const struct sandbox *record)
{
        int state = record->status.state;

        return state == STATE_PENDING || state == STATE_PAUSING || state == STATE_RESUMING;
}

static struct str id_of(const struct await_op *a)
{
        return str_of(a->id, a->id_n);
}

static void end(struct await_op *a, int result)
{
        struct service *s = a->service;
        struct service_req *req = &a->w->req;

        list_remove(&a->node);
        service_unlisten(&a->listener);
        net_task_cancel(&a->look);
        deadline_clear(&s->schedule, &a->deadline);
        req__finish(req, sandbox_ctl__get(s, id_of(a)), result, &req->err);
        free(a);
        service__settle(s);
}

static void look(struct net_task *t)
{
        struct await_op *a = container_of(t, struct await_op, look);
        const struct sandbox *record = service_find(a->service, a->w->caller, id_of(a));

        if (!record)
                end(a, service__not_found(&a->w->req.err));
        else if (!service_is_transitional(record))
                end(a, 0);
}

static void heard(struct service_listener *l, const struct service_event *e)
{
        struct await_op *a = container_of(l, struct await_op, listener);

        if (str_eq(e->record->id, id_of(a)))
                net_task_queue(a->service->config.loop, &a->look);
}

static void too_late(struct deadline *d)
{
        struct await_op *a = container_of(d, struct await_op, deadline);

        end(a, err_set(&a->w->req.err, ERR_UNAVAILABLE,
                       "the sandbox is still not ready; ask again later"));
}

static void cancel(struct op *op)
{
        struct await_op *a = container_of(op, struct service_req, op)->_impl;

        end(a, err_set(&a->w->req.err, ERR_CANCELED, "nobody waits for the sandbox"));
}

void await__stop(struct service *s)
{
        struct list *next;

        for (struct list *n = s->awaits.next; n != &s->awaits; n = next) {
                struct await_op *a = container_of(n, struct await_op, node);

                next = n->next; /* the end of one is the end of no other */
                end(a, err_set(&a->w->req.err, ERR_UNAVAILABLE, "the server is stopping"));
        }
}

void service_await(struct service *s, struct service_await *w)
{
        struct await_op *a;
        int r;

        req__begin(s, &w->req, cancel);
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
        a->id_n = w->id.n; /* of a record: it fits */
        memcpy(a->id, w->id.p, w->id.n);
        a->listener.event = heard;
        net_task_init(&a->look, look);
        deadline_init(&a->deadline, too_late);
        w->req._impl = a;
        list_append(&s->awaits, &a->node);
        service_listen(s, &a->listener);
        deadline_set(&s->schedule, &a->deadline, usec_add(clock_mono(s->config.clock), w->wait));
        net_task_queue(s->config.loop, &a->look);
}
