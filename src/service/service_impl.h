/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SERVICE_IMPL_H
#define HUTCH_SERVICE_SERVICE_IMPL_H

/*
 * What the files of the service share.
 *
 *         service_req   a request from outside that waits for a result
 *         sandbox_op    one command in progress; any number of requests wait for its end (sandbox_op.c)
 *         sandbox_ctl   the controller of one sandbox: locks, deadline, charge (sandbox_ctl.c)
 *
 * A controller exists as long as its record or an operation on it does. Records belong to the registry and are looked
 * up by id each time they are needed: between two iterations of the loop they may have been replaced.
 */

#include "base/sha256.h"
#include "base/id.h"
#include "base/map.h"
#include "service/decide.h"
#include "service/events.h"
#include "service/schedule.h"
#include "service/service.h"
#include "service/tenants.h"

#define SERVICE_DRIVERS_MAX 8
#define SANDBOX_OPS_MAX     64 /* commands on one sandbox; more are refused with ERR_UNAVAILABLE */
#define BACKGROUND_MAX      32 /* operations in progress that no request waits for */
#define RETRY_FIRST         USEC_PER_SEC
#define RETRY_LAST          (60 * USEC_PER_SEC)
#define QUOTA_RETRY_AFTER   (10 * USEC_PER_SEC)

struct driver_slot {
        struct driver *driver;
        struct driver_watcher watcher;
        struct service *service;
};

/* Snapshot operations in progress: snapshot.c. */
struct snapshot_ops {
        struct list ops;        /* struct snapshot_op: all */
        struct list waiting;    /* those of them that wait for a slot */
        size_t active;          /* those that have one */
        struct list reconciles; /* struct snapshot_reconcile: drivers that list theirs */
        uint64_t changes; /* of records, ever: a list that is older than the last change is stale */
};

enum service_phase { PHASE_NEW, PHASE_STARTING, PHASE_READY, PHASE_STOPPING, PHASE_STOPPED };

struct service {
        struct service_config config;
        char *node, *boot_id; /* storage for views in config */
        struct secret *secret;
        enum service_phase phase;

        struct driver_slot drivers[SERVICE_DRIVERS_MAX];
        size_t n_drivers;

        struct map ctls; /* struct sandbox_ctl */
        struct tenants tenants;
        struct schedule schedule;
        struct events events;
        struct service_stats stats;

        struct list ops;         /* struct sandbox_op: all */
        size_t background_calls; /* background operations that have called a driver */
        struct list throttled;   /* background operations that wait until there are fewer */
        struct list ingresses;   /* struct ingress */
        struct list awaits;      /* struct await_op */
        struct list ensures;     /* struct ensure_op */
        size_t locates;          /* service_locate in progress */
        bool sweeping;           /* records of lost nodes */
        struct registry_sweep sweep;
        char sweep_node[NODE_ID_MAX + 1];

        struct probe_round *probing; /* NULL: none in progress */
        struct snapshot_ops snapshots;

        struct reconcile_run *reconcile; /* NULL: none in progress */
        struct deadline reconcile_due;

        void (*stopped)(void *data);
        void *stopped_data;
        struct net_task stopped_task;
        bool schedule_closed;
};

struct sandbox_op;
typedef void sandbox_op_fn(struct sandbox_op *o);

struct sandbox_ctl {
        struct map_node by_id;
        struct service *service;
        char id[SANDBOX_ID_MAX + 1];

        size_t n_ops;
        size_t n_preempting; /* deletes and expiries among them: the deadline does not matter */
        struct sandbox_op *current; /* holds the operation lock */
        struct list waiting;        /* for the operation lock, in order */
        struct sandbox_op *writer;  /* holds the record lock */
        struct list writers;        /* wait for the record lock */

        struct deadline deadline;
        usec_t retry_at;   /* 0: nothing to retry */
        unsigned failures; /* in a row */
        usec_t renewed_at; /* the last access that renewed; 0: none */
        bool early;        /* the tombstone is removed before its time */

        struct charge charge;
        struct tombstone tombstone;
        struct history history;
};

/* A copy of a create request, which outlives it: the client may be answered, or gone, long before the driver is
 * done. It holds secrets and is wiped. */
struct request_copy {
        struct arena arena;
        struct create_request request; /* in the arena */
};

/* ERR_TOO_LARGE; the copy is empty then. */
int request_copy_init(struct request_copy *c, const struct create_request *from, struct err *e)
        must_check;

/* Wipes it. Fine for an empty one. */
void request_copy_done(struct request_copy *c);

#define FINGERPRINT_LEN (2 * HMAC_SHA256_SIZE)

/* The part of an operation that only a create has. */
struct creation {
        struct request_copy copy;
        struct sandbox *record;                /* until it is registered */
        char fingerprint[FINGERPRINT_LEN + 1]; /* "" without an idempotency key */
        char other_id[64];
        struct sandbox_op *op;
        bool answered; /* waiters got Pending */
        struct deadline answer_by;
        usec_t began;
};

/* Without its deadline. Fine for NULL. */
void creation__freep(struct creation **x);

struct sandbox_op {
        struct service *service;
        struct sandbox_ctl *ctl;
        struct list all, lock_node, record_node, throttled;
        struct list waiters; /* struct service_req */
        struct command_args args;
        bool background; /* no request waits for it: driver calls are throttled */
        bool begun;
        bool registers; /* CREATE, RECONCILE: there is no record yet, but there will be */

        /* Storage for what args points to. */
        struct sandbox *found; /* RECONCILE: as the driver's scan returned it */
        int was;               /* RECONCILE: enum state before it */
        char health_message[MESSAGE_MAX];
        struct arena memory; /* of the patch */
        struct json_map patch;

        struct decision decision;
        struct call_result call_result;
        bool has_call_result;
        struct err call_err;
        char call_message[MESSAGE_MAX];
        char *handle; /* that driver_create returned */

        int result; /* for the waiters */
        struct err err;
        struct err first_err; /* of the driver */
        bool has_first_err;
        enum err_code cancel_code; /* why the driver call was canceled */
        const char *cancel_why;

        struct sandbox *call_record; /* the driver's copy of the record */
        struct op *call_op;
        union {
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
                struct driver_inspect inspect;
                struct agent_ping ping;
                struct driver_snapshot snapshot;
        } call;
        bool counted; /* in service->background_calls */

        unsigned rewrites;
        struct sandbox *last; /* the record that was unregistered, for the event */
        union {
                struct registry_req req;
                struct registry_register add;
                struct registry_update update;
                struct registry_unregister remove;
                struct registry_get get;
        } write;

        char snapshot_id[SANDBOX_ID_MAX + 1]; /* SNAPSHOT */
        struct creation *creation;            /* CREATE */
        sandbox_op_fn *ended;                 /* called at the end, from inside it; may be NULL */
        void *ended_data;
};

/* --- service.c --- */

struct timestamp service__now(const struct service *s);
struct driver *service__driver(const struct service *s, struct str name);
int service__not_found(struct err *e);

/* ERR_UNAVAILABLE unless commands are accepted now. */
int service__ready(const struct service *s, struct err *e) must_check;

/* Something has ended: perhaps the last thing that service_stop waits for. */
void service__settle(struct service *s);

/* Requests. The record that `done` sees is a copy: the registry's may be another one, or gone, by then. req__prepare
 * takes it from the registry and leaves it to the caller to finish the op; ctl may be NULL, err the request's own. */
void req__begin(struct service *s, struct service_req *r, op_cancel_fn *cancel);
void req__prepare(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                  const struct err *err);
void req__finish(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                 const struct err *err);

/* --- sandbox_ctl.c --- */

struct sandbox_ctl *sandbox_ctl__get(const struct service *s, struct str id);
struct sandbox_ctl *sandbox_ctl__obtain(struct service *s,
                                        struct str id); /* creates it if needed */
const struct sandbox *sandbox_ctl__record(const struct sandbox_ctl *ctl);

/* The record was added, changed or removed: updates charge, tombstone and deadline. Frees the controller if nothing
 * is left of it. */
void sandbox_ctl__settle(struct sandbox_ctl *ctl);

/* Only controllers of records are left. */
void sandbox_ctl__free_all(struct service *s);

/* --- sandbox_op.c --- */

struct sandbox_op *sandbox_op__new(struct service *s, struct sandbox_ctl *ctl, enum command c);

/* Acquires the lock that the command needs. The operation may be gone when this returns. */
void sandbox_op__start(struct sandbox_op *o);

/* Without the record lock (false) the operation waits for it: sandbox_op__decide is called when it has been passed on,
 * perhaps before record_lock__release returns. */
bool record_lock__acquire(struct sandbox_op *o) must_check;
void record_lock__release(struct sandbox_ctl *ctl);

/* With the record lock: registers, or decides, writes, and goes on. The operation may be gone when this returns. */
void sandbox_op__decide(struct sandbox_op *o);

/* Ends, with o->result and o->err; releases the locks that it has. */
void sandbox_op__finish(struct sandbox_op *o);

void sandbox_op__wait(struct sandbox_op *o, struct service_req *r);
void sandbox_op__cancel_wait(struct op *op);

/* Finishes the requests that wait; the operation goes on. */
void sandbox_op__notify(struct sandbox_op *o, int result, const struct err *err);

/* --- adopt.c: sandboxes without a record --- */

bool adopt__is(const struct sandbox_op *o);
void adopt__driver_done(struct sandbox_op *o);
void adopt__not_registered(struct sandbox_op *o, int result); /* with the record lock */

/* --- driver_call.c --- */

void driver_call__start(struct sandbox_op *o);
void driver_call__expedite(struct sandbox_op *o); /* a request waits for it now */
void driver_call__end(struct sandbox_op *o);      /* it makes no more calls */

/* --- reconcile.c --- */

/* Compares one record with the runtime: after a death was reported, or when a retry is due. health may be NULL. */
void reconcile__sandbox(struct sandbox_ctl *ctl, const struct driver_health *health);

void reconcile__due(struct deadline *d);
void reconcile__stop(struct service *s);

/* --- probe.c --- */

void probe__stop(struct service *s);

/* --- snapshot.c, snapshot_reconcile.c --- */

/* Compares the records with the snapshots of one driver. */
void snapshot__reconcile(struct service *s, struct driver *d);
void snapshot__stop_reconciles(struct service *s);

/* Drops what waits; what is in progress comes to its end. */
void snapshot__stop(struct service *s);

/* --- ingress.c, await.c --- */

void ingress__stop(struct service *s);
void await__stop(struct service *s);

/* --- ensure.c --- */

void ensure__stop(struct service *s);

/* What has to be done for an owner with this sandbox; NULL: without one. */
enum ensure_step {
        ENSURE_CREATE,
        ENSURE_WAIT,   /* it is between two states */
        ENSURE_PING,   /* it should work: does it? */
        ENSURE_RESUME, /* it is paused */
        ENSURE_DELETE, /* it is ending, or useless: wait for its end, then create another */
};

enum ensure_step ensure__step(const struct sandbox *record);

/* After several pings without an answer: what to do about what the runtime says. A negative result means that the
 * runtime can't tell. ENSURE_WAIT: nothing may be given up. */
enum ensure_step ensure__judge(int result, const struct driver_health *health);

/* --- remote_node.c --- */

/* The record of a lost node's sandbox has become one of this node. */
void remote_node__lost(struct service *s, struct str id);

bool remote_node__has(const struct service *s, const struct sandbox *record);
void remote_node__copy(struct service_node *to, const struct nodes_find *from);
int remote_node__silent(const struct nodes_find *f, struct err *e);

#endif
