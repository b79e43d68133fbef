/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_REGISTRY_H
#define HUTCH_REGISTRY_REGISTRY_H

/*
 * Which sandboxes exist.
 *
 * The store is the truth. The registry keeps the records of its own node in memory, decoded and indexed, and writes
 * through. So a lookup or a page of a list costs no I/O, and an acknowledged write is as durable as the store.
 *
 * Keys in the store:
 *
 *         sandbox:registry:<id>         the record (model/sandbox.h), JSON
 *         sandbox:owner:<owner's key>   the id of the one sandbox that is bound to this owner, "<id>"
 *         hutch:lock:<owner's key>      holder and end of the owner's lock
 *         hutch:key:<SHA-256>           an API key (registry/keyring.h)
 *         hutch:snapshot:<id>           the record of a snapshot (registry/snapshots.h)
 *         hutch:node:<id>               a node that shares the store (registry/nodes.h)
 *
 * (owner_add_key, or its SHA-256 if it is very long: registry/store_keys.h).
 *
 * The first two are PURISTA's, and its own registry may have written them. Such a foreign record (sandbox_is_foreign) is
 * returned by lookups, keeps its owner bound, and is neither changed nor removed. PURISTA's older generation had owner
 * keys without a scope; they are read where there is none with one.
 *
 * Records are validated when they are written and when they are read. A record that can't be read is counted as damaged,
 * never returned and never overwritten.
 *
 * How writes, owner indexes and uncertain outcomes work is at the head of registry_write.c. Processes that may work for
 * one owner at the same time hold the owner's lock.
 *
 * Views. A const struct sandbox * that a call returns belongs to the registry and is valid until the caller returns to
 * the loop. Copy it (sandbox_copy) to keep it.
 *
 * Writes to one id must not overlap; the service sees to that, and it is asserted. All operations follow net/op.h and
 * store/store.h: the result is 0 or a domain code with a message in req.err.
 */

#include "model/sandbox.h"
#include "store/store.h"

struct nodes; /* registry/nodes.h */
struct registry;

struct registry_config {
        struct str node;           /* its records are kept in memory */
        const struct clock *clock; /* leases of locks are on the wall clock, which hosts share */
        struct nodes *nodes; /* outlives the registry; NULL: this is the only node on the store */
};

/* --- life cycle --- */

/* The store must outlive it. */
struct registry *registry_new(struct net_loop *loop, struct store *store,
                              const struct registry_config *config) must_check;

/* No operation may be in progress. */
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
        size_t damaged;         /* can't be read: stay as they are */
        struct str damaged_key; /* the first of these, until `done` returns */
};

void registry_load(struct registry *r, struct registry_load *l);

/* --- writing --- */

/* Takes ownership of the record, which must be of this node. ERR_EXISTS if the id exists, or if the record is bound
 * (owner_bound) and its owner has a sandbox already; other_id says which. */
struct registry_register {
        struct registry_req req;
        char other_id[64]; /* result of ERR_EXISTS, "" otherwise */
};

void registry_register(struct registry *r, struct registry_register *g, struct sandbox *record);

/* Takes ownership of `next`, a changed copy of the present record; its version becomes one more. ERR_NOT_FOUND if there is
 * none. ERR_CONFLICT if another process wrote meanwhile: then that record is visible from `done` on. Id, tenant, node,
 * owner, driver and creation time can't change: ERR_INVALID. A bound record may be unbound, which releases the owner; not
 * the other way round. */
struct registry_update {
        struct registry_req req;
};

void registry_update(struct registry *r, struct registry_update *u, struct sandbox *next);

/* 0 if there is no such record. A record of this node that is only in the store, which an uncertain register may leave,
 * is removed as well. ERR_CONFLICT if the stored record is of another node, or can't be read. */
struct registry_unregister {
        struct registry_req req;
};

void registry_unregister(struct registry *r, struct registry_unregister *u, struct str id);

/* --- records of lost nodes (nodes_status) --- */

/* Gives up the sandbox of a lost node: it becomes a tombstone of this node, Failed by REASON_NODE_LOST, and its owner is
 * released. A tombstone of the lost node is removed. ERR_CONFLICT if its node is not lost or another node was faster,
 * ERR_NOT_FOUND. */
struct registry_fail_lost {
        struct registry_req req;
};

void registry_fail_lost(struct registry *r, struct registry_fail_lost *l, struct str id);

/* All records of all lost nodes. */
struct registry_sweep {
        struct registry_req req;
        void (*each)(struct registry_sweep *s, const struct sandbox *record); /* may be NULL */
        bool stop; /* may be set meanwhile to end it early */

        size_t lost; /* results */
        size_t left; /* that could not be given up; sweep again */
};

void registry_sweep(struct registry *r, struct registry_sweep *s);

/* --- reading --- */

/* A record of this node, from memory. NULL if there is none. */
const struct sandbox *registry_peek(const struct registry *r, struct str id);

/* A record of any node, or a foreign one. ERR_NOT_FOUND also for a record that can't be read. */
struct registry_get {
        struct registry_req req;
        bool unlocked;                /* find_by_owner: the caller does not hold the owner's lock */
        const struct sandbox *record; /* result, until `done` returns */
};

void registry_get(struct registry *r, struct registry_get *g, struct str id);

/* The sandbox that is bound to this owner. An index that points to nothing, or to a record of another owner, is removed
 * (ERR_NOT_FOUND). Without the owner's lock it stays: its record may be being written. */
void registry_find_by_owner(struct registry *r, struct registry_get *g, const struct owner *owner);

/* The next record of this node after that id, in order of ids; the null view begins. NULL at the end. */
const struct sandbox *registry_next(const struct registry *r, struct str after);

/* --- lists, newest first --- */

#define REGISTRY_PAGE_MAX 200
#define STATE_SET(s)      (1u << (s))

struct registry_query {
        struct str tenant;        /* null view: all tenants */
        unsigned states;          /* a set; 0: the live ones */
        struct json_map metadata; /* all of these */
        uint64_t skip;
        unsigned limit; /* 1 to REGISTRY_PAGE_MAX */
};

struct registry_page {
        const struct sandbox *items[REGISTRY_PAGE_MAX];
        unsigned n;
        uint64_t total;    /* that match, on all pages */
        uint64_t examined; /* records looked at to find these; for tests */
};

/* By indexes: the cost of a page without filters, with one state or with one label does not depend on the number of
 * records. Several labels walk the records of the rarest one. */
void registry_list(const struct registry *r, const struct registry_query *q,
                   struct registry_page *ret);

/* The same with the records of all nodes: walks the store and decodes what matches. At most REGISTRY_OTHERS_MAX records of
 * other nodes may match, else ERR_UNAVAILABLE. What the query points to stays valid until `done`. */
#define REGISTRY_OTHERS_MAX 20000

struct registry_list_all {
        struct registry_req req;
        struct registry_query query;

        struct registry_page page; /* result */
};

void registry_list_all(struct registry *r, struct registry_list_all *l);

/* The number of records in a state; null views: all tenants, all drivers. */
size_t registry_count(const struct registry *r, struct str tenant, struct str driver,
                      enum state state);

/* --- the owner's lock --- */

/*
 * Serializes create, ensure and destroy for one owner across all processes that share the store. The lock is a lease: a
 * holder that died loses it when the lease ends, so a holder that needs longer renews it in time. Waiters of this process
 * queue up in order; for a lock of another process the store is polled with backoff until the deadline.
 */
struct registry_lock {
        struct registry_req req;
        usec_t lease; /* without renewal */
        usec_t wait;  /* then ERR_TIMEOUT. 0: try once */

        struct lock_waiter *_waiter;
};

#define REGISTRY_LEASE (30 * USEC_PER_SEC)

/* The owner is copied. After success registry_unlock must be called, even if the lease was lost. op_cancel ends the wait
 * at once. */
void registry_lock_owner(struct registry *r, struct registry_lock *l, const struct owner *owner);

/* Restarts the lease; ERR_CONFLICT if it was lost meanwhile. */
void registry_lock_renew(struct registry *r, struct registry_lock *l);

/* Releases it: the next waiter gets it. Does not wait for the store. Not during a renewal. */
void registry_unlock(struct registry *r, struct registry_lock *l);

#endif
