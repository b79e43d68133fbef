/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_OP_H
#define HUTCH_NET_OP_H

/*
 * An operation: something that was started and will be done later.
 *
 * The rules, for every asynchronous call of this program:
 *
 * 1. `done` runs exactly once, from the loop, never from inside the starting call.
 * 2. The op's memory belongs to the starter and must stay until `done` was called; `done` may free
 *    it. op_cancel asks for an early end and still leads to `done`, normally with -ECANCELED, but
 *    with the true result if the work was finished already.
 * 3. Callbacks get the embedded struct op and find their owner with container_of.
 * 4. Whoever must block says so by a capability flag and is run in a worker process, not here.
 * 5. Streams are pulled: the consumer says when it can take more.
 *
 * The starter embeds a struct op and gives it to the starting call, which calls op_begin. The
 * worker calls op_finish when the result is known, whenever that is (even at once):
 *
 *         struct create { struct op op; ... };
 *
 *         op_init(&c->op, create_done);
 *         driver_create(d, record, &c->op);
 */

#include "net/loop.h"

struct op;
typedef void op_done_fn(struct op *op, int result);
typedef void op_cancel_fn(struct op *op);

enum op_state {
        OP_IDLE,      /* not begun, or done; the memory is free to use */
        OP_RUNNING,   /* op_finish or op_cancel leads out */
        OP_CANCELING, /* the worker was asked to stop; op_finish leads out */
        OP_FINISHED,  /* result is known, `done` is queued */
};

struct op {
        op_done_fn *done;
        enum op_state state;
        struct net_loop *_loop;
        op_cancel_fn *_cancel;
        int _result;
        struct net_task _task;
};

/* --- for the starter --- */

void op_init(struct op *op, op_done_fn *done);

/* Does nothing unless the op is running. */
void op_cancel(struct op *op);

static inline bool op_pending(const struct op *op)
{
        return op->state != OP_IDLE;
}

/* --- for the worker --- */

/* `cancel` is told when the starter gives up; it must lead to op_finish, now or later. NULL: the
 * work can't be stopped and its result is awaited. */
void op_begin(struct op *op, struct net_loop *loop, op_cancel_fn *cancel);

void op_finish(struct op *op, int result);

#endif
