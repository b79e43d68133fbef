/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SNAPSHOT_IMPL_H
#define HUTCH_SERVICE_SNAPSHOT_IMPL_H

/*
 * A snapshot operation is what is being done about one snapshot. There is at most one for each id, so writes of one
 * record never overlap.
 *
 *         TAKE    record Creating ─► operation on the sandbox (COMMAND_SNAPSHOT) ─► Ready or Failed
 *         DELETE  record Deleting ─► driver removes it ─► record removed; or as it was
 *         UNDO    a record that a crash left Creating: driver removes it ─► Failed
 *         GONE    the driver no longer has it ─► Failed
 *         SWEEP   the driver has one without a record, or a failed one: driver removes it
 *
 * All but DELETE share a number of slots (snapshots_at_once). The record of a TAKE that waits for one is Creating
 * already.
 */

#include "service/service_impl.h"

enum snapshot_op_kind {
        SNAPSHOT_OP_TAKE,
        SNAPSHOT_OP_DELETE,
        SNAPSHOT_OP_UNDO,
        SNAPSHOT_OP_GONE,
        SNAPSHOT_OP_SWEEP
};

struct snapshot_op {
        struct service *service;
        enum snapshot_op_kind kind;
        char id[SANDBOX_ID_MAX + 1];
        char tenant[NAME_MAX_TEXT + 1]; /* TAKE */
        struct list node, slot_node;
        struct list waiters; /* struct service_req, each in a struct service_snapshot */
        bool counted;        /* in service->snapshots.active */
        int was;             /* DELETE: enum snapshot_state before it */
        struct driver *driver;

        int result; /* of the driver */
        struct err err;
        struct driver_snapshot_remove removing;
        struct snapshots_write write;
        unsigned rewrites;
};

struct snapshot_op *snapshot_op__new(struct service *s, enum snapshot_op_kind kind, struct str id);

/* NULL if nothing is being done about that snapshot. */
struct snapshot_op *snapshot_op__of(const struct service *s, struct str id);

/* Begins when there is a slot. */
void snapshot_op__start(struct snapshot_op *w);

#endif
