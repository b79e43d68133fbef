/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_RECORDS_H
#define HUTCH_REGISTRY_RECORDS_H

/*
 * The records of this node in memory, by id and by everything a list can filter by. No I/O: the registry changes them
 * when the store has acknowledged.
 *
 * All lists are newest first. The order has one key: the creation time counted backwards, eight bytes big-endian, then
 * the id. The entry holds these bytes once; every node in every ordered tree has them as its key, which is also how an
 * entry is found from a node. So an index costs a node of 40 bytes per record and copies nothing, and replacing a record
 * moves no key.
 *
 * Each index (one of all records, one per tenant) has
 *
 *         states[s]     a tree for each state
 *         groups[g]     live records, tombstones
 *         labels        a bucket for each label, by "key=value", with its live records and its tombstones
 *         drivers       counts by driver and state
 *
 * Tenants and buckets are created with their first record and freed with their last.
 */

#include "base/tree.h"
#include "model/sandbox.h"

enum group {
        GROUP_LIVE,
        GROUP_FINAL,
        GROUP_MAX_,
};

static inline enum group group_of(enum state s)
{
        return state_is_final(s) ? GROUP_FINAL : GROUP_LIVE;
}

struct bucket {
        struct tree_node by_name;
        struct tree groups[GROUP_MAX_];
        char name[]; /* "key=value": no label holds a second '=' */
};

struct index {
        struct tree_node by_name; /* of tenants */
        struct tree states[STATE_MAX_];
        struct tree groups[GROUP_MAX_];
        struct tree labels;  /* struct bucket */
        struct tree drivers; /* struct driver_count */
        char name[];
};

/* The two indexes that each record is in. */
enum reach {
        REACH_ALL,
        REACH_TENANT,
        REACH_MAX_,
};

struct label_link {
        struct bucket *buckets[REACH_MAX_];
        struct tree_node nodes[REACH_MAX_];
};

#define ORDER_TIME 8 /* bytes of the key before the id */

struct entry {
        struct tree_node by_id;
        struct tree_node in_state[REACH_MAX_];
        struct tree_node in_group[REACH_MAX_];
        struct label_link *links; /* one for each label */
        size_t n_links;
        struct index *tenant;
        struct sandbox *record;
        uint64_t version;       /* in the store */
        uint64_t owner_version; /* of the owner's index that points here; 0: there is none */
        size_t order_n;
        char order[];
};

struct records {
        struct tree by_id;
        struct tree tenants;
        struct index *all;
};

void records_init(struct records *rs);
void records_done(struct records *rs);

/* NULL if there is none. */
struct entry *records_get(const struct records *rs, struct str id);
struct entry *records_after(const struct records *rs, struct str id);

/* All take ownership of the record. records_add: there is none of that id. records_replace: records_same. */
struct entry *records_add(struct records *rs, struct sandbox *record, uint64_t version);
void records_replace(struct records *rs, struct entry *entry, struct sandbox *record,
                     uint64_t version);
void records_remove(struct records *rs, struct entry *entry);

/* Whether the one may replace the other. */
bool records_same(const struct sandbox *a, const struct sandbox *b);

/* The index of a tenant, or of all for the null view. NULL: there are no records. */
const struct index *records_index(const struct records *rs, struct str tenant);

/* The entry of a node in an ordered tree. */
static inline struct entry *entry_of_order(const struct tree_node *n)
{
        return container_of(n->key.p, struct entry, order);
}

/* --- indexes --- */

/* NULL if no record has that label. */
struct bucket *index_bucket(const struct index *x, const struct json_pair *label);

size_t index_count(const struct index *x, struct str driver, enum state state);

#endif
