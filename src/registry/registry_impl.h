/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_REGISTRY_IMPL_H
#define HUTCH_REGISTRY_REGISTRY_IMPL_H

/* What the files of the registry share. */

#include "base/id.h"
#include "registry/store_keys.h"
#include "registry/records.h"
#include "registry/registry.h"
#include "registry/snapshots.h"
#include "registry/verified_write.h"

/* Of snapshots.c. */
struct snapshots {
        struct tree by_id, in_order; /* struct kept */
};

struct registry {
        struct net_loop *loop;
        struct store *store;
        const struct clock *clock;
        char *node;
        struct nodes *nodes; /* or NULL */
        struct ids ids;
        struct records records;
        struct tree writing;          /* struct writing: ids of which a write is under way */
        struct tree uncertain_writes; /* struct doubt */
        struct locks *locks;
        struct snapshots snapshots;
        size_t under_way; /* operations */
};

/* --- operations --- */

/*
 * The registry stands between op_finish and the starter's `done`, as the store does: `ours` is called
 * first, changes what is in memory, and calls request_end, which calls the starter's. So changes
 * become visible when they are told, and results live until `done` returns.
 */
void request_begin(struct registry *r, struct registry_req *req, op_done_fn *step, void *impl);
void request_end(struct registry *r, struct registry_req *req, int result);

/* --- writes under way --- */

struct writing {
        struct tree_node by_id;
        char id[SANDBOX_ID_MAX];
};

void writing_begin(struct registry *r, struct writing *w, struct str id);
void writing_end(struct registry *r, struct writing *w);
bool writing_has(const struct registry *r, struct str id);

/* --- doubts --- */

/*
 * A new record whose write failed, and could not be read after it, may be in the store although its
 * register was refused. Its id and the digest of what was written are remembered, so that whoever
 * meets the record later in this process knows that it was never acknowledged and may go. After a
 * restart it is a record like any other: one of a create that was begun and did not end.
 */
void uncertain_write_add(struct registry *r, struct str id, struct str value);
bool uncertain_write_matches(const struct registry *r, struct str id, struct str value);
void uncertain_write_forget(struct registry *r, struct str id);

/* --- records that are read --- */

/* As sandbox_decode, or else sandbox_decode_purista, and the record must be the one of that key.
 * ERR_UNSUPPORTED if a newer hutchd wrote it, else ERR_INVALID. */
int registry__read_record(struct str key, struct str value, struct sandbox **ret, struct err *e)
        must_check;

static inline bool is_ours(const struct registry *r, const struct sandbox *s)
{
        return str_eq(s->node, str_from(r->node));
}

static inline bool is_bound_to(const struct sandbox *s, const struct owner *o)
{
        return s->owner_bound && owner_eq(&s->owner, o);
}

/* --- lists --- */

/* As registry_list. */
void records_list(const struct records *rs, const struct registry_query *q,
                  struct registry_page *ret);

/* --- the owner's index --- */

/*
 * Writes the index of a bound record, at a key with a scope; one without, as PURISTA's older generation
 * wrote it, is read before that and never written. Whoever is in its place is looked at: ERR_EXISTS and `other` if
 * he has a right to it, else he is replaced, by compare-and-set. The caller embeds it, sets `done`,
 * and keeps the record.
 */
struct claim;
typedef void claim_done_fn(struct claim *c, int result);

struct claim {
        claim_done_fn *done;
        void *data; /* the caller's */

        uint64_t version; /* results */
        bool made;        /* the index is new: undo it if the record can't be written */
        char other[SANDBOX_ID_MAX + 1];
        struct err err;

        struct registry *_registry;
        const struct sandbox *_record;
        uint64_t _stale; /* version of the index that is to be replaced */
        unsigned _tries;
        struct verified_write _verified;
        struct store_get _get;
        size_t _key_n;
        char _key[OWNER_KEY_SIZE];
        char _value[INDEX_VALUE_SIZE];
        char _other_key[RECORD_KEY_SIZE];
};

void claim_start(struct claim *c, struct registry *r, const struct sandbox *record);

/* Removes the index that claim_start has given, or that was found to mean nothing; nobody waits. One
 * without a scope stays: it is not ours, and whoever reads it compares. */
void release_owner(struct registry *r, const struct owner *o, uint64_t version);

/* --- locks --- */

struct locks *locks_new(struct registry *r) must_check;
void locks_free(struct locks *ls);

/* --- snapshots --- */

void snapshots__init(struct snapshots *x);
void snapshots__done(struct registry *r);

enum snapshot_loaded { SNAPSHOT_LOADED, SNAPSHOT_FOREIGN, SNAPSHOT_DAMAGED };

/* What was read from the store becomes known. */
enum snapshot_loaded snapshots__take(struct registry *r, const struct store_entry *e);

#endif
