/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SERVICE_IMPL_H
#define HUTCH_SERVICE_SERVICE_IMPL_H

/*
 * What the files of the service share.
 *
 *         request  struct service_req: somebody outside who waits
 *         job      one command on its way; requests wait for its end (none, one or several)
 *         place    one sandbox: whose turn it is, when something is due, what it costs
 *
 * A place exists as long as its record or a job does. Records belong to the registry and are looked
 * up by id each time they are needed: between two turns of the loop they may have been replaced.
 *
 * Turns and the pen. A place gives its turn to one job at a time; who has it may ask the driver.
 * Apart from that a place has one pen: who writes the record holds it from the decision to the end of
 * the write. A job that only writes (renew, patch) needs the pen and no turn, so it does not wait for
 * a driver that takes minutes.
 */

#include "base/map.h"
#include "service/decide.h"
#include "service/events.h"
#include "service/replay.h"
#include "service/schedule.h"
#include "service/service.h"
#include "service/tenants.h"
#include "service/request_copy.h"

#define SERVICE_DRIVERS_MAX 8
#define SANDBOX_OPS_MAX     64 /* commands on one sandbox; more are told to come back */
#define BACKGROUND_MAX      32 /* driver calls, and looks, that nobody waits for */
#define RETRY_FIRST         USEC_PER_SEC
#define RETRY_LAST          (60 * USEC_PER_SEC)
#define QUOTA_RETRY_AFTER   (10 * USEC_PER_SEC)

struct driver_slot {
        struct driver *driver;
        struct driver_watcher watcher;
        struct service *service;
};

/* Snapshots that are on their way: snapshot.c. */
struct snapshot_ops {
        struct list ops;     /* struct work: all */
        struct list waiting; /* of these, those that are to be taken when there are fewer */
        size_t taking;
        struct list reconciles; /* struct snapshot_reconcile: drivers that were asked for theirs */
        uint64_t changes; /* of records, ever: what changed meanwhile makes such an answer old */
};

enum service_phase { PHASE_NEW, PHASE_STARTING, PHASE_READY, PHASE_STOPPING, PHASE_STOPPED };

struct service {
        struct service_config config;
        char *node, *boot_id; /* what the views of config look at */
        struct secret *secret;
        enum service_phase phase;

        struct driver_slot drivers[SERVICE_DRIVERS_MAX];
        size_t n_drivers;

        struct map ctls;
        struct tenants tenants;
        struct schedule schedule;
        struct events events;
        struct service_stats stats;

        struct list ops;       /* all that are under way */
        struct list ingresses; /* requests into sandboxes that are under way */
        struct list awaits;    /* who waits for a sandbox to come to rest */
        struct list ensures;   /* who wants the one sandbox of an owner */
        size_t locates;        /* who looks for a sandbox of another node */
        bool sweeping;         /* records of nodes that are lost */
        struct registry_sweep sweep;
        char sweep_node[NODE_ID_MAX + 1];
        size_t background_calls; /* jobs that nobody waits for and that have asked a driver, and */
        struct list gate;        /* those that are to, when there are fewer */

        struct probe_round *probing; /* if one is under way */
        struct snapshot_ops snapshots;

        struct reconcile_run *reconcile; /* the one over all records, if one is under way */
        struct deadline reconcile_due;

        void (*stopped)(void *data);
        void *stopped_data;
        struct net_task stopped_task;
        bool schedule_closed;
};

struct sandbox_ctl {
        struct map_node by_id;
        struct service *service;
        char id[SANDBOX_ID_MAX + 1];

        size_t n_ops;
        size_t n_preempting;        /* of these, that lead to its end: nothing need be due */
        struct sandbox_op *current; /* whose turn it is */
        struct list waiting;        /* for the turn, in order */
        struct sandbox_op *writer;  /* who has the pen */
        struct list writers;        /* who waits for it */

        struct deadline deadline;
        usec_t retry_at;   /* 0: nothing to be tried again */
        unsigned failures; /* in a row */
        usec_t renewed_at; /* the last access that counted; 0: none */
        bool early;        /* its tombstone is to go before its time */

        struct charge charge;
        struct tombstone tombstone;
        struct history history;
};

struct sandbox_op;
typedef void sandbox_op_fn(struct sandbox_op *j);

/* What only a create has. */
struct creation {
        struct request_copy copy;
        struct sandbox *record;                /* until it is registered */
        bool registering;                      /* there is no record yet, but there will be */
        char fingerprint[FINGERPRINT_LEN + 1]; /* "" without a key */
        char other_id[64];
        struct sandbox_op *op;
        bool answered; /* who waited was told that it is Pending */
        struct deadline answer_by;
        usec_t began;
};

struct sandbox_op {
        struct service *service;
        struct sandbox_ctl *ctl;
        struct list all, lock_node, record_node, gate; /* nodes */
        struct list waiters;                           /* struct service_req */
        struct command_args args;
        bool background; /* nobody asked: the driver is asked when others leave it time */
        bool begun;

        /* of wanted, where that has to live longer than who wanted it */
        struct sandbox *found;
        const struct sandbox *found_list[1];
        int was; /* LOOK: enum state before it */
        char health_message[MESSAGE_MAX];
        struct arena memory; /* of the patch: its caller may go before it is written */
        struct json_map patch;

        struct decision decision;
        struct call_result call_result;
        bool has_call_result;
        struct err call_err;
        char call_message[MESSAGE_MAX];
        char *handle; /* the handle that create gave */

        /* what the waiters will be told */
        int result;
        struct err err;
        struct err first_err; /* the first error of the driver */
        bool has_first_err;
        enum err_code cancel_code; /* why the driver's call was canceled */
        const char *cancel_why;

        struct sandbox *call_record; /* the record that the driver looks at */
        struct op *call_op;
        union {
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
                struct driver_inspect inspect;
                struct agent_ping ping;
                struct driver_snapshot snapshot;
        } call;
        bool counted; /* in service->asking */

        sandbox_op_fn *with_record_lock;
        unsigned rewrites;
        struct sandbox *last; /* what was unregistered, for the event */
        union {
                struct registry_req req;
                struct registry_register add;
                struct registry_update update;
                struct registry_unregister remove;
                struct registry_reconcile reconcile;
                struct registry_get get;
        } write;

        char snapshot_id[SANDBOX_ID_MAX + 1]; /* SNAPSHOT */
        struct creation *creation;
        sandbox_op_fn *ended; /* told at the end, from inside it; may be NULL */
        void *ended_data;
};

/* --- service.c --- */

struct timestamp service__now(const struct service *s);
struct driver *service__driver(const struct service *s, struct str name);
int service__not_found(struct err *e);

/* Whether commands are taken now; else ERR_UNAVAILABLE. */
int service__ready(const struct service *s, struct err *e) must_check;

/* Something came to its end: perhaps the last that a stop waits for. */
void service__settle(struct service *s);

/* --- req.c: who waits --- */

void req__begin(struct service *s, struct service_req *r, op_cancel_fn *cancel);

/* With the record as it is now in the registry; place may be NULL. err may be the request's own. */
void req__finish(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                 const struct err *err);

/* --- place.c --- */

struct sandbox_ctl *sandbox_ctl__get(const struct service *s, struct str id);
struct sandbox_ctl *sandbox_ctl__obtain(struct service *s,
                                        struct str id); /* made if there is none */
const struct sandbox *sandbox_ctl__record(const struct sandbox_ctl *p);

/* The record has changed, come or gone: charge, tombstone, deadline follow. Frees the place if
 * nothing is left of it. */
void sandbox_ctl__settle(struct sandbox_ctl *p);

/* Something failed half-way: COMMAND_RECONCILE (or what is due) after a while, longer each time. */
void sandbox_ctl__retry(struct sandbox_ctl *p);

/* All that are left are those of records. */
void sandbox_ctl__free_all(struct service *s);

/* --- turns.c --- */

void op_lock__acquire(struct sandbox_op *j); /* leads to sandbox_op__run */
void op_lock__release(struct sandbox_ctl *p);
void record_lock__acquire(struct sandbox_op *j, sandbox_op_fn *go);
void record_lock__release(struct sandbox_ctl *p);

/* --- job.c --- */

struct sandbox_op *sandbox_op__new(struct service *s, struct sandbox_ctl *p, enum command c);

/* Takes its turn, or the pen. The job may be gone when this returns. */
void sandbox_op__start(struct sandbox_op *j);

/* It is its turn. */
void sandbox_op__run(struct sandbox_op *j);

/* Waits for its end. */
void sandbox_op__wait(struct sandbox_op *j, struct service_req *r);
void sandbox_op__cancel_wait(struct op *op);

/* Tells those that wait; the job goes on. */
void sandbox_op__notify(struct sandbox_op *j, int result, const struct err *err);

/* Not begun: goes without having done anything. */
void sandbox_op__drop(struct sandbox_op *j, int result, const struct err *err);

/* The driver's answer is there, in j->answer. */
void sandbox_op__driver_done(struct sandbox_op *j);

/* Ends what the driver is doing for it, if that can be ended. */
void sandbox_op__cancel_call(struct sandbox_op *j, enum err_code code, const char *why);

/* --- ask.c --- */

void driver_call__start(struct sandbox_op *j);
void driver_call__expedite(struct sandbox_op *j); /* somebody waits for it now */
void driver_call__end(struct sandbox_op *j);      /* it will ask no more */

/* --- look.c: the record against the runtime --- */

/* The news of a death, or a place whose retry is due. health may be NULL. */
void reconcile__sandbox(struct sandbox_ctl *p, const struct driver_health *health);

void reconcile__due(struct deadline *d);
void reconcile__stop(struct service *s);

/* --- probe.c --- */

void probe__stop(struct service *s);

/* --- snapshot.c --- */

/* Records against what one driver has: what a crash has left is finished or undone, what is gone is
 * marked so, what nobody knows is removed. */
void snapshot__reconcile(struct service *s, struct driver *d);
void snapshot__stop_reconciles(struct service *s);

/* Nothing of them is under way. */
bool snapshot__is_quiet(const struct service *s);

/* What waits goes; what is under way comes to its end. */
void snapshot__stop(struct service *s);

/* --- enter.c --- */

void ingress__stop(struct service *s);

/* --- await.c, ensure.c --- */

void await__stop(struct service *s);
void ensure__stop(struct service *s);

/* What is to be done for an owner who has this sandbox; NULL: none. */
enum ensure_step {
        ENSURE_CREATE,
        ENSURE_WAIT,   /* it is between two states */
        ENSURE_PING,   /* it should be in order: is it? */
        ENSURE_RESUME, /* it is paused */
        ENSURE_DELETE, /* it is going, or useless: see its end, then make another */
};

enum ensure_step ensure__step(const struct sandbox *record);

/* The agent did not answer several times, and this is what the runtime says. A negative result: it says
 * nothing. The step is ENSURE_WAIT if nothing may be given up. */
enum ensure_step ensure__judge(int result, const struct driver_health *health);

/* --- elsewhere.c --- */

/* The record of a node that was lost has become one of ours. */
void remote_node__lost(struct service *s, struct str id);

bool remote_node__has(const struct service *s, const struct sandbox *record);
void remote_node__copy(struct service_node *to, const struct nodes_find *from);
int remote_node__silent(const struct nodes_find *f, struct err *e);

void remote_node__stop(struct service *s);

/* --- git.c --- */

/* What sets up git in a sandbox: one command, for service_exec; `ret` is zeroed before. The socket is
 * what git asks for a credential (service_set_git_credential); "": nothing is changed about that. */
#define GIT_VARIABLES 4
void git__command(const struct git_identity *git, const char *socket, struct agent_exec *ret,
                  struct json_pair env[static GIT_VARIABLES]);

/* Where tokens are for. Any host that git is talked into asking would get one otherwise. */
#define GIT_HOST "github.com"
#define GIT_USER "x-access-token" /* whom the host takes a token for, whoever owns it */

/* How it ended: 0, or a domain code with its story. */
int git__result(const struct service_exec *x, int result, struct err *e) must_check;

#endif
