/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_DRIVER_H
#define HUTCH_DRIVER_DRIVER_H

/*
 * A driver makes sandboxes, in whatever way: this interface is all that the rest knows of it. How to
 * write one is told in docs/internals/driver-contract.md and in driver/driver_impl.h; one contract
 * suite (tests/contract/driver_contract.h) holds for all.
 *
 * A sandbox of a driver is named by its record: the driver finds what it needs in record->id and in
 * record->handle (its own notes, which create gave and the record keeps). Everything asked for in
 * the record is given or refused (ERR_UNSUPPORTED, and the message says what): nothing is ignored.
 *
 * Operations follow net/op.h. The record, and what else is passed in, stays as it is until `done`.
 * Results are views that live until `done` returns. The result is 0, or a domain code with its story
 * in req.err:
 *
 *         ERR_INVALID      the request can't be fulfilled by anybody (no such image name)
 *         ERR_NOT_FOUND    there is no such sandbox (or image) in the runtime
 *         ERR_CONFLICT     not in the state for it: pause of what is paused, or create of what is there
 *         ERR_UNSUPPORTED  not by this driver
 *         ERR_EXHAUSTED    the machine is full
 *         ERR_UNAVAILABLE  the runtime does not answer; try again
 *         ERR_TIMEOUT, ERR_CANCELED, ERR_INTERNAL
 *
 * Calls for different sandboxes run side by side. Calls for one sandbox do not overlap, except for
 * connect, inspect and usage: the service sees to that.
 *
 * The runtime keeps enough to find everything again after a crash: create writes the complete owner
 * tuple and the record beside the sandbox before the sandbox can run, and scan returns only what it
 * can read back whole. Installations are told apart by their id: a driver never sees or touches what
 * another hutchd has made.
 */

#include "base/enum.h"
#include "base/list.h"
#include "base/log.h"
#include "model/runtime_status.h"
#include "model/create.h"
#include "model/limits.h"
#include "model/sandbox.h"
#include "net/op.h"

struct driver;

/* What a driver can do; what it cannot is refused before it is called. */
enum driver_caps {
        DRIVER_PAUSE = 1 << 0,
        DRIVER_SNAPSHOT = 1 << 1,
        DRIVER_IMAGES = 1 << 2, /* pulls and keeps images */
        DRIVER_VOLUMES = 1 << 3,
        DRIVER_NETWORK_POLICY = 1 << 4,
        DRIVER_LIMITS = 1 << 5,    /* enforces cpu and memory; without it: tests only */
        DRIVER_ISOLATION = 1 << 6, /* isolates at all; without it: tests only */
        DRIVER_USAGE = 1 << 7,
        DRIVER_NETWORKS = 1 << 8, /* gives what extensions["hutch.network"] names, or refuses */
};

#define DRIVER_CAPS_N 9

struct driver_cap {
        unsigned bit;
        struct str name;    /* "networkPolicy", as clients see it */
        const char *action; /* "enforce a network policy" */
};

extern const struct driver_cap driver_cap_table[DRIVER_CAPS_N];

const char *driver_name(const struct driver *d);
unsigned driver_caps(const struct driver *d);
static inline bool driver_can(const struct driver *d, unsigned caps)
{
        return (driver_caps(d) & caps) == caps;
}

/* The one check: 0, or ERR_UNSUPPORTED with the first that is missing: "volumes: the driver 'native'
 * cannot mount volumes". */
int driver_caps_check(struct str driver, unsigned caps, unsigned needed, struct err *e);
int driver_require(const struct driver *d, unsigned needed, struct err *e);

/* What a create request needs. */
unsigned driver_caps_for_create(const struct create_request *request);

/* --- operations --- */

struct driver_req {
        struct op op;
        struct err err; /* set if the result is negative */

        struct driver *_driver;
        struct op_wrap _wrap;
        unsigned _call; /* enum driver_call */
        struct list _node;
        struct arena _memory; /* of results */
        void *_impl;          /* the member's, until it has finished */
};

/* Makes it and waits until its agent answers. On failure, ERR_CANCELED too, nothing is left of it in
 * the runtime. The request brings what the record may not hold: values of variables, credentials. */
struct driver_create {
        struct driver_req req;
        const struct sandbox *record;
        const struct create_request *request;

        struct str handle; /* result: JSON object, at most HANDLE_MAX; or null: no notes needed */
};

void driver_create(struct driver *d, struct driver_create *c, const struct sandbox *record,
                   const struct create_request *request);

/* Everything of it is gone afterwards, whatever state it was in. What is not there is destroyed
 * already. */
struct driver_destroy {
        struct driver_req req;
        const struct sandbox *record;
};

void driver_destroy(struct driver *d, struct driver_destroy *x, const struct sandbox *record);

/* Nothing of it runs when pause is done; memory is kept. ERR_CONFLICT if it is so already. */
struct driver_pause {
        struct driver_req req;
        const struct sandbox *record;
};

void driver_pause(struct driver *d, struct driver_pause *p, const struct sandbox *record);
void driver_resume(struct driver *d, struct driver_pause *p, const struct sandbox *record);

struct driver_health {
        int status; /* enum runtime_status */
        const char
                *reason; /* our word for it, a constant: EXITED, OOM_KILLED …; NULL if it lives */
        struct str message; /* for people; may hold the runtime's own text */
};

/* A sandbox that is gone is an answer (RUNTIME_GONE), not an error; a runtime that can't tell is. */
struct driver_inspect {
        struct driver_req req;
        const struct sandbox *record;

        struct driver_health health; /* result */
};

void driver_inspect(struct driver *d, struct driver_inspect *i, const struct sandbox *record);

/* All sandboxes of this installation in the runtime whose record can be read back whole: the record
 * as it was at create, with its handle. */
struct driver_found {
        struct sandbox *record; /* who keeps it sets this to NULL (TAKE_PTR) */
        int status;             /* enum runtime_status, not RUNTIME_GONE */
};

struct driver_scan {
        struct driver_req req;

        struct driver_found
                *found; /* results; freed after `done`, with the records that are left */
        size_t n;
        size_t skipped; /* ours, but incomplete: left alone */
};

void driver_scan(struct driver *d, struct driver_scan *s);

/* One byte stream to the agent, which speaks HTTP (docs/man/hutch-execd.8). Nobody but hutchd can
 * open one, so no token is needed on it. ERR_NOT_FOUND if there is no such sandbox, ERR_UNAVAILABLE
 * if its agent does not take it. */
struct driver_connect {
        struct driver_req req;
        const struct sandbox *record;

        int fd; /* result: the starter's own from then on; -EBADF if it failed */
};

void driver_connect(struct driver *d, struct driver_connect *c, const struct sandbox *record);

struct driver_usage {
        struct driver_req req;
        const struct sandbox *record;

        uint64_t cpu_usec, memory_bytes, processes; /* results */
};

void driver_usage(struct driver *d, struct driver_usage *u, const struct sandbox *record);

/* --- snapshots: of drivers that have DRIVER_SNAPSHOT --- */

/*
 * The file system of a sandbox that runs, kept under an id of its own, in which the driver finds it
 * again: a record with this snapshot_id is made of it. Nothing else of the sandbox is kept: no memory,
 * no volumes, no value of a variable. ERR_CONFLICT if the sandbox does not run; ERR_EXISTS if there is
 * such a snapshot. On failure, ERR_CANCELED too, nothing is left of it.
 *
 * Such a sandbox belongs to the record's tenant, and so does the snapshot: a create for another tenant
 * does not find it.
 */
struct driver_snapshot {
        struct driver_req req;
        const struct sandbox *record;
        struct str snapshot_id;
};

void driver_snapshot(struct driver *d, struct driver_snapshot *x, const struct sandbox *record,
                     struct str snapshot_id);

/* What is not there is removed already. ERR_CONFLICT if a sandbox that was made of it needs it. */
struct driver_snapshot_remove {
        struct driver_req req;
        struct str snapshot_id;
};

void driver_snapshot_remove(struct driver *d, struct driver_snapshot_remove *x,
                            struct str snapshot_id);

/* All of this installation. What a snapshot that was begun and did not end has left is among them, or
 * is gone afterwards. */
struct driver_snapshot_id {
        char text[SANDBOX_ID_MAX + 1];
};

struct driver_snapshots {
        struct driver_req req;

        struct driver_snapshot_id *ids; /* results; freed after `done` */
        size_t n;
};

void driver_snapshots(struct driver *d, struct driver_snapshots *x);

/* What this host has and lacks, in words. The first says whether the runtime answers. */
struct driver_fact {
        const char *name; /* "cgroup", "engine version" */
        bool ok;
        struct str text; /* what is so; if it is not ok, what to do */
};

struct driver_probe {
        struct driver_req req;

        struct driver_fact *facts; /* results */
        size_t n;
};

void driver_probe(struct driver *d, struct driver_probe *p);

/* --- news --- */

/* Told from the loop when a sandbox that create had made ends without destroy having been asked
 * for: within a second of its end. It may be told twice, and of a sandbox that is gone meanwhile. How
 * is RUNTIME_ENDED or RUNTIME_DEAD; RUNTIME_GONE, without a reason, if somebody has removed it. */
struct driver_watcher {
        void (*died)(struct driver_watcher *w, struct driver *d, struct str id,
                     const struct driver_health *how);
};

/* NULL ends it. After a restart a driver watches what scan, or inspect, has found. */
void driver_watch(struct driver *d, struct driver_watcher *w);

/* --- life cycle --- */

struct driver_close {
        struct op op;

        struct driver *_driver;
        struct op_wrap _wrap;
};

/* Sandboxes live on. Whatever is started from now on fails with ERR_UNAVAILABLE; what is under way
 * is canceled and comes to its end; then the operation is done, with 0, and the driver is freed. */
void driver_close(struct driver *d, struct driver_close *c);

/* --- members --- */

struct engine_config; /* driver/engine/engine.h */

/* What a driver is told when it is opened. */
struct driver_setup {
        struct net_loop *loop;
        const struct log_ctx *log;
        struct str installation; /* id of this hutchd: in every name that the runtime sees */
        const char *folder;      /* the driver's own, below the data folder; exists, 0700 */
        const char *agent;       /* path of hutch-execd */

        /* For the driver "native": */
        int warden; /* our end of the pair (plan/protocol.h), which is taken; -EBADF: none */
        const char *network; /* of sandboxes that name none; NULL: private */
        /* By enum engine_kind, for docker and podman; NULL: nothing was said about them. */
        const struct engine_config *engines;
};

/* Keeps sandboxes in memory and runs nothing: for tests, and for developing clients. Its sandboxes
 * are gone when it closes, as after a reboot; driver/driver_fake.h has a runtime that outlives it. */
int driver_fake_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
        must_check;

/* Sandboxes without an engine, made by hutch-warden (docs/internals/native.md). */
int driver_native_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
        must_check;

#endif
