/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/records.h"

#include <endian.h>

#include "base/base.h"
#include "model/limits.h"

struct driver_count {
        struct tree_node by_name;
        size_t counts[STATE_MAX_];
        char name[];
};

/* --- indexes --- */

static struct index *index_new(struct tree *random, struct str name)
{
        struct index *x = xcalloc(1, sizeof(*x) + name.n + 1);

        for (size_t i = 0; i < STATE_MAX_; i++)
                tree_init_from(&x->states[i], random);
        for (size_t i = 0; i < GROUP_MAX_; i++)
                tree_init_from(&x->groups[i], random);
        tree_init_from(&x->labels, random);
        tree_init_from(&x->drivers, random);
        if (name.n > 0)
                memcpy(x->name, name.p, name.n);
        return x;
}

static void index_free(struct index *x)
{
        struct tree_node *n;

        ASSERT(x->groups[GROUP_LIVE].n == 0 && x->groups[GROUP_FINAL].n == 0 && x->labels.n == 0);
        while ((n = tree_take_any(&x->drivers)))
                free(container_of(n, struct driver_count, by_name));
        free(x);
}

/* --- counts --- */

static struct driver_count *find_driver(const struct index *x, struct str name)
{
        struct tree_node *n = tree_get(&x->drivers, name);

        return n ? container_of(n, struct driver_count, by_name) : NULL;
}

static struct driver_count *driver_of(struct index *x, const struct sandbox *record)
{
        struct driver_count *d = find_driver(x, record->driver);

        if (d)
                return d;
        d = xcalloc(1, sizeof(*d) + record->driver.n + 1);
        memcpy(d->name, record->driver.p, record->driver.n);
        tree_add(&x->drivers, &d->by_name, str_of(d->name, record->driver.n));
        return d;
}

size_t index_count(const struct index *x, struct str driver, enum state state)
{
        const struct driver_count *d;

        if (!driver.p)
                return x->states[state].n;
        d = find_driver(x, driver);
        return d ? d->counts[state] : 0;
}

/* --- labels --- */

#define LABEL_TEXT_MAX (DNS_NAME_MAX + 1 + DNS_LABEL_MAX + 1 + DNS_LABEL_MAX)

/* The null view if it is longer than any label. */
static struct str label_text(const struct json_pair *label, char ret[static LABEL_TEXT_MAX + 1])
{
        struct buf b;

        buf_init_fixed(&b, ret, LABEL_TEXT_MAX + 1);
        buf_add_str(&b, label->key);
        buf_add_char(&b, '=');
        buf_add_str(&b, label->value);
        return buf_failed(&b) ? STR_NULL : buf_str(&b);
}

struct bucket *index_bucket(const struct index *x, const struct json_pair *label)
{
        char storage[LABEL_TEXT_MAX + 1];
        struct str text = label_text(label, storage);
        struct tree_node *n = text.p ? tree_get(&x->labels, text) : NULL;

        return n ? container_of(n, struct bucket, by_name) : NULL;
}

static struct bucket *bucket_make(struct index *x, const struct json_pair *label)
{
        char storage[LABEL_TEXT_MAX + 1];
        struct str text = label_text(label, storage);
        struct bucket *b;

        ASSERT(text.p);
        b = xcalloc(1, sizeof(*b) + text.n + 1);
        memcpy(b->name, text.p, text.n);
        for (size_t i = 0; i < GROUP_MAX_; i++)
                tree_init_from(&b->groups[i], &x->labels);
        tree_add(&x->labels, &b->by_name, str_of(b->name, text.n));
        return b;
}

static struct str order_of(const struct entry *entry)
{
        return str_of(entry->order, entry->order_n);
}

/* --- records in an index --- */

/* A label that occurs twice has one node: the links after the first have no bucket. */
static void index_add(struct index *x, struct entry *entry, enum reach reach)
{
        const struct sandbox *record = entry->record;
        enum state state = record->status.state;

        tree_add(&x->states[state], &entry->in_state[reach], order_of(entry));
        tree_add(&x->groups[group_of(state)], &entry->in_group[reach], order_of(entry));
        driver_of(x, record)->counts[state]++;
        for (size_t i = 0; i < entry->n_links; i++) {
                struct label_link *link = &entry->links[i];
                struct bucket *b = index_bucket(x, &record->metadata.items[i]);
                bool linked = false;

                if (!b)
                        b = bucket_make(x, &record->metadata.items[i]);
                for (size_t j = 0; j < i; j++)
                        linked |= entry->links[j].buckets[reach] == b;
                if (linked)
                        continue;
                link->buckets[reach] = b;
                tree_add(&b->groups[group_of(state)], &link->nodes[reach], order_of(entry));
        }
}

static void index_remove(struct index *x, struct entry *entry, enum reach reach)
{
        enum state state = entry->record->status.state;

        tree_remove(&x->states[state], &entry->in_state[reach]);
        tree_remove(&x->groups[group_of(state)], &entry->in_group[reach]);
        driver_of(x, entry->record)->counts[state]--;
        for (size_t i = 0; i < entry->n_links; i++) {
                struct bucket *b = entry->links[i].buckets[reach];

                if (!b)
                        continue;
                tree_remove(&b->groups[group_of(state)], &entry->links[i].nodes[reach]);
                entry->links[i].buckets[reach] = NULL;
                if (b->groups[GROUP_LIVE].n > 0 || b->groups[GROUP_FINAL].n > 0)
                        continue;
                tree_remove(&x->labels, &b->by_name);
                free(b);
        }
}

/* The record changes its state, from the one it has: counts and trees follow. */
static void index_move(struct index *x, struct entry *entry, enum reach reach, enum state to)
{
        enum state from = entry->record->status.state;
        enum group old = group_of(from), new = group_of(to);
        struct driver_count *d = driver_of(x, entry->record);

        tree_remove(&x->states[from], &entry->in_state[reach]);
        tree_add(&x->states[to], &entry->in_state[reach], order_of(entry));
        d->counts[from]--;
        d->counts[to]++;
        if (old == new)
                return;
        tree_remove(&x->groups[old], &entry->in_group[reach]);
        tree_add(&x->groups[new], &entry->in_group[reach], order_of(entry));
        for (size_t i = 0; i < entry->n_links; i++) {
                struct bucket *b = entry->links[i].buckets[reach];

                if (!b)
                        continue;
                tree_remove(&b->groups[old], &entry->links[i].nodes[reach]);
                tree_add(&b->groups[new], &entry->links[i].nodes[reach], order_of(entry));
        }
}

/* --- all records --- */

void records_init(struct records *rs)
{
        tree_init(&rs->by_id);
        tree_init_from(&rs->tenants, &rs->by_id);
        rs->all = index_new(&rs->by_id, STR_NULL);
}

void records_done(struct records *rs)
{
        struct tree_node *n;

        while ((n = tree_nth(&rs->by_id, 0)))
                records_remove(rs, container_of(n, struct entry, by_id));
        index_free(rs->all);
}

/* --- lookups --- */

struct entry *records_get(const struct records *rs, struct str id)
{
        struct tree_node *n = tree_get(&rs->by_id, id);

        return n ? container_of(n, struct entry, by_id) : NULL;
}

struct entry *records_after(const struct records *rs, struct str id)
{
        struct tree_node *n = tree_after(&rs->by_id, id);

        return n ? container_of(n, struct entry, by_id) : NULL;
}

static struct index *find_tenant(const struct records *rs, struct str name)
{
        struct tree_node *n = tree_get(&rs->tenants, name);

        return n ? container_of(n, struct index, by_name) : NULL;
}

const struct index *records_index(const struct records *rs, struct str tenant)
{
        return tenant.p ? find_tenant(rs, tenant) : rs->all;
}

bool records_same(const struct sandbox *a, const struct sandbox *b)
{
        return str_eq(a->id, b->id) && str_eq(a->tenant, b->tenant) && str_eq(a->node, b->node)
               && str_eq(a->driver, b->driver) && a->created_ms == b->created_ms
               && owner_eq(&a->owner, &b->owner);
}

/* --- changes --- */

static void set_links(struct entry *entry, size_t n)
{
        free(entry->links);
        entry->links = n > 0 ? xcalloc(n, sizeof(*entry->links)) : NULL;
        entry->n_links = n;
}

struct entry *records_add(struct records *rs, struct sandbox *record, uint64_t version)
{
        struct entry *entry = xcalloc(1, sizeof(*entry) + ORDER_TIME + record->id.n);
        /* Newest first; the model refuses negative times. */
        uint64_t backwards = htobe64(UINT64_MAX - (uint64_t) record->created_ms);

        static_assert(sizeof(backwards) == ORDER_TIME, "the time's part of the key");
        entry->record = record;
        entry->version = version;
        entry->order_n = ORDER_TIME + record->id.n;
        memcpy(entry->order, &backwards, ORDER_TIME);
        memcpy(entry->order + ORDER_TIME, record->id.p, record->id.n);
        set_links(entry, record->metadata.n);
        entry->tenant = find_tenant(rs, record->tenant);
        if (!entry->tenant) {
                entry->tenant = index_new(&rs->by_id, record->tenant);
                tree_add(&rs->tenants, &entry->tenant->by_name,
                         str_of(entry->tenant->name, record->tenant.n));
        }
        tree_add(&rs->by_id, &entry->by_id, str_of(entry->order + ORDER_TIME, record->id.n));
        index_add(rs->all, entry, REACH_ALL);
        index_add(entry->tenant, entry, REACH_TENANT);
        return entry;
}

void records_remove(struct records *rs, struct entry *entry)
{
        struct index *tenant = entry->tenant;

        index_remove(rs->all, entry, REACH_ALL);
        index_remove(tenant, entry, REACH_TENANT);
        tree_remove(&rs->by_id, &entry->by_id);
        if (tenant->groups[GROUP_LIVE].n == 0 && tenant->groups[GROUP_FINAL].n == 0) {
                tree_remove(&rs->tenants, &tenant->by_name);
                index_free(tenant);
        }
        sandbox_free(entry->record);
        free(entry->links);
        free(entry);
}

static bool labels_eq(const struct json_map *a, const struct json_map *b)
{
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!str_eq(a->items[i].key, b->items[i].key)
                    || !str_eq(a->items[i].value, b->items[i].value))
                        return false;
        return true;
}

void records_replace(struct records *rs, struct entry *entry, struct sandbox *record,
                     uint64_t version)
{
        struct sandbox *old = entry->record;

        ASSERT(records_same(old, record));
        if (!labels_eq(&old->metadata, &record->metadata)) {
                index_remove(rs->all, entry, REACH_ALL);
                index_remove(entry->tenant, entry, REACH_TENANT);
                entry->record = record;
                set_links(entry, record->metadata.n);
                index_add(rs->all, entry, REACH_ALL);
                index_add(entry->tenant, entry, REACH_TENANT);
        } else if (old->status.state != record->status.state) {
                index_move(rs->all, entry, REACH_ALL, record->status.state);
                index_move(entry->tenant, entry, REACH_TENANT, record->status.state);
        }
        entry->record = record;
        entry->version = version;
        sandbox_free(old);
}
