/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_OP_H
#define HUTCH_NET_OP_H

/*
 * An operation: something that was started and completes later.
 *
 * The rules, for every asynchronous call of this program:
 *
 * 1. `done` runs exactly once, from the loop, never from inside the starting call.
 * 2. The op's memory belongs to the starter and must stay valid until `done` was called; `done` may
 *    free it. op_cancel asks for an early end and still leads to `done`, normally with -ECANCELED,
 *    but with the real result if the work had already finished.
 * 3. Callbacks get the embedded struct op and find their owner with container_of.
 * 4. Work that blocks does not run here: it belongs in a helper process.
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
        uint64_t _begun; /* net_loop.tasks_run at op_begin */
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

/* `cancel` is called when the starter cancels; it must lead to op_finish, now or later. NULL: the
 * work cannot be stopped and its result is awaited. */
void op_begin(struct op *op, struct net_loop *loop, op_cancel_fn *cancel);

/* Queues `done`. */
void op_finish(struct op *op, int result);

/* As op_finish, but calls `done` before it returns if rule 1 allows that: the loop has run a task
 * since op_begin, so the starting call has returned, and the op was not canceled. Saves an iteration
 * of the loop where one operation completes because another one has. To be called from the loop
 * (from another op's `done`, a task, a timer), as the last thing that touches the op or its owner. */
void op_finish_now(struct op *op, int result);

/* --- for a layer between both --- */

/*
 * A layer that offers an operation usually has work of its own around the starter's `done`: before
 * it, to hand out results; after it, to free them and to count the operation as over. It wraps the
 * op for that: `step` runs in the place of `done`, and calls the wrapped one with op_unwrap.
 *
 *         static void req_step(struct op *op, int result)
 *         {
 *                 struct req *r = container_of(op, struct req, op);
 *                 struct layer *l = r->_layer;
 *                 char *text = TAKE_PTR(r->_text);
 *
 *                 r->text = text;
 *                 op_unwrap(op, &r->_wrap, result);       may free r, or start it again
 *                 free(text);
 *                 l->n_running--;
 *         }
 *
 *         op_wrap(&r->op, &r->_wrap, req_step);
 *         op_begin(&r->op, loop, cancel);
 *
 * A layer on top may wrap the same op again, with its own struct op_wrap and before it calls the
 * layer below; the steps then run from the innermost to the outermost. No step costs an iteration of
 * the loop. A step may also begin the op again instead, and is called again when that is finished.
 */

struct op_wrap {
        op_done_fn *_done;
};

/* While the op is idle. */
void op_wrap(struct op *op, struct op_wrap *w, op_done_fn *step);

/* From inside the step: puts the wrapped `done` back and calls it. */
void op_unwrap(struct op *op, struct op_wrap *w, int result);

#endif
