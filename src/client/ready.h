/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_READY_H
#define HUTCH_CLIENT_READY_H

/*
 * Waiting until a sandbox can be used: Running by the server's word, and its agent answers.
 *
 * Servers tell nobody when that is (a stream of events is Hutch's alone), so they are asked: at once,
 * then after 100 ms, and so on, at intervals that grow by half up to 2 s.
 */

#include "client/op.h"

struct ready_op {
        struct op op;
        char *id;
        usec_t interval;
        struct hutch_sandbox *sandbox; /* what was last known of it, or NULL */
        usec_t agent_by; /* if its agent does not answer by then, it never will; 0: no such time */
        /* It is ready: NULL, or what goes on then. */
        void (*then)(struct ready_op *r);
        /* It never will be: NULL, or what is done about it. */
        void (*otherwise)(struct ready_op *r);
};

#define READY_TIMEOUT_MS 60000

/* Begins to ask; r->id is set. */
void ready_begin(struct ready_op *r);

/* For op_kind.timeout_text. */
const char *ready_timeout_text(struct op *op);

/* Frees what the struct owns besides the operation. */
void ready_done(struct ready_op *r);

#endif
