/* SPDX-License-Identifier: Apache-2.0 */
#include "net/op.h"

#include "base/base.h"

static void op_run_done(struct net_task *t)
{
        struct op *op = container_of(t, struct op, _task);

        ASSERT(op->state == OP_FINISHED);
        op->state = OP_IDLE;
        op->done(op, op->_result); /* may free op */
}

void op_init(struct op *op, op_done_fn *done)
{
        *op = (struct op){ .done = done, .state = OP_IDLE };
        net_task_init(&op->_task, op_run_done);
}

void op_cancel(struct op *op)
{
        if (op->state != OP_RUNNING)
                return;
        op->state = OP_CANCELING;
        if (op->_cancel)
                op->_cancel(op);
}

void op_begin(struct op *op, struct net_loop *loop, op_cancel_fn *cancel)
{
        ASSERT(op->state == OP_IDLE && op->done);
        op->state = OP_RUNNING;
        op->_loop = loop;
        op->_cancel = cancel;
        op->_begun = loop->tasks_run;
}

void op_finish(struct op *op, int result)
{
        ASSERT(op->state == OP_RUNNING || op->state == OP_CANCELING);
        op->state = OP_FINISHED;
        op->_result = result;
        net_task_queue(op->_loop, &op->_task);
}

/* The loop counts tasks when it starts them. An op that was begun by the task that runs now, or by an
 * event since the last task, has the present count: its starter may still be on the stack. Canceled
 * ops take the long way because op_cancel may be called by an owner that is on the stack, too. */
void op_finish_now(struct op *op, int result)
{
        if (op->state != OP_RUNNING || op->_begun == op->_loop->tasks_run) {
                op_finish(op, result);
                return;
        }
        op->state = OP_IDLE;
        op->done(op, result); /* may free op */
}

void op_wrap(struct op *op, struct op_wrap *w, op_done_fn *step)
{
        ASSERT(op->state == OP_IDLE && op->done != step);
        w->_done = op->done;
        op->done = step;
}

void op_unwrap(struct op *op, struct op_wrap *w, int result)
{
        ASSERT(op->state == OP_IDLE);
        op->done = w->_done;
        op->done(op, result); /* may free op, or start it again */
}
