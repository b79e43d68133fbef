/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/registry_impl.h"

/* Several at a time: a store that writes all of a turn at once is then as fast as it can be. */
#define AT_A_TIME 32

/* How many are looked at before the loop gets its turn. */
#define STRETCH 256

struct reconcile {
        struct registry *r;
        struct registry_reconcile *out;
        const struct sandbox *const *found;
        size_t n;
        size_t next;
        size_t under_way;
        struct net_task task;
        int result; /* the first failure; nothing new is begun after it */
};

struct adding {
        struct registry_register reg;
        struct reconcile *c;
};

static void reconcile_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct reconcile *c = req->_job;

        request_end(c->r, req, result);
        free(c);
}

static void added(struct op *op, int result)
{
        struct adding *a = container_of(op, struct adding, reg.req.op);
        struct reconcile *c = a->c;

        c->under_way--;
        if (result == 0) {
                c->out->added++;
        } else if (result == ERR_RETURN(ERR_EXISTS) || result == ERR_RETURN(ERR_INVALID)
                   || result == ERR_RETURN(ERR_TOO_LARGE)) {
                c->out->skipped++;
        } else if (c->result == 0) {
                c->result = result;
                c->out->req.err = a->reg.req.err;
                c->n = c->next;
        }
        free(a);
        net_task_queue(c->r->loop, &c->task);
}

static bool is_wanted(const struct reconcile *c, const struct sandbox *s)
{
        return !registry_peek(c->r, s->id) && !writing_has(c->r, s->id) && is_ours(c->r, s)
               && sandbox_check(s, NULL) == 0;
}

static void look_at(struct reconcile *c, const struct sandbox *s)
{
        struct sandbox *copy = is_wanted(c, s) ? sandbox_copy(s) : NULL;
        struct adding *a;

        if (!copy) {
                c->out->skipped++;
                return;
        }
        a = xnew(struct adding);
        a->c = c;
        op_init(&a->reg.req.op, added);
        c->under_way++;
        registry_register(c->r, &a->reg, copy);
}

static void go_on(struct reconcile *c)
{
        for (unsigned i = 0; i < STRETCH && c->next < c->n && c->under_way < AT_A_TIME; i++)
                look_at(c, c->found[c->next++]);
        if (c->next < c->n && c->under_way < AT_A_TIME)
                net_task_queue(c->r->loop, &c->task);
        else if (c->under_way == 0)
                op_finish(&c->out->req.op, c->result);
}

static void run(struct net_task *t)
{
        go_on(container_of(t, struct reconcile, task));
}

void registry_reconcile(struct registry *r, struct registry_reconcile *c,
                        const struct sandbox *const *found, size_t n)
{
        struct reconcile *job = xnew(struct reconcile);

        c->added = c->skipped = 0;
        job->r = r;
        job->out = c;
        job->found = found;
        job->n = n;
        net_task_init(&job->task, run);
        request_begin(r, &c->req, reconcile_end, job);
        net_task_queue(r->loop, &job->task);
}
