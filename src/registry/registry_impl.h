/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_REGISTRY_IMPL_H
#define HUTCH_REGISTRY_REGISTRY_IMPL_H

/* What the files of the registry share. */

#include "base/id.h"
#include "registry/records.h"
#include "registry/registry.h"
#include "registry/snapshots.h"
#include "registry/store_keys.h"
#include "registry/verified_write.h"

/* Of snapshots.c. */
struct snapshots {
        struct tree by_id, in_order; /* struct snapshot_entry */
};

struct registry {
        struct net_loop *loop;
        struct store *store;
        const struct clock *clock;
        char *node;
        struct nodes *nodes; /* or NULL */
        struct ids ids;
        struct records records;
        struct tree writing;          /* struct writing: ids with a write in progress */
        struct tree uncertain_writes; /* struct uncertain_write */
        struct locks *locks;
        struct snapshots snapshots;
        size_t under_way; /* operations */
};

/* --- operations --- */

/* Wraps the operation (net/op.h): `step` changes what is in memory, takes the operation off r->under_way and calls
 * op_unwrap. So changes become visible when they are reported, and results live until `done` returns. */
void request_begin(struct registry *r, struct registry_req *req, op_done_fn *step, void *impl);

/* --- writes in progress --- */

struct writing {
        struct tree_node by_id;
        char id[SANDBOX_ID_MAX];
};

void writing_begin(struct registry *r, struct writing *w, struct str id);
void writing_end(struct registry *r, struct writing *w);
bool writing_has(const struct registry *r, struct str id);

/* --- uncertain writes --- */

/*
 * A new record whose write failed, and could not be read after it, may be in the store although its register was
 * refused. Its id and the digest of its value are remembered, so that this process recognizes the record as never
 * acknowledged. After a restart it is a record like any other: one of a create that did not end.
 */
void uncertain_write_add(struct registry *r, struct str id, struct str value);
bool uncertain_write_matches(const struct registry *r, struct str id, struct str value);
void uncertain_write_forget(struct registry *r, struct str id);

/* --- reading records --- */

/* Decodes by sandbox_decode, or else sandbox_decode_purista; the record must belong to that key. ERR_UNSUPPORTED if a
 * newer hutchd wrote it, else ERR_INVALID. */
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

/* Writes the index of a bound record (claim.c). ERR_EXISTS and `other` if another sandbox has a right to it. PURISTA's
 * older indexes, without a scope, are read and never written. The caller embeds it, sets `done`, and keeps the record. */
struct claim;
typedef void claim_done_fn(struct claim *c, int result);

struct claim {
        claim_done_fn *done;
        void *data; /* the caller's */

        uint64_t version; /* results */
        bool made;        /* the index is new: remove it if the record can't be written */
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

/* Removes the index that claim_start wrote, or that means nothing. Not waited for. One without a scope is PURISTA's and
 * stays. */
void release_owner(struct registry *r, const struct owner *o, uint64_t version);

/* --- locks --- */

struct locks *locks_new(struct registry *r) must_check;
void locks_free(struct locks *ls);

/* --- snapshots --- */

void snapshots__done(struct registry *r);

enum snapshot_loaded { SNAPSHOT_LOADED, SNAPSHOT_FOREIGN, SNAPSHOT_DAMAGED };

/* Takes an entry of the store into memory. */
enum snapshot_loaded snapshots__take(struct registry *r, const struct store_entry *e);

#endif
