/* SPDX-License-Identifier: Apache-2.0 */

/* Whose turn it is, and who has the pen. */

#include "service/service_impl.h"

#include "base/base.h"

static bool overtakes(const struct job *j)
{
        return command_preempts(j->wanted.command);
}

/* Behind those that overtake, too: they came first. */
static struct list *place_in_line(struct place *p)
{
        struct list *n = p->waiting.next;

        while (n != &p->waiting && overtakes(container_of(n, struct job, turn)))
                n = n->next;
        return n;
}

static const char *why_overtaken(const struct job *by)
{
        return by->wanted.command == COMMAND_EXPIRE ? "the time of the sandbox was over meanwhile"
                                                    : "the sandbox was deleted meanwhile";
}

/* driver_call__expedite comes last: a driver that refuses at once ends the current job, and then the turn has been
 * given on already. */
void op_lock__acquire(struct job *j)
{
        struct job *current = j->place->current;

        if (!current) {
                j->place->current = j;
                sandbox_op__run(j);
                return;
        }
        if (overtakes(j)) {
                list_insert_before(place_in_line(j->place), &j->turn);
                current->wanted.overtaken = true;
                sandbox_op__cancel_call(current, ERR_CONFLICT, why_overtaken(j));
        } else {
                list_append(&j->place->waiting, &j->turn);
        }
        driver_call__expedite(current);
}

void op_lock__release(struct place *p)
{
        struct list *n = list_first(&p->waiting);

        ASSERT(!p->current);
        if (!n)
                return;
        list_remove(n);
        p->current = container_of(n, struct job, turn);
        sandbox_op__run(p->current);
}

void record_lock__acquire(struct job *j, sandbox_op_fn *go)
{
        struct place *p = j->place;

        j->with_pen = go;
        if (p->writer) {
                list_append(&p->writers, &j->pen);
                return;
        }
        p->writer = j;
        go(j);
}

void record_lock__release(struct place *p)
{
        struct list *n = list_first(&p->writers);

        p->writer = NULL;
        if (!n)
                return;
        list_remove(n);
        p->writer = container_of(n, struct job, pen);
        p->writer->with_pen(p->writer);
}
