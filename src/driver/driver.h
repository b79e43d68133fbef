/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_DRIVER_H
#define HUTCH_DRIVER_DRIVER_H

/*
 * A driver creates sandboxes, in whatever way; this interface is all that the layers above know of it. How to write one
 * is in docs/internals/driver-contract.md and driver/driver_impl.h. One contract suite
 * (tests/contract/driver_contract.h) runs against all drivers.
 *
 * A sandbox is named by its record: the driver finds what it needs in record->id and in record->handle (which create
 * returned and the record keeps). Everything requested in the record is provided or refused (ERR_UNSUPPORTED, with a
 * message that says what): nothing is ignored.
 *
 * Operations follow net/op.h. The record, and what else is passed in, stays unchanged until `done`. Results are views
 * that live until `done` returns. The result is 0, or a domain code with its message in req.err:
 *
 *         ERR_INVALID      no driver can fulfil the request (no such image name)
 *         ERR_NOT_FOUND    there is no such sandbox (or image) in the runtime
 *         ERR_CONFLICT     not in the right state: pause while paused, create of a sandbox that exists
 *         ERR_UNSUPPORTED  this driver cannot do it
 *         ERR_EXHAUSTED    the host is full
 *         ERR_UNAVAILABLE  the runtime does not respond; try again
 *         ERR_TIMEOUT, ERR_CANCELED, ERR_INTERNAL
 *
 * Calls for different sandboxes run concurrently. Calls for one sandbox do not overlap, except for connect, inspect
 * and usage: the service sees to that.
 *
 * The runtime keeps enough to find everything again after a crash: create writes the complete owner tuple and the
 * record beside the sandbox before the sandbox can run, and scan returns only what it can read back completely.
 * The id distinguishes installations: a driver never sees or touches what another hutchd has created.
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
        void *_impl;          /* the driver's, until it has finished */
};

/*
 * Starts a request. The caller gives its op a `done` by op_init and fills it in by the function of its kind:
 *
 *         op_init(&c->req.op, create_done);
 *         driver_start(d, driver_create_req(c, record, request));
 */
void driver_start(struct driver *d, struct driver_req *req);

/* Creates a sandbox and waits until its agent responds. On failure, ERR_CANCELED included, nothing is left of it in
 * the runtime. The request has what the record must not hold: values of variables, credentials. */
struct driver_create {
        struct driver_req req;
        const struct sandbox *record;
        const struct create_request *request;

        struct str
                handle; /* result: a JSON object of at most HANDLE_MAX bytes, or the null view: none needed */
};

struct driver_req *driver_create_req(struct driver_create *c, const struct sandbox *record,
                                     const struct create_request *request);

/* Removes everything of it, whatever its state. Succeeds if there is none. */
struct driver_destroy {
        struct driver_req req;
        const struct sandbox *record;
};

struct driver_req *driver_destroy_req(struct driver_destroy *x, const struct sandbox *record);

/* Nothing of it runs when pause is done; memory is kept. ERR_CONFLICT if it is paused (running) already. */
struct driver_pause {
        struct driver_req req;
        const struct sandbox *record;
};

struct driver_req *driver_pause_req(struct driver_pause *p, const struct sandbox *record);
struct driver_req *driver_resume_req(struct driver_pause *p, const struct sandbox *record);

struct driver_health {
        int status; /* enum runtime_status */
        const char
                *reason; /* our word for it, a constant: EXITED, OOM_KILLED …; NULL if it lives */
        struct str message; /* for people; may hold text of the runtime */
};

/* A sandbox that is gone is a result (RUNTIME_GONE), not an error; a runtime that cannot tell is one. */
struct driver_inspect {
        struct driver_req req;
        const struct sandbox *record;

        struct driver_health health; /* result */
};

struct driver_req *driver_inspect_req(struct driver_inspect *i, const struct sandbox *record);

/* All sandboxes of this installation in the runtime whose record can be read back: the record as it was at create,
 * with its handle. */
struct driver_found {
        struct sandbox *record; /* a caller that keeps it sets this to NULL (TAKE_PTR) */
        int status;             /* enum runtime_status, not RUNTIME_GONE */
};

struct driver_scan {
        struct driver_req req;

        struct driver_found *found; /* results; freed after `done`, with the remaining records */
        size_t n;
        size_t skipped; /* ours, but incomplete; left alone */
};

struct driver_req *driver_scan_req(struct driver_scan *s);

/* A byte stream to the agent, which speaks HTTP (docs/man/hutch-execd.8). Only hutchd can open one, so it needs no
 * token. ERR_NOT_FOUND if there is no such sandbox, ERR_UNAVAILABLE if its agent does not accept it. */
struct driver_connect {
        struct driver_req req;
        const struct sandbox *record;

        int fd; /* result: owned by the starter; -EBADF if it failed */
};

struct driver_req *driver_connect_req(struct driver_connect *c, const struct sandbox *record);

struct driver_usage {
        struct driver_req req;
        const struct sandbox *record;

        uint64_t cpu_usec, memory_bytes, processes; /* results */
};

struct driver_req *driver_usage_req(struct driver_usage *u, const struct sandbox *record);

/* --- snapshots: of drivers that have DRIVER_SNAPSHOT --- */

/*
 * Keeps the file system of a running sandbox under an id of its own: a record with this snapshot_id is created from it.
 * Nothing else of the sandbox is kept: no memory, no volumes, no value of a variable. ERR_CONFLICT if the sandbox does
 * not run; ERR_EXISTS if there is such a snapshot. On failure, ERR_CANCELED included, nothing is left of it.
 *
 * The snapshot belongs to the record's tenant: a create for another tenant does not find it.
 */
struct driver_snapshot {
        struct driver_req req;
        const struct sandbox *record;
        struct str snapshot_id;
};

struct driver_req *driver_snapshot_req(struct driver_snapshot *x, const struct sandbox *record,
                                       struct str snapshot_id);

/* Succeeds if there is none. ERR_CONFLICT if a sandbox that was created from it needs it. */
struct driver_snapshot_remove {
        struct driver_req req;
        struct str snapshot_id;
};

struct driver_req *driver_snapshot_remove_req(struct driver_snapshot_remove *x,
                                              struct str snapshot_id);

/* All of this installation. What an unfinished snapshot has left is among them, or is removed. */
struct driver_snapshot_id {
        char text[SANDBOX_ID_MAX + 1];
};

struct driver_snapshots {
        struct driver_req req;

        struct driver_snapshot_id *ids; /* results; freed after `done` */
        size_t n;
};

struct driver_req *driver_snapshots_req(struct driver_snapshots *x);

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

struct driver_req *driver_probe_req(struct driver_probe *p);

/* --- events --- */

/* Called from the loop, within a second, when a sandbox ends without a destroy. It may be called twice, and for a
 * sandbox that is gone meanwhile. The status is RUNTIME_ENDED or RUNTIME_DEAD; RUNTIME_GONE, without a reason, if it
 * was removed behind the driver's back. */
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

/* Sandboxes keep running. Calls from now on fail with ERR_UNAVAILABLE; calls under way are canceled and finish; then
 * the operation is done, with 0, and the driver is freed. */
void driver_close(struct driver *d, struct driver_close *c);

/* --- drivers --- */

struct engine_config; /* driver/engine/engine.h */

/* What a driver is opened with. */
struct driver_setup {
        struct net_loop *loop;
        const struct log_ctx *log;
        struct str installation; /* id of this hutchd: in every name that the runtime sees */
        const char *dir;         /* private, below the data directory; exists, 0700 */
        const char *agent;       /* path of hutch-execd */

        /* For the driver "native": */
        int warden; /* our end of the pair (plan/protocol.h), which is taken; -EBADF: none */
        const char *network; /* of sandboxes that name none; NULL: private */
        /* By enum engine_kind, for docker and podman; NULL: not configured. */
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
