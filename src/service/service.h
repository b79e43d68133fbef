/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_SERVICE_H
#define HUTCH_SERVICE_SERVICE_H

/*
 * The commands, one for each thing that can be done to a sandbox, whoever asks and by whichever
 * transport: a rule is written here, once.
 *
 * Every command has the same way:
 *
 *         find the record ─ may the caller see it? ─ wait for its turn ─ decide() ─ write the intent
 *              ─ ask the driver ─ decide() ─ write the outcome ─ done
 *
 * decide (service/decide.h) is pure: from the moment, the record and the command it says what is to
 * be written, what the driver is to be asked, or why not. Everything else here is order.
 *
 * Turns. Commands on one sandbox run one after the other; so create and destroy of one id never
 * overlap. Reading, connecting and looking up wait for nobody. A delete overtakes: it cancels what
 * the driver is doing for that sandbox and goes next.
 *
 * Intent first. The record says Pending, Pausing, Resuming or Stopping before the driver is asked.
 * After a crash service_start finishes or undoes what it finds so.
 *
 * Who may. A caller sees the sandboxes of his tenant; an admin's caller has all_tenants. What one
 * may not see does not exist: ERR_NOT_FOUND, by the same code path, with the same words.
 *
 * Operations follow net/op.h: what is passed in stays until `done`; results are views that live until
 * `done` returns; the result is 0 or a domain code with its story in req.err. A caller that goes
 * away cancels its operation: what it has begun goes on (a create that nobody waits for still
 * creates), only `done` comes early.
 */

#include "driver/agent.h"
#include "driver/driver.h"
#include "registry/keyring.h"
#include "registry/nodes.h"
#include "registry/registry.h"
#include "registry/snapshots.h"

struct service;

/* --- who asks --- */

struct caller {
        struct str tenant;
        struct str principal;
        int role;         /* enum role */
        bool all_tenants; /* sees everything */
        struct str key;   /* id of the API key; null view: none was needed. For the audit log */
};

/* --- set-up --- */

/* 0 is no limit. */
struct quota {
        uint64_t sandboxes;
        uint64_t cpu_milli;
        uint64_t memory_bytes;
        uint64_t snapshots;
};

struct tenant_quota {
        struct str tenant;
        struct quota quota;
};

struct service_limits {
        struct quota each;                  /* of a tenant that is not named */
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
        struct nodes *nodes; /* who else is on the store; NULL: nobody */
        struct agents *agents;
        struct str node;
        struct str boot_id; /* /proc/sys/kernel/random/boot_id */
        struct str secret;  /* of the installation: names that are derived (Idempotency-Key) */
        struct create_policy policy;
        usec_t create_wait;      /* how long a create is waited for before it is answered Pending */
        usec_t tombstone_for;    /* how long Terminated and Failed can be looked at */
        usec_t reconcile_every;  /* 0: only at the start */
        unsigned tombstones_max; /* of a tenant; then the oldest go early */
        unsigned snapshots_max;  /* of all tenants together */
        unsigned snapshots_at_once; /* that drivers are asked for; others wait */
};

extern const struct service_config service_defaults; /* times and numbers only */

struct service *service_new(const struct service_config *config) must_check;

/* Enables a driver; the first is the default. The driver must outlive the service. */
void service_add_driver(struct service *s, struct driver *d);

/* May be changed while it runs: what exists stays, what comes is counted against the new ones. */
int service_set_limits(struct service *s, const struct service_limits *limits, struct err *e)
        must_check;

/* Adopts everything, once, before the first command: asks all drivers what runs, finishes or undoes
 * what was under way, marks gone what is gone, arms the timers. A driver that does not answer does
 * not keep the service from starting: its sandboxes stay as they are and are looked at again. */
struct service_start {
        struct op op;
        struct err err;

        size_t adopted, added, gone, undone, finished; /* results */
};

void service_start(struct service *s, struct service_start *st);

/* Commands under way come to their end or are canceled; timers stop; sandboxes live on. `stopped`
 * comes from the loop, after which only service_free may be called. */
void service_stop(struct service *s, void (*stopped)(void *data), void *data);
void service_free(struct service *s);

/* --- looking --- */

/* NULL if there is none that the caller may see. Good until the caller returns to the loop. */
const struct sandbox *service_find(const struct service *s, const struct caller *caller,
                                   struct str id);

/* q->tenant is set by the caller's rights: a caller that does not see all sees his own. */
void service_list(const struct service *s, const struct caller *caller,
                  const struct registry_query *q, struct registry_page *ret);

/* With those of all nodes: see registry_list_all. l->query.tenant is set as above. */
void service_list_all(struct service *s, const struct caller *caller, struct registry_list_all *l);

/* --- commands --- */

/* A node that is not this one, as service_locate and service_ensure tell of it. */
struct service_node {
        char id[NODE_ID_MAX + 1]; /* "": none */
        char address[NODE_ADDRESS_MAX + 1];
        char process[NODE_PROCESS_LEN + 1];
};

struct service_req {
        struct op op;
        struct err err;     /* set if the result is negative */
        usec_t retry_after; /* ERR_EXHAUSTED, ERR_UNAVAILABLE: when it may make sense; or 0 */
        const struct sandbox *record; /* result, until `done` returns; may be NULL if it is gone */

        struct service *_service;
        op_done_fn *_done;
        struct list _node;     /* among those that wait for the same end */
        struct sandbox *_kept; /* what `record` looks at */
        void *_impl;
};

/* The wish is checked (create_check) and may be changed by that. -> Running within create_wait, else
 * Pending; a failure within that time is the result. If the wish itself is wrong: ERR_INVALID, and
 * `problems` tells. Over a quota: ERR_EXHAUSTED. Deleted meanwhile: ERR_CONFLICT. A sandbox that was
 * there already is given back as it is, in whatever state. */
struct service_create {
        struct service_req req;
        const struct caller *caller;
        struct create_request *request;
        struct arena *arena;        /* of the wish, for problems */
        struct str idempotency_key; /* null view: none. The same key and wish give the same sandbox;
                                       the same key and another wish: ERR_CONFLICT */
        struct str body;            /* the wish as it came, what the key is compared by */
        const struct owner *owner;  /* NULL: of the caller, not bound */
        bool owner_bound;           /* takes the owner's one place, until it has ended */
        bool git_configured;        /* it is to get somebody's git identity: for the record */

        char id[64];              /* there as soon as service_create returns; "": refused at once */
        struct problems problems; /* result of ERR_INVALID; empty if the message says it all */
        char other_id[64];        /* result of ERR_EXISTS: the sandbox that the owner has */
        bool replayed;            /* result: it was there already */
        bool about_snapshot; /* result: it was refused because of the snapshot. ERR_NOT_FOUND; ERR_CONFLICT if
                                it is not Ready; ERR_INVALID if the wish does not fit it */
};

void service_create(struct service *s, struct service_create *c);

/* The id that a create of that key has, of that caller. */
void service_replay_id(const struct service *s, const struct caller *caller, struct str key,
                       char ret[static 64]);

/* All of these: ERR_NOT_FOUND. */
struct service_command {
        struct service_req req;
        const struct caller *caller;
        struct str id;

        usec_t expires;        /* renew: wall time */
        struct json_map patch; /* patch: null values delete */
};

/* Gone from runtime and registry when done; deleting what is being deleted waits for the same end.
 * A tombstone is deleted, too. */
void service_delete(struct service *s, struct service_command *c);

/* -> Paused, -> Running. ERR_CONFLICT if it is not Running, not Paused; ERR_UNSUPPORTED. */
void service_pause(struct service *s, struct service_command *c);
void service_resume(struct service *s, struct service_command *c);

/* ERR_INVALID if it is not in the future; ERR_CONFLICT if it never expires or is gone. */
void service_renew(struct service *s, struct service_command *c);

/* ERR_INVALID if a label breaks a rule; ERR_CONFLICT if it is gone. */
void service_patch_metadata(struct service *s, struct service_command *c);

/* --- several nodes on one store --- */

/*
 * Where the sandbox of that id is, if it is not here. Done with 0 if another node has it, which lives: that one is to
 * be asked. ERR_NOT_FOUND: none has, or none that the caller may see, or it has become one of ours since, a
 * tombstone of a node that is lost; so go on here. ERR_UNAVAILABLE: its node does not answer, or the
 * store. The record tells what is known, where there is one.
 */
struct service_locate {
        struct service_req req;
        const struct caller *caller; /* NULL: who asks is not known yet, and everything is told */
        struct str id;

        struct service_node node; /* result */
};

void service_locate(struct service *s, struct service_locate *l);

/* Whether this is one of several nodes; and whether it may serve now: ERR_UNAVAILABLE while its lease is
 * over. */
bool service_is_shared(const struct service *s);
int service_may_serve(const struct service *s, struct err *e) must_check;

/* A node is lost: its sandboxes are given up. For nodes_config.lost. */
void service_node_lost(struct service *s, struct str node);

/* --- the one sandbox of an owner --- */

/* Who commits, and how git shows it to others. The token is for the hosts that the agent was told of,
 * is kept in its memory and nowhere else. */
struct git_identity {
        struct str name, email;
        struct str secret_token; /* null view: none */
};

/*
 * Gives the owner his one sandbox: the healthy one that he has, or a new one. All that is done for one
 * owner holds his lock (registry_lock_owner), so it is done once, also by several hutchd on one store.
 *
 *         none, or it has ended     is made
 *         Running, agent answers    is given back
 *         Paused                    is resumed first
 *         Pending, Resuming …       is waited for
 *         agent does not answer     is asked again, a few times, later and later; then the runtime is
 *                                   asked. One that has ended, or that runs with an agent that stays
 *                                   silent, is deleted and made anew. If the runtime can't tell, that
 *                                   is the result (ERR_UNAVAILABLE), and everything stays
 *
 * With must_be_new an owner that has one gets ERR_EXISTS, and other_id tells which.
 *
 * It is done when the sandbox runs, and git is set up if that was wished. A new one for which git can't
 * be set up is deleted again. Whoever leaves before may ask again: what was begun goes on.
 */
struct service_ensure {
        struct service_req req;
        const struct caller *caller;
        const struct owner *owner;
        struct create_request *request; /* may be changed, as service_create does */
        struct arena *arena;            /* of the wish, for problems */
        const struct git_identity *git; /* NULL: none is wished */
        bool must_be_new;

        char id[64];                     /* results: the sandbox; "" if there is none */
        bool created;                    /* it is new */
        char other_id[64];               /* of ERR_EXISTS */
        struct problems problems;        /* of ERR_INVALID; empty if the message says it all */
        struct service_node remote_node; /* of ERR_UNAVAILABLE: ask this one, which has it */
};

void service_ensure(struct service *s, struct service_ensure *x);

/* The sandbox of that id for its owner: ERR_NOT_FOUND if the caller's tenant has none of that id (any
 * more), ERR_FORBIDDEN if somebody else of the tenant owns it, or the project is another one. *ret is good
 * until the caller returns to the loop. */
struct owned {
        const struct caller *caller;
        struct str id;
        struct str project; /* null view: is not compared */
};

int service_find_owned(const struct service *s, const struct owned *which,
                       const struct sandbox **ret, struct err *e) must_check;

/* Done when the sandbox is neither Pending nor Pausing nor Resuming, whatever it is then; with
 * ERR_NOT_FOUND when it is gone. ERR_UNAVAILABLE if it is still so after `wait`. */
struct service_await {
        struct service_req req;
        const struct caller *caller;
        struct str id; /* copied */
        usec_t wait;
};

void service_await(struct service *s, struct service_await *w);

/* Whether it is Pending, Pausing or Resuming: worth awaiting. */
bool service_is_transitional(const struct sandbox *record);

/* --- snapshots --- */

/*
 * A snapshot is a record of its own (model/snapshot.h), which is written before the driver is asked.
 * Taking one is a command on its sandbox, in turn with the others: a delete that comes meanwhile waits
 * until it is taken. What one may not see does not exist, as with sandboxes.
 */

/* NULL if there is none that the caller may see. Good until the caller returns to the loop. */
const struct snapshot *service_find_snapshot(const struct service *s, const struct caller *caller,
                                             struct str id);

/* q->tenant is set by the caller's rights. */
void service_list_snapshots(const struct service *s, const struct caller *caller,
                            const struct snapshots_query *q, struct snapshots_page *ret);

/* -> Creating, and stored; it then becomes Ready or Failed by itself. ERR_NOT_FOUND of the sandbox,
 * ERR_CONFLICT if that is not Running, ERR_UNSUPPORTED by its driver, ERR_EXHAUSTED over a quota,
 * ERR_INVALID of the name. */
struct service_snapshot {
        struct service_req req; /* without a record */
        const struct caller *caller;
        struct str id;   /* create: of the sandbox; delete: of the snapshot */
        struct str name; /* create; null view: none */

        const struct snapshot *snapshot; /* result of create, until `done` returns */
        bool in_use;                     /* result of delete: why it is ERR_CONFLICT */
        struct snapshot *_snapshot;
        op_done_fn *_then;
};

void service_create_snapshot(struct service *s, struct service_snapshot *x);

/* Gone from runtime and registry when done. ERR_NOT_FOUND; ERR_CONFLICT while it is being created, or
 * a sandbox that was made of it needs it: it then is what it was. */
void service_delete_snapshot(struct service *s, struct service_snapshot *x);

/* --- into a sandbox --- */

/* Whether requests may go into it: ERR_CONFLICT while it is paused, ERR_UNAVAILABLE with retry_after
 * while it is Pending, Resuming or Pausing, ERR_NOT_FOUND when it is gone. */
int service_check_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e)
        must_check;

/* A stream to its agent, and an access in the sense of the extension that renews by access. */
struct service_connect {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        bool passive; /* somebody looks at it from outside: that is no access */

        int fd; /* result: the starter's own from then on; -EBADF if it failed */
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

/* A credential for git; no access in the sense above. */
struct service_git_credential {
        struct service_req req;
        const struct caller *caller;
        struct str id;
        struct agent_git git;
};

void service_exec(struct service *s, struct service_exec *x);
void service_set_git_credential(struct service *s, struct service_git_credential *x);
void service_read_file(struct service *s, struct service_read *x);
void service_write_files(struct service *s, struct service_write *x);

/* --- news --- */

/* A change of state, or of what is known about it. Views, good during the call. */
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

/* The last events of one sandbox, oldest first: a short memory, which does not survive a restart. */
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

/* What a driver says about this machine: if it is not ok, what to do. */
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
        struct json_strs caps;  /* what it can do, in words: pause, volumes … */
        struct json_list facts; /* struct service_fact; none if it does not answer */
};

/* Asks all drivers, side by side. One that does not answer, also not within some seconds, is a result and no
 * failure. Whoever asks while others do is told the same as they: a driver is asked once at a time. */
struct service_probe {
        struct op op;
        struct err err; /* ERR_UNAVAILABLE: not started yet, or stopping */

        const struct service_driver *drivers; /* results, until `done` returns; the default first */
        size_t n;

        op_done_fn *_done;
        struct list _node;
        struct probe_round *_round;
};

void service_probe(struct service *s, struct service_probe *p);

/* --- numbers --- */

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
