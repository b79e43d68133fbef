/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_STATE_H
#define HUTCH_MODEL_STATE_H

/*
 * Where a sandbox is in its life, and the one function that moves it on.
 *
 *                     ┌────────────────────────────────────────┐
 *                     ▼                                        │
 *         PENDING ► RUNNING ◄──► PAUSING ──► PAUSED ◄──► RESUMING
 *
 *         each of these ──► STOPPING ──► TERMINATED
 *         each of these, STOPPING too ──► FAILED ──► STOPPING (when it is deleted)
 *         what has run ──► TERMINATED (when it has ended by itself)
 *
 * The ways back from PAUSING and RESUMING are those of a driver that could not do it.
 *
 * A state says what the *record* promises, not what the runtime does at this instant: it is written
 * before the driver is asked (PENDING, PAUSING, RESUMING, STOPPING) and again when the driver has
 * answered. So a crash leaves a state that ends in "-ing" (or PENDING), and whoever reconciles
 * knows which call to repeat or to undo.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum state {
        /* PENDING – the record is there, the driver was or will be asked to create.
         *   leaves by: create has succeeded -> RUNNING, has failed -> FAILED, delete -> STOPPING
         *   caveat:    nothing may be run in it; expiry is already counting                     */
        STATE_PENDING,

        /* RUNNING – the agent answers.
         *   leaves by: pause -> PAUSING, delete or expiry -> STOPPING, its own end -> TERMINATED,
         *              a death that nobody asked for -> FAILED
         *   caveat:    the agent's word is hostile input, in this state as in any other          */
        STATE_RUNNING,

        /* PAUSING – the driver was asked to freeze; no new command may start.
         *   leaves by: frozen -> PAUSED, could not be frozen -> RUNNING, delete or expiry ->
         *              STOPPING, death -> FAILED or TERMINATED
         *   caveat:    the expiry timer keeps running                                            */
        STATE_PAUSING,

        /* PAUSED – frozen; memory is kept, nothing runs.
         *   leaves by: resume -> RESUMING, delete or expiry -> STOPPING, death -> FAILED or
         *              TERMINATED
         *   caveat:    a request into it would hang, so it is refused at once; expiry goes on    */
        STATE_PAUSED,

        /* RESUMING – the driver was asked to thaw.
         *   leaves by: thawed -> RUNNING, could not be thawed -> PAUSED, delete or expiry ->
         *              STOPPING, death -> FAILED or TERMINATED
         *   caveat:    as in PAUSING, no new command may start                                   */
        STATE_RESUMING,

        /* STOPPING – the driver was asked to destroy. There is no way back.
         *   leaves by: destroyed -> TERMINATED, could not be destroyed -> FAILED
         *   caveat:    destroy is idempotent: after a restart it is simply asked again           */
        STATE_STOPPING,

        /* TERMINATED – gone as it should be: deleted, expired, or ended by itself.
         *   leaves by: never; the record is a tombstone and goes after its time
         *   caveat:    nothing of it exists in the runtime any more                              */
        STATE_TERMINATED,

        /* FAILED – gone, or never been, as it should not be; reason and message say why.
         *   leaves by: delete -> STOPPING; else it is a tombstone and goes after its time
         *   caveat:    the runtime may still hold remains, which is why a delete (or the end of
         *              the tombstone) asks the driver once more                                  */
        STATE_FAILED,

        STATE_MAX_,
        STATE_INVALID_ = -EINVAL,
};

/* "Pending", "Running" …; also the names of the API. */
ENUM_DECLARE(state);

/* The same without regard to case, for filters. -EINVAL if it is none. */
int state_from_string_any_case(struct str s);

/* --- sets --- */

/* Counts against quotas, may hold things in the runtime, is listed by default. */
bool state_is_live(enum state s);

/* A tombstone: TERMINATED or FAILED. */
bool state_is_final(enum state s);

/* Between a question to the driver and its answer; what a restart has to finish or undo. */
bool state_is_transient(enum state s);

bool state_may_become(enum state from, enum state to);

/* --- the status of a record --- */

struct status {
        int state;          /* enum state */
        struct str reason;  /* for programs: CONTAINER_RUNNING; null if there is none */
        struct str message; /* for people; null if there is none */
        int64_t changed_ms; /* wall time of the last change of state */
};

extern const struct json_field status_fields[];

/* Of FAILED: the node that looked after it is gone, and nothing of it is here. */
#define REASON_NODE_LOST "NODE_LOST"

struct status_step {
        enum state state;
        struct str reason;
        struct str message;
        int64_t at_ms;
};

/* ERR_CONFLICT if that change is not legal, a change to the same state included; *s then is as it
 * was. The texts are copied into the arena, which is the record's. A reason must be a label-like
 * word (it is ours; a wrong one is a bug), a message is whatever a driver said: control characters
 * become spaces, and it is cut. */
int status_change(struct status *s, struct arena *a, const struct status_step *to, struct err *e)
        must_check;

/* New words for the same state ("pulling the image"): the time of the change stays. */
int status_explain(struct status *s, struct arena *a, struct str reason, struct str message,
                   struct err *e) must_check;

/* What is wrong with a status that was read, or NULL. */
const char *status_check(const struct status *s);

#endif
