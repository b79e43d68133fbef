/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_REGISTRY_H
#define HUTCH_REGISTRY_REGISTRY_H

/*
 * Which sandboxes there are.
 *
 * The store is the truth; the registry keeps the records of its own node decoded in memory, with
 * indexes, and writes through. So a look-up or a page of a list costs no I/O and does not grow with
 * what is merely stored, and an acknowledged write is as durable as the store is.
 *
 * Keys in the store:
 *
 *         sandbox:registry:<id>         the record (model/sandbox.h), JSON
 *         sandbox:owner:<owner's key>   the id of the one sandbox that is bound to this owner, "<id>"
 *         hutch:lock:<owner's key>      who holds the owner's lock, and until when
 *         hutch:key:<SHA-256>           an API key (registry/keyring.h)
 *         hutch:snapshot:<id>           the record of a snapshot (registry/snapshots.h)
 *         hutch:node:<id>               one that shares the store (registry/nodes.h)
 *
 * (owner_add_key, or its SHA-256 if it is very long: registry/store_keys.h).
 *
 * The first two are PURISTA's, and its own registry may have written them: such a record is shown to
 * who asks for it or for its owner (sandbox_is_foreign), takes its owner's place, and is neither changed nor
 * removed. Its older generation had keys without a scope; they are read where there is none with one.
 *
 * Records are validated when they are written and when they are read. One that can't be read is
 * never returned and never overwritten: it is counted, and left for people.
 *
 * The owner's index is written before the record and removed after it, so it may point to nothing
 * or, after a crash and a second create, to a record of somebody else. Whoever reads it compares,
 * and repairs what does not match. Between its index and its record a register looks as if it had
 * died there, to another process: two that may work for one owner at a time hold the owner's lock.
 *
 * A write whose outcome the store does not tell is looked up. If that fails, too, its result is the
 * store's error, memory stays as it was, and the next write to that id finds out.
 *
 * Views. A const struct sandbox * that a call returns belongs to the registry and is good until the
 * caller returns to the loop. Who needs it longer copies it (sandbox_copy).
 *
 * Writes to one id do not overlap: the service sees to that, and it is asserted. All operations
 * follow net/op.h and store/store.h: the result is 0 or a domain code with its story in req.err.
 */

#include "model/sandbox.h"
#include "store/store.h"

struct nodes; /* registry/nodes.h */
struct registry;

struct registry_config {
        struct str node;           /* whose records are kept in memory */
        const struct clock *clock; /* leases of locks, on the wall clock: other machines share it */
        struct nodes *nodes; /* who else is on the store; NULL: nobody. Outlives the registry */
};

/* --- life --- */

/* The store must outlive it. */
struct registry *registry_new(struct net_loop *loop, struct store *store,
                              const struct registry_config *config) must_check;

/* Nothing may be under way. */
void registry_free(struct registry *r);

/* What all operations begin with. */
struct registry_req {
        struct op op;
        struct err err; /* set if the result is negative */

        struct op_wrap _wrap;
        void *_impl;
};

/* Loads all records of this node into memory. Runs once, before any other operation; snapshots are counted
 * with the sandboxes. A bound record whose owner index is missing gets it back. */
struct registry_load {
        struct registry_req req;

        size_t loaded;          /* results */
        size_t foreign;         /* other nodes', and PURISTA's */
        size_t damaged;         /* can't be read: left alone */
        struct str damaged_key; /* the first of these, until `done` returns */
};

void registry_load(struct registry *r, struct registry_load *l);

/* --- writing --- */

/* The record is taken whatever happens, and must be of this node. ERR_EXISTS if the id is there, or if the owner is bound
 * (owner_bound) and has a sandbox already; other_id tells which. */
struct registry_register {
        struct registry_req req;
        char other_id[64]; /* result of ERR_EXISTS, "" otherwise */
};

void registry_register(struct registry *r, struct registry_register *g, struct sandbox *record);

/* `next` is a changed copy of the present record, and is taken whatever happens; its version becomes
 * one more than the present. ERR_NOT_FOUND if there is none, ERR_CONFLICT if somebody else wrote
 * meanwhile: then his record is what everybody sees. Until `done` it is the old one. Who it is (id,
 * tenant, node, owner), its driver and its time of creation do not change: ERR_INVALID. A record that
 * is bound may be unbound, which gives the owner's place free; not the other way round. */
struct registry_update {
        struct registry_req req;
};

void registry_update(struct registry *r, struct registry_update *u, struct sandbox *next);

/* What is not there is unregistered already. A record of this node that is only in the store, which a
 * register of unknown outcome may leave, is removed as well; ERR_CONFLICT for what another node has
 * there, or can't be read. */
struct registry_unregister {
        struct registry_req req;
};

void registry_unregister(struct registry *r, struct registry_unregister *u, struct str id);

/* --- records of nodes that are lost (nodes_status) --- */

/* Gives up the sandbox of another node: from then on it is a tombstone of this one, Failed by
 * REASON_NODE_LOST, and its owner's place is free. What was a tombstone already goes. ERR_CONFLICT if its node is not lost or somebody else was faster, ERR_NOT_FOUND. */
struct registry_fail_lost {
        struct registry_req req;
};

void registry_fail_lost(struct registry *r, struct registry_fail_lost *l, struct str id);

/* All of them, of all nodes that are lost. */
struct registry_sweep {
        struct registry_req req;
        void (*each)(struct registry_sweep *s, const struct sandbox *record); /* may be NULL */
        bool stop; /* may be set meanwhile: it then ends soon */

        size_t lost; /* results */
        size_t left; /* that could not be given up: look again */
};

void registry_sweep(struct registry *r, struct registry_sweep *s);

/* --- reading --- */

/* Of this node, from memory. NULL if there is none. */
const struct sandbox *registry_peek(const struct registry *r, struct str id);

/* Of any node, or of none (sandbox_is_foreign). ERR_NOT_FOUND also for a record that can't be read. */
struct registry_get {
        struct registry_req req;
        bool unlocked; /* find_by_owner: the starter does not hold the owner's lock */
        const struct sandbox *record; /* result, until `done` returns */
};

void registry_get(struct registry *r, struct registry_get *g, struct str id);

/* The sandbox that is bound to this owner. An index that points to nothing, or to a record of
 * another owner, is removed, and the answer is ERR_NOT_FOUND; without the owner's lock it may be one whose record is
 * on its way, and stays. */
void registry_find_by_owner(struct registry *r, struct registry_get *g, const struct owner *owner);

/* The next record of this node behind that id, in order of ids; the null view begins. NULL at the
 * end. For walks over all of them: at the start, for reconciling. */
const struct sandbox *registry_next(const struct registry *r, struct str after);

/* --- lists, newest first --- */

#define REGISTRY_PAGE_MAX 200
#define STATE_SET(s)      (1u << (s))

struct registry_query {
        struct str tenant;        /* null view: of all */
        unsigned states;          /* a set; 0: those that are live */
        struct json_map metadata; /* all of these */
        uint64_t skip;
        unsigned limit; /* 1 to REGISTRY_PAGE_MAX */
};

struct registry_page {
        const struct sandbox *items[REGISTRY_PAGE_MAX];
        unsigned n;
        uint64_t total;    /* that match, on all pages */
        uint64_t examined; /* records, to find these */
};

/* By indexes: the cost of a page without filters, with one state or with one label does not depend
 * on how many there are. Several labels walk the records of the rarest one. */
void registry_list(const struct registry *r, const struct registry_query *q,
                   struct registry_page *ret);

/* The same with those of all nodes: the store is walked, and what others have and matches is decoded. At most
 * REGISTRY_OTHERS_MAX of these, else ERR_UNAVAILABLE. What the query points to stays until `done`, the results until
 * `done` returns. */
#define REGISTRY_OTHERS_MAX 20000

struct registry_list_all {
        struct registry_req req;
        struct registry_query query;

        struct registry_page page; /* result */
};

void registry_list_all(struct registry *r, struct registry_list_all *l);

/* How many, by state; null views: of all tenants, of all drivers. */
size_t registry_count(const struct registry *r, struct str tenant, struct str driver,
                      enum state state);

/* --- the owner's lock --- */

/*
 * Serialises what is done for one owner (ensure, create, destroy) across all that share the store.
 * It is a lease: a holder that died loses it when its time is over, so a holder that goes on for
 * longer renews it in time. Waiters of this process queue up in order; for a lock of another process
 * the store is asked again, less and less often, until the deadline.
 */
struct registry_lock {
        struct registry_req req;
        usec_t lease; /* how long it is held without renewal */
        usec_t wait;  /* how long to wait for it; then ERR_TIMEOUT. 0: ask once */

        struct lock_waiter *_waiter;
};

#define REGISTRY_LEASE (30 * USEC_PER_SEC)

/* The owner is copied. 0: it is ours until registry_unlock, which must be called, also when the lease
 * was lost. op_cancel ends the waiting at once. */
void registry_lock_owner(struct registry *r, struct registry_lock *l, const struct owner *owner);

/* Begins the lease anew; ERR_CONFLICT if it was lost meanwhile. */
void registry_lock_renew(struct registry *r, struct registry_lock *l);

/* Gives it up: the next waiter gets it. Does not wait for the store. Not while it is being renewed. */
void registry_unlock(struct registry *r, struct registry_lock *l);

#endif
