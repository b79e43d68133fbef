/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_SANDBOXES_H
#define HUTCH_CLIENT_SANDBOXES_H

/* Shared by the calls for sandboxes and those that are built from several requests. */

#include "client/op.h"

#define CREATE_TIMEOUT_MS 300000 /* some servers pull the image before they respond */

#define OWNER_LABEL "hutch.owner"
#define OWNER_TEXT  41 /* 40 hexadecimal digits and a NUL: a label has at most 63 */

/* The value of the label: a digest of all members, each with its length, so that different owners do not
 * collide. HUTCH_INVALID if one of the three required members is missing. */
int owner_digest(const struct hutch_owner *o, char ret[static OWNER_TEXT]) must_check;

/* Writes the body of a create request. `owner` is a digest or NULL. */
void sandboxes_write(struct op *op, const struct hutch_sandbox_options *o, const char *owner);

/* Requests the sandboxes of an owner. */
void sandboxes_search_owner(struct op *op, const char *owner, void (*on_response)(struct op *op));

/* A sandbox that is alive, or might become so; else one that failed; else NULL. */
const struct hutch_sandbox *sandboxes_pick(const struct hutch_sandbox_list *l);
bool sandbox_is_alive(const struct hutch_sandbox *s);

/* --- waiting until a sandbox is ready: Running, and its agent responds --- */

/*
 * Only Hutch has a stream of events, so the state is polled: at once, after 100 ms, and then at intervals
 * that grow by half up to 2 s.
 */

struct ready_op {
        struct op op;
        char *id;
        usec_t interval;
        struct hutch_sandbox *sandbox; /* its last known state, or NULL */
        usec_t agent_by; /* give up if its agent does not respond by then; 0: no limit */
        /* Called when it is ready. NULL: the operation succeeds. */
        void (*on_ready)(struct op *op);
        /* Called when it can no longer become ready. NULL: the operation fails. */
        void (*on_failed)(struct op *op);
};

#define READY_TIMEOUT_MS 60000

/* Starts polling; the id is set. */
void ready_begin(struct op *op);

/* For op_kind.timeout_text. */
const char *ready_timeout_text(struct op *op);

/* Frees what the struct owns. */
void ready_done(struct op *op);

#endif
