/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_STATE_H
#define HUTCH_MODEL_STATE_H

/*
 * The state of a sandbox, and the one function that changes it.
 *
 *                     ┌────────────────────────────────────────┐
 *                     ▼                                        │
 *         PENDING ► RUNNING ◄──► PAUSING ──► PAUSED ◄──► RESUMING
 *
 *         each of these ──► STOPPING ──► TERMINATED
 *         each of these, STOPPING too ──► FAILED ──► STOPPING (when it is deleted)
 *         each but PENDING ──► TERMINATED (when it has ended by itself)
 *
 * PAUSING and RESUMING go back if the driver fails.
 *
 * A state is what the *record* promises, not what the runtime does at this instant: it is written before the driver is called
 * (PENDING, PAUSING, RESUMING, STOPPING) and again when the driver is done. So a crash leaves one of these transient states,
 * and reconciliation knows which call to repeat or to undo.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum state {
        /* PENDING – the record exists, the driver creates the sandbox.
         *   leaves by: create succeeds -> RUNNING, fails -> FAILED, delete -> STOPPING
         *   caveat:    commands are refused; the expiry already counts                           */
        STATE_PENDING,

        /* RUNNING – the agent responds.
         *   leaves by: pause -> PAUSING, delete or expiry -> STOPPING, its own exit -> TERMINATED,
         *              an unexpected death -> FAILED
         *   caveat:    what the agent sends is hostile input, in this state as in any other      */
        STATE_RUNNING,

        /* PAUSING – the driver freezes it; no new command may start.
         *   leaves by: frozen -> PAUSED, could not be frozen -> RUNNING, delete or expiry ->
         *              STOPPING, death -> FAILED or TERMINATED
         *   caveat:    the expiry timer keeps running                                            */
        STATE_PAUSING,

        /* PAUSED – frozen; memory is kept, nothing runs.
         *   leaves by: resume -> RESUMING, delete or expiry -> STOPPING, death -> FAILED or
         *              TERMINATED
         *   caveat:    a request into it would hang, so it is refused at once; expiry continues  */
        STATE_PAUSED,

        /* RESUMING – the driver thaws it.
         *   leaves by: thawed -> RUNNING, could not be thawed -> PAUSED, delete or expiry ->
         *              STOPPING, death -> FAILED or TERMINATED
         *   caveat:    as in PAUSING, no new command may start                                   */
        STATE_RESUMING,

        /* STOPPING – the driver destroys it. There is no way back.
         *   leaves by: destroyed -> TERMINATED, could not be destroyed -> FAILED
         *   caveat:    destroy is idempotent: after a restart it is called again                 */
        STATE_STOPPING,

        /* TERMINATED – ended as intended: deleted, expired, or exited by itself.
         *   leaves by: never; the record is a tombstone and is removed after a while
         *   caveat:    nothing of it exists in the runtime any more                              */
        STATE_TERMINATED,

        /* FAILED – ended unexpectedly, or never started; reason and message say why.
         *   leaves by: delete -> STOPPING; else it is a tombstone and is removed after a while
         *   caveat:    the runtime may still hold remains, so a delete (or the end of the
         *              tombstone) calls the driver once more                                     */
        STATE_FAILED,

        STATE_MAX_,
        STATE_INVALID_ = -EINVAL,
};

/* "Pending", "Running" …, as in the API. */
ENUM_DECLARE(state);

/* --- sets --- */

/* Counts against quotas, may use resources of the runtime, is listed by default. */
bool state_is_live(enum state s);

/* A tombstone: TERMINATED or FAILED. */
bool state_is_final(enum state s);

bool state_may_become(enum state from, enum state to);

/* --- the status of a record --- */

struct status {
        int state;          /* enum state */
        struct str reason;  /* for programs: CONTAINER_RUNNING; null if there is none */
        struct str message; /* for people; null if there is none */
        int64_t changed_ms; /* wall time of the last change of state */
};

extern const struct json_field status_fields[];

/* For FAILED: the node that ran it is lost. */
#define REASON_NODE_LOST "NODE_LOST"

struct status_step {
        enum state state;
        struct str reason;
        struct str message;
        int64_t at_ms;
};

/* ERR_CONFLICT if that transition is illegal, one to the same state included; then *s is unchanged. The texts are copied into
 * the arena, which is the record's. A reason must be shaped like a label (it is ours; a wrong one is a bug); a message comes
 * from a driver: control characters become spaces, and it is cut. */
int status_change(struct status *s, struct arena *a, const struct status_step *to, struct err *e)
        must_check;

/* Another reason and message for the same state ("pulling the image"); the time of the transition stays. */
int status_explain(struct status *s, struct arena *a, struct str reason, struct str message,
                   struct err *e) must_check;

/* What is wrong with a stored status, or NULL. Its state is one of that table: sandboxes and snapshots have their own. */
const char *status_check(const struct status *s, const struct enum_table *states);

#endif
