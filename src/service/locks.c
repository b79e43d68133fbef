/* SPDX-License-Identifier: Apache-2.0 */

/* Whose turn it is, and who has the pen. */

#include "service/service_impl.h"

#include "base/base.h"

static bool preempts(const struct sandbox_op *j)
{
        return command_preempts(j->args.command);
}

/* Behind those that overtake, too: they came first. */
static struct list *place_in_line(struct sandbox_ctl *p)
{
        struct list *n = p->waiting.next;

        while (n != &p->waiting && preempts(container_of(n, struct sandbox_op, lock_node)))
                n = n->next;
        return n;
}

static const char *why_preempted(const struct sandbox_op *by)
{
        return by->args.command == COMMAND_EXPIRE ? "the time of the sandbox was over meanwhile"
                                                  : "the sandbox was deleted meanwhile";
}

/* driver_call__expedite comes last: a driver that refuses at once ends the current job, and then the turn has been
 * given on already. */
void op_lock__acquire(struct sandbox_op *j)
{
        struct sandbox_op *current = j->ctl->current;

        if (!current) {
                j->ctl->current = j;
                sandbox_op__run(j);
                return;
        }
        if (preempts(j)) {
                list_insert_before(place_in_line(j->ctl), &j->lock_node);
                current->args.preempted = true;
                sandbox_op__cancel_call(current, ERR_CONFLICT, why_preempted(j));
        } else {
                list_append(&j->ctl->waiting, &j->lock_node);
        }
        driver_call__expedite(current);
}

void op_lock__release(struct sandbox_ctl *p)
{
        struct list *n = list_first(&p->waiting);

        ASSERT(!p->current);
        if (!n)
                return;
        list_remove(n);
        p->current = container_of(n, struct sandbox_op, lock_node);
        sandbox_op__run(p->current);
}

void record_lock__acquire(struct sandbox_op *j, sandbox_op_fn *go)
{
        struct sandbox_ctl *p = j->ctl;

        j->with_record_lock = go;
        if (p->writer) {
                list_append(&p->writers, &j->record_node);
                return;
        }
        p->writer = j;
        go(j);
}

void record_lock__release(struct sandbox_ctl *p)
{
        struct list *n = list_first(&p->writers);

        p->writer = NULL;
        if (!n)
                return;
        list_remove(n);
        p->writer = container_of(n, struct sandbox_op, record_node);
        p->writer->with_record_lock(p->writer);
}
