/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loading: three walks over the store. The records; the owner indexes, to learn which bound records have one; the
 * snapshots. At the end, bound records without an index get it back.
 */

#include "base/base.h"
#include "registry/registry_impl.h"

struct load {
        struct registry *r;
        struct registry_load *out;
        struct store_walk walk;
        size_t table; /* that is being read */
        struct claim claim;
        struct entry *entry; /* that gets its index back */
        struct buf damaged;
};

static void load_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct load *l = req->_impl;

        if (l->out->damaged > 0)
                l->out->damaged_key = buf_str(&l->damaged);
        l->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        store_walk_done(&l->walk);
        buf_done(&l->damaged);
        free(l);
}

static void load_fail(struct load *l, const struct err *e)
{
        l->out->req.err = *e;
        op_finish_now(&l->out->req.op, ERR_RETURN(e->code));
}

static void note_damaged(struct load *l, struct str key)
{
        if (l->out->damaged++ == 0)
                buf_add_str(&l->damaged, key);
}

/* --- entries of the store --- */

static void take_record(struct load *l, const struct store_entry *e)
{
        struct sandbox *s = NULL;
        struct err err = { 0 };

        if (registry__read_record(e->key, e->value, &s, &err) < 0) {
                note_damaged(l, e->key);
        } else if (is_ours(l->r, s)) {
                (void) records_add(&l->r->records, s, e->version);
                l->out->loaded++;
        } else {
                sandbox_free(s);
                l->out->foreign++;
        }
}

static void take_index(struct load *l, const struct store_entry *e)
{
        struct str id = index_id(e->value);
        struct entry *entry = id.p ? records_get(&l->r->records, id) : NULL;
        char storage[OWNER_KEY_SIZE];
        struct buf key;

        if (!entry || !entry->record->owner_bound)
                return;
        buf_init_fixed(&key, storage, sizeof(storage));
        add_owner_key(&key, OWNER_PREFIX, &entry->record->owner);
        if (str_eq(buf_str(&key), e->key))
                entry->owner_version = e->version;
}

static void take_snapshot(struct load *l, const struct store_entry *e)
{
        enum snapshot_loaded what = snapshots__take(l->r, e);

        if (what == SNAPSHOT_DAMAGED)
                note_damaged(l, e->key);
        l->out->loaded += what == SNAPSHOT_LOADED;
        l->out->foreign += what == SNAPSHOT_FOREIGN;
}

/* In this order: an index is compared with its record. */
static const struct {
        struct str prefix;
        void (*take)(struct load *l, const struct store_entry *e);
} tables[] = {
        { STR(RECORD_PREFIX), take_record },
        { STR(OWNER_PREFIX), take_index },
        { STR(SNAPSHOT_PREFIX), take_snapshot },
};

/* --- missing indexes --- */

static void restore_next(struct load *l);

static void index_restored(struct claim *c, int result)
{
        struct load *l = container_of(c, struct load, claim);

        if (result < 0 && result != ERR_RETURN(ERR_EXISTS))
                return load_fail(l, &c->err);
        /* ERR_EXISTS: another sandbox is bound to the owner by right; this one has no index. */
        l->entry->owner_version = result == 0 ? c->version : 0;
        return restore_next(l);
}

static void restore_next(struct load *l)
{
        struct str after = l->entry ? l->entry->record->id : STR_NULL;
        struct entry *entry;

        while ((entry = records_after(&l->r->records, after))) {
                after = entry->record->id;
                if (entry->record->owner_bound && entry->owner_version == 0)
                        break;
        }
        l->entry = entry;
        if (!entry)
                return op_finish_now(&l->out->req.op, 0);
        l->claim.done = index_restored;
        return claim_start(&l->claim, l->r, entry->record);
}

/* --- the walks --- */

static void page_read(struct op *op, int result)
{
        struct store_walk *walk = store_walk_of(op, result);
        struct load *l = container_of(walk, struct load, walk);

        if (result < 0)
                return load_fail(l, &walk->scan.req.err);
        for (unsigned i = 0; i < walk->scan.n; i++)
                tables[l->table].take(l, &walk->scan.entries[i]);
        if (store_walk_next(walk))
                return;
        if (++l->table < ARRAY_SIZE(tables))
                return store_walk(l->r->store, walk, tables[l->table].prefix, page_read);
        return restore_next(l);
}

void registry_load(struct registry *r, struct registry_load *l)
{
        struct load *x = xnew(struct load);

        ASSERT(r->records.by_id.n == 0);
        l->loaded = l->foreign = l->damaged = 0;
        l->damaged_key = STR_NULL;
        x->r = r;
        x->out = l;
        buf_init(&x->damaged, STORE_KEY_MAX);
        request_begin(r, &l->req, load_step, x);
        store_walk(r->store, &x->walk, tables[0].prefix, page_read);
}
