/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/records.h"

#include <endian.h>

#include "base/base.h"

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

/* --- looking --- */

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

static struct index *tenant_of(struct records *rs, struct str name)
{
        struct index *x = find_tenant(rs, name);

        if (x)
                return x;
        x = index_new(&rs->by_id, name);
        tree_add(&rs->tenants, &x->by_name, str_of(x->name, name.n));
        return x;
}

/* Times are never negative (the model sees to that); newest first. */
static void set_order(struct entry *entry)
{
        uint64_t backwards = htobe64(UINT64_MAX - (uint64_t) entry->record->created_ms);
        struct str id = entry->record->id;

        static_assert(sizeof(backwards) == ORDER_TIME, "the time's part of the key");
        memcpy(entry->order, &backwards, ORDER_TIME);
        memcpy(entry->order + ORDER_TIME, id.p, id.n);
}

static void set_links(struct entry *entry, size_t n)
{
        free(entry->links);
        entry->links = n > 0 ? xcalloc(n, sizeof(*entry->links)) : NULL;
        entry->n_links = n;
}

struct entry *records_add(struct records *rs, struct sandbox *record, uint64_t version)
{
        struct entry *entry = xcalloc(1, sizeof(*entry) + ORDER_TIME + record->id.n);

        entry->record = record;
        entry->version = version;
        entry->order_n = ORDER_TIME + record->id.n;
        set_order(entry);
        set_links(entry, record->metadata.n);
        entry->tenant = tenant_of(rs, record->tenant);
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
