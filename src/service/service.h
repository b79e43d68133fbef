/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SERVICE_H
#define HUTCH_SERVICE_SERVICE_H

/*
 * The commands: everything that can be done to a sandbox, independent of the transport. Each rule is written once,
 * here.
 *
 * Every command takes the same path:
 *
 *         find the record ─ may the caller see it? ─ operation lock ─ decide() ─ write the intent
 *              ─ call the driver ─ decide() ─ write the outcome ─ done
 *
 * decide (service/decide.h) is pure: from time, record and command it computes what to write, which driver call to
 * make, or why to refuse.
 *
 * Locks. Commands on one sandbox run one after the other, so create and destroy of one id never overlap. Queries and
 * connections take no lock. Delete and expiry preempt: they go first, and cancel the driver call in progress.
 *
 * Intent first. The record says Pending, Pausing, Resuming or Stopping before the driver is called. After a crash
 * service_start finishes or undoes what was in progress.
 *
 * Access. A caller sees the sandboxes of its tenant; with all_tenants it sees all. A sandbox that the caller may not
 * see does not exist: ERR_NOT_FOUND, by the same code path, with the same message.
 *
 * Operations follow net/op.h. Arguments stay valid until `done`; results are views that are valid until `done`
 * returns. The result is 0 or a domain code with a message in req.err. A caller that goes away cancels its operation:
 * `done` comes early, and the command goes on.
 */

#include "driver/agent.h"
#include "driver/driver.h"
#include "registry/keyring.h"
#include "registry/nodes.h"
#include "registry/registry.h"
#include "registry/snapshots.h"

struct service;

/* --- the caller --- */

struct caller {
        struct str tenant;
        struct str principal;
        int role;         /* enum role */
        bool all_tenants; /* sees everything */
        struct str key;   /* id of the API key, for the audit log; null view: none was needed */
};

/* --- set-up --- */

/* 0: no limit. */
struct quota {
        uint64_t sandboxes;
        uint64_t cpu_milli;
        uint64_t memory_bytes;
        uint64_t pids;
        uint64_t snapshots;
};

struct tenant_quota {
        struct str tenant;
        struct quota quota;
};

struct service_limits {
        struct quota each;                  /* of a tenant without an entry */
        const struct tenant_quota *tenants; /* copied */
        size_t n_tenants;
        uint64_t sandboxes_max; /* of all tenants together */
};

struct service_config {
        struct net_loop *loop;
        const struct clock *clock;
        struct ids *ids;
        const struct log_ctx *log;
        struct registry *registry;
        struct nodes *nodes; /* the nodes that share the store; NULL: this is the only one */
        struct agents *agents;
        struct str node;
        struct str boot_id; /* /proc/sys/kernel/random/boot_id */
        struct str secret;  /* of the installation: ids of an Idempotency-Key are derived from it */
        struct create_policy policy;
        usec_t create_wait;         /* how long a create may take before the answer is Pending */
        usec_t tombstone_for;       /* how long records of Terminated and Failed are kept */
        usec_t reconcile_every;     /* 0: only at the start */
        unsigned tombstones_max;    /* per tenant; beyond it the oldest are removed early */
        unsigned snapshots_max;     /* of all tenants together */
        unsigned snapshots_at_once; /* in progress at the drivers; others wait */
};

extern const struct service_config service_defaults; /* times and numbers only */

struct service *service_new(const struct service_config *config) must_check;

/* Enables a driver; the first is the default. The driver must outlive the service. */
void service_add_driver(struct service *s, struct driver *d);

/* May be called at any time. Existing sandboxes stay; new ones are counted against the new limits. */
int service_set_limits(struct service *s, const struct service_limits *limits, struct err *e)
        must_check;

/* Runs once, before the first command. Asks all drivers for their sandboxes, adopts them, finishes or undoes what was
 * in progress, marks what is gone, and arms the timers. A driver that fails does not prevent the start: its sandboxes
 * stay as they are until the next reconcile. */
struct service_start {
        struct op op;
        struct err err;

        size_t adopted, added, gone, undone, finished; /* results */
};

void service_start(struct service *s, struct service_start *st);

/* Commands in progress end or are canceled; timers stop; sandboxes keep running. `stopped` is called from the loop;
 * after that only service_free may be called. */
void service_stop(struct service *s, void (*stopped)(void *data), void *data);
void service_free(struct service *s);

/* --- queries --- */

/* NULL if there is none that the caller may see. Valid until the caller returns to the loop. */
const struct sandbox *service_find(const struct service *s, const struct caller *caller,
                                   struct str id);

/* q->tenant is replaced by the caller's tenant unless it sees all. */
void service_list(const struct service *s, const struct caller *caller,
                  const struct registry_query *q, struct registry_page *ret);

/* Includes the sandboxes of other nodes: see registry_list_all. l->query.tenant is set as above. */
void service_list_all(struct service *s, const struct caller *caller, struct registry_list_all *l);

/* --- commands --- */

/* Another node, as service_locate and service_ensure return it. */
struct service_node {
        char id[NODE_ID_MAX + 1]; /* "": none */
        char address[NODE_ADDRESS_MAX + 1];
        char process[NODE_PROCESS_LEN + 1];
};

struct service_req {
        struct op op;
        struct err err;               /* set if the result is negative */
        usec_t retry_after;           /* of ERR_EXHAUSTED and ERR_UNAVAILABLE; 0: unknown */
        const struct sandbox *record; /* result; NULL if it is gone */

        struct service *_service;
        struct op_wrap _wrap;
        struct list _node;     /* among those that wait for the same operation */
        struct sandbox *_kept; /* what `record` points to */
        void *_impl;
};

/* Checks the request (create_check), which may change it. -> Running within create_wait, else Pending; a failure
 * within that time is the result. ERR_INVALID: `problems` says what is wrong with the request. ERR_EXHAUSTED: over a
 * quota. ERR_CONFLICT: deleted meanwhile. A sandbox that exists already is returned as it is, in any state. */
struct service_create {
        struct service_req req;
        const struct caller *caller;
        struct create_request *request;
        struct arena *arena; /* of the request, for problems */
        struct str
                idempotency_key; /* null view: none. The same key and body return the same sandbox; the same
                                       key with another body: ERR_CONFLICT */
        struct str body;         /* as received; what the key is compared by */
        const struct owner *owner; /* NULL: the caller, not bound */
        bool owner_bound;          /* it is the one sandbox of its owner, until it ends */
        bool git_configured;       /* it gets a git identity: for the record */

        char id[64];              /* valid as soon as service_create returns; "": refused */
        struct problems problems; /* of ERR_INVALID; empty if the message says it all */
        char other_id[64];        /* of ERR_EXISTS: the sandbox that the owner has */
        bool replayed;            /* it existed already */
        bool about_snapshot; /* it was refused because of the snapshot. ERR_NOT_FOUND; ERR_CONFLICT if that is not
                                Ready; ERR_INVALID if the request does not fit it */
};

void service_create(struct service *s, struct service_create *c);

/* The id that a create of this caller with this key gets. */
void service_replay_id(const struct service *s, const struct caller *caller, struct str key,
                       char ret[static 64]);

/* All of these may return ERR_NOT_FOUND. */
struct service_command {
        struct service_req req;
        const struct caller *caller;
        struct str id;

        usec_t expires;        /* renew: wall time */
        struct json_map patch; /* patch: null values delete */
};

/* When it is done, runtime and registry no longer have the sandbox. A second delete waits for the same end. Tombstones
 * can be deleted as well. */
void service_delete(struct service *s, struct service_command *c);

/* -> Paused, -> Running. ERR_CONFLICT if it is not Running, not Paused; ERR_UNSUPPORTED. */
void service_pause(struct service *s, struct service_command *c);
void service_resume(struct service *s, struct service_command *c);

/* ERR_INVALID if the time is not in the future; ERR_CONFLICT if the sandbox never expires or has ended. */
void service_renew(struct service *s, struct service_command *c);

/* ERR_INVALID if a label is malformed; ERR_CONFLICT if the sandbox has ended. */
void service_patch_metadata(struct service *s, struct service_command *c);

/* --- several nodes on one store --- */

/*
 * Finds the node of a sandbox that is not on this one. 0: another live node has it; forward the request to that node.
 * ERR_NOT_FOUND: no node has it, or the caller may not see it, or it has become a tombstone of this node because its
 * node was lost; handle the request here. ERR_UNAVAILABLE: its node, or the store, does not answer. req.record is set
 * where a record is known.
 */
struct service_locate {
        struct service_req req;
        const struct caller *caller; /* NULL: not known yet; nothing is hidden */
        struct str id;

        struct service_node node; /* result */
};

void service_locate(struct service *s, struct service_locate *l);

/* Whether this is one of several nodes. */
bool service_is_shared(const struct service *s);

/* ERR_UNAVAILABLE while the lease of this node has expired. */
int service_may_serve(const struct service *s, struct err *e) must_check;

/* A node is lost: its sandboxes become tombstones. For nodes_config.lost. */
void service_node_lost(struct service *s, struct str node);

/* --- the one sandbox of an owner --- */

/* The author of commits, and a token. The agent keeps the token in memory only, for GIT_HOST only. */
struct git_identity {
        struct str name, email;
        struct str secret_token; /* null view: none */
};

/*
 * Returns the owner's one sandbox: the healthy one that exists, or a new one. It holds the owner's lock
 * (registry_lock_owner) all the time, so several requests for one owner create one sandbox, also on several nodes.
 *
 *         none, or it has ended     create
 *         Running, agent answers    return it
 *         Paused                    resume it first
 *         Pending, Resuming …       wait
 *         agent does not answer     ping a few times with backoff, then inspect. A sandbox that has ended, or runs
 *                                   with a silent agent, is deleted and created again. If the runtime can't tell,
 *                                   the result is ERR_UNAVAILABLE, and nothing changes
 *
 * With must_be_new an owner that has a sandbox gets ERR_EXISTS, and other_id is set.
 *
 * It is done when the sandbox runs and, if requested, git is set up. A new sandbox for which git can't be set up is
 * deleted again. A caller that leaves early may ask again: what was begun goes on.
 */
struct service_ensure {
        struct service_req req;
        const struct caller *caller;
        const struct owner *owner;
        struct create_request *request; /* may be changed, as by service_create */
        struct arena *arena;            /* of the request, for problems */
        const struct git_identity *git; /* NULL: none */
        bool must_be_new;

        char id[64];                     /* results: the sandbox; "" if there is none */
        bool created;                    /* it is new */
        char other_id[64];               /* of ERR_EXISTS */
        struct problems problems;        /* of ERR_INVALID; empty if the message says it all */
        struct service_node remote_node; /* of ERR_UNAVAILABLE: forward the request to this node */
};

void service_ensure(struct service *s, struct service_ensure *x);

/* The sandbox of that id for its owner, which is stricter than service_find: ERR_NOT_FOUND if the caller's tenant has
 * no such sandbox (any more), ERR_FORBIDDEN if it belongs to another user or project of the tenant. *ret is valid until
 * the caller returns to the loop. */
struct owned {
        const struct caller *caller;
        struct str id;
        struct str project; /* null view: not compared */
};

int service_find_owned(const struct service *s, const struct owned *which,
                       const struct sandbox **ret, struct err *e) must_check;

/* Done when the sandbox is neither Pending nor Pausing nor Resuming. ERR_NOT_FOUND when it is gone, ERR_UNAVAILABLE
 * after `wait`. */
struct service_await {
        struct service_req req;
        const struct caller *caller;
        struct str id; /* copied */
        usec_t wait;
};

void service_await(struct service *s, struct service_await *w);

/* Pending, Pausing or Resuming. */
bool service_is_transitional(const struct sandbox *record);

/* --- snapshots --- */

/*
 * A snapshot has a record of its own (model/snapshot.h), which is written before the driver is called. Taking one is
 * an operation on its sandbox, under the operation lock: a delete waits until it is taken. Snapshots that the caller
 * may not see do not exist, as with sandboxes.
 */

/* NULL if there is none that the caller may see. Valid until the caller returns to the loop. */
const struct snapshot *service_find_snapshot(const struct service *s, const struct caller *caller,
                                             struct str id);

/* q->tenant is set as by service_list. */
void service_list_snapshots(const struct service *s, const struct caller *caller,
                            const struct snapshots_query *q, struct snapshots_page *ret);

/* Done when the record is stored as Creating; it then becomes Ready or Failed. ERR_NOT_FOUND of the sandbox,
 * ERR_CONFLICT if that is not Running, ERR_UNSUPPORTED, ERR_EXHAUSTED over a quota, ERR_INVALID of the name. */
struct service_snapshot {
        struct service_req req; /* without a record */
        const struct caller *caller;
        struct str id;   /* create: of the sandbox; delete: of the snapshot */
        struct str name; /* create; null view: none */

        const struct snapshot *snapshot; /* result of create */
        bool in_use;                     /* result of delete: the reason for ERR_CONFLICT */
        struct snapshot *_snapshot;
        struct op_wrap _wrap;
};

void service_create_snapshot(struct service *s, struct service_snapshot *x);

/* When it is done, runtime and registry no longer have it. ERR_NOT_FOUND; ERR_CONFLICT while it is being created, or
 * if a sandbox that was created from it needs it: then it stays as it was. */
void service_delete_snapshot(struct service *s, struct service_snapshot *x);

/* --- ingress --- */

/* Whether requests may be sent into it: ERR_CONFLICT while it is Paused, ERR_UNAVAILABLE with retry_after while it is
 * Pending, Resuming or Pausing, ERR_NOT_FOUND when it has ended. */
int service_check_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e)
        must_check;

/* These requests give `done` no record.
 *
 * Opens a byte stream to the agent. It counts as an access for the extension that renews by access. */
struct service_connect {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct driver_connect
                stream; /* result: stream.fd, owned by the caller; -EBADF on failure */
        bool passive;   /* does not count as an access */
};

void service_connect(struct service *s, struct service_connect *c);

struct service_exec {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct agent_exec exec; /* its req is not to be used */
};

struct service_read {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct agent_read read;
};

struct service_write {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct agent_write write;
};

/* A credential for git. It does not count as an access. */
struct service_git_credential {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct agent_git git;
};

void service_exec(struct service *s, struct service_exec *x);
void service_read_file(struct service *s, struct service_read *x);
void service_write_files(struct service *s, struct service_write *x);
void service_set_git_credential(struct service *s, struct service_git_credential *x);

/* --- events --- */

/* A change of the record. Views, valid during the call. */
struct service_event {
        uint64_t seq;     /* grows by one with each event of this process */
        usec_t at;        /* wall */
        const char *type; /* sandbox.created, sandbox.state, sandbox.renewed, sandbox.deleted … */
        const struct sandbox *record; /* as it is now, or was last */
};

struct service_listener {
        void (*event)(struct service_listener *l, const struct service_event *e);
        struct list _node;
};

void service_listen(struct service *s, struct service_listener *l);
void service_unlisten(struct service_listener *l);

/* The last events of one sandbox, oldest first. They do not survive a restart. */
#define SERVICE_HISTORY_MAX 16
struct service_history_entry {
        usec_t at;
        const char *type;
        int state;         /* enum state */
        struct str reason; /* as the record had it */
        struct str message;
};

size_t service_history(const struct service *s, const struct caller *caller, struct str id,
                       struct service_history_entry ret[static SERVICE_HISTORY_MAX]);

/* --- drivers --- */

/* A finding of a driver about this host; if it is not ok, `text` says what to do. */
struct service_fact {
        struct str name;
        bool ok;
        struct str text;
};

struct service_driver {
        struct str name;
        bool is_default;
        bool available;         /* it answers now */
        struct str reason;      /* why not; else null */
        struct json_strs caps;  /* names of capabilities: pause, volumes … */
        struct json_list facts; /* struct service_fact; empty if it does not answer */
};

/* Probes all drivers in parallel. A driver that fails or times out is a result, not an error. Requests that arrive
 * while a probe is in progress share its result. */
struct service_probe {
        struct op op;
        struct err err; /* ERR_UNAVAILABLE: not started yet, or stopping */

        const struct service_driver *drivers; /* results; the default first */
        size_t n;

        struct op_wrap _wrap;
        struct list _node;
        struct probe_round *_round;
};

void service_probe(struct service *s, struct service_probe *p);

/* --- statistics --- */

#define SERVICE_CREATE_BUCKETS 14

struct service_stats {
        uint64_t creates, create_failures, deletes, expired, died, renewed, reconciles;
        uint64_t create_buckets[SERVICE_CREATE_BUCKETS]; /* not cumulative; bounds below */
        uint64_t create_usec;                            /* sum */
        size_t under_way;                                /* commands */
};

extern const usec_t service_create_bounds[SERVICE_CREATE_BUCKETS]; /* the last: infinity */

struct service_stats service_stats(const struct service *s);

/* How many, by state, of one of its drivers: for i from 0 until the name is NULL. */
const char *service_driver_name(const struct service *s, size_t i);
size_t service_count(const struct service *s, const char *driver, enum state state);

#endif
