/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_SNAPSHOT_H
#define HUTCH_MODEL_SNAPSHOT_H

/*
 * The record of a snapshot: the file system of a sandbox, kept by the sandbox's driver under the snapshot's id. It outlives the
 * sandbox; it does not contain processes, memory, volumes or values of variables.
 *
 *         CREATING ──► READY ◄──► DELETING ──► (the record is removed)
 *             │          │           ▲
 *             └──► FAILED ◄──────────┘ (and back)
 *
 * As with sandboxes, a state is what the record promises: CREATING and DELETING are written before the driver is called, so
 * after a crash they say which call to repeat or to undo.
 *
 * A struct snapshot has one owner and is freed by snapshot_free; all its views point into its own arena. A change is made in a
 * copy, which replaces the old record once it is stored. Reading is as strict as writing (model/sandbox.h).
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "model/state.h"

#define SNAPSHOT_SCHEMA 1

enum snapshot_state {
        SNAPSHOT_CREATING, /* the driver creates it */
        SNAPSHOT_READY,    /* sandboxes can be created from it */
        SNAPSHOT_FAILED,   /* it does not exist, or no longer; reason and message say why */
        SNAPSHOT_DELETING, /* the driver removes it */
        SNAPSHOT_STATE_MAX_,
        SNAPSHOT_STATE_INVALID_ = -EINVAL,
};

ENUM_DECLARE(snapshot_state); /* Creating, Ready, Failed, Deleting */

/* Reasons; upstream's where it has one. */
#define SNAPSHOT_REASON_ACCEPTED    "snapshot_accepted"
#define SNAPSHOT_REASON_READY       "snapshot_ready"
#define SNAPSHOT_REASON_FAILED      "snapshot_capture_failed"
#define SNAPSHOT_REASON_INTERRUPTED "snapshot_interrupted"
#define SNAPSHOT_REASON_GONE        "snapshot_gone"
#define SNAPSHOT_REASON_DELETING    "snapshot_deleting"
#define SNAPSHOT_REASON_IN_USE      "snapshot_in_use"

struct snapshot {
        struct arena arena; /* all below */
        int64_t schema;
        struct str id;         /* like ids of sandboxes */
        struct str sandbox_id; /* its source */
        struct str name;       /* chosen by the client; or null */
        struct str tenant;     /* who may see it */
        struct str node;       /* the hutchd that has it */
        struct str driver;     /* that has it, and can create sandboxes from it */
        int64_t created_ms;
        struct status status; /* its state is an enum snapshot_state */
        int64_t version;      /* starts at 1 and grows with each write */
};

/* Empty; invalid until it is filled. */
struct snapshot *snapshot_new(void) must_check;
void snapshot_free(struct snapshot *s);
void snapshot_freep(struct snapshot **s);

/* NULL if there is no memory. */
struct snapshot *snapshot_copy(const struct snapshot *s) must_check;

/* What a new snapshot starts with; the views are copied. */
struct snapshot_facts {
        struct str id, sandbox_id, name, tenant, node, driver;
        int64_t now_ms;
};

/* In state CREATING. ERR_INVALID with the member that breaks a rule. */
int snapshot_make(const struct snapshot_facts *f, struct snapshot **ret, struct err *e) must_check;

struct snapshot_step {
        enum snapshot_state state;
        struct str reason;  /* a constant of ours, shaped like a label */
        struct str message; /* from a driver: cleaned and cut */
        int64_t at_ms;
};

/* ERR_CONFLICT if that transition is illegal; then *s is unchanged. */
int snapshot_change(struct snapshot *s, const struct snapshot_step *to, struct err *e) must_check;

/* Whether a snapshot may have that name. */
bool snapshot_name_is_valid(struct str name);

/* --- stored form --- */

int snapshot_check(const struct snapshot *s, struct err *e) must_check;

/* Appends; failures are b's. The record must have passed snapshot_check. */
void snapshot_encode(struct buf *b, const struct snapshot *s);

/* ERR_INVALID if it is not a record of ours, ERR_UNSUPPORTED if a newer hutchd wrote it. */
int snapshot_decode(struct str text, struct snapshot **ret, struct err *e) must_check;

#endif
