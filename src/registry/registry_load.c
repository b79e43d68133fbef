/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/registry_impl.h"

/*
 * Three walks over the store, a page at a time: the records; the owner indexes, to learn which bound records have
 * one; the snapshots. Between the last two, bound records without an index get it back. Pages are small because
 * decoding one holds up the loop.
 */

#define PAGE 100

struct load {
        struct registry *r;
        struct registry_load *out;
        struct store_scan scan;
        struct claim claim;
        struct entry *entry; /* that gets its index back */
        struct buf after;
        struct buf damaged;
};

static void load_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct load *l = req->_impl;

        if (l->out->damaged > 0)
                l->out->damaged_key = buf_str(&l->damaged);
        request_end(l->r, req, result);
        buf_done(&l->after);
        buf_done(&l->damaged);
        free(l);
}

static void finish(struct load *l, int result)
{
        op_finish_now(&l->out->req.op, result);
}

static void fail(struct load *l, const struct err *e)
{
        l->out->req.err = *e;
        finish(l, ERR_RETURN(e->code));
}

static void scan_on(struct load *l, const char *prefix, op_done_fn *done)
{
        op_init(&l->scan.req.op, done);
        store_scan(l->r->store, &l->scan, str_from(prefix), buf_str(&l->after), PAGE);
}

/* Whether there is another page; the cursor then stands before it. */
static bool turn_page(struct load *l)
{
        bool more = l->scan.more;

        buf_reset(&l->after);
        if (more)
                buf_add_str(&l->after, l->scan.entries[l->scan.n - 1].key);
        return more;
}

/* --- indexes that are missing --- */

static void restore_next(struct load *l);
static void load_snapshots(struct load *l);

static void index_restored(struct claim *c, int result)
{
        struct load *l = container_of(c, struct load, claim);

        if (result < 0 && result != ERR_RETURN(ERR_EXISTS)) {
                fail(l, &c->err);
                return;
        }
        /* Another sandbox has the place by right: this one goes without. */
        l->entry->owner_version = result == 0 ? c->version : 0;
        restore_next(l);
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
        if (!entry) {
                load_snapshots(l);
                return;
        }
        l->claim.done = index_restored;
        claim_start(&l->claim, l->r, entry->record);
}

/* --- snapshots --- */

static void note_damaged(struct load *l, struct str key)
{
        if (l->out->damaged++ == 0)
                buf_add_str(&l->damaged, key);
}

static void snapshots_read(struct op *op, int result)
{
        struct load *l = container_of(op, struct load, scan.req.op);

        if (result < 0) {
                fail(l, &l->scan.req.err);
                return;
        }
        for (unsigned i = 0; i < l->scan.n; i++) {
                enum snapshot_loaded what = snapshots__take(l->r, &l->scan.entries[i]);

                if (what == SNAPSHOT_DAMAGED)
                        note_damaged(l, l->scan.entries[i].key);
                l->out->loaded += what == SNAPSHOT_LOADED;
                l->out->foreign += what == SNAPSHOT_FOREIGN;
        }
        if (turn_page(l))
                scan_on(l, SNAPSHOT_PREFIX, snapshots_read);
        else
                finish(l, 0);
}

static void load_snapshots(struct load *l)
{
        buf_reset(&l->after);
        scan_on(l, SNAPSHOT_PREFIX, snapshots_read);
}

/* --- indexes that are there --- */

static void note_index(struct load *l, const struct store_entry *e)
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

static void indexes_read(struct op *op, int result)
{
        struct load *l = container_of(op, struct load, scan.req.op);

        if (result < 0) {
                fail(l, &l->scan.req.err);
                return;
        }
        for (unsigned i = 0; i < l->scan.n; i++)
                note_index(l, &l->scan.entries[i]);
        if (turn_page(l))
                scan_on(l, OWNER_PREFIX, indexes_read);
        else
                restore_next(l);
}

/* --- records --- */

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

static void records_read(struct op *op, int result)
{
        struct load *l = container_of(op, struct load, scan.req.op);

        if (result < 0) {
                fail(l, &l->scan.req.err);
                return;
        }
        for (unsigned i = 0; i < l->scan.n; i++)
                take_record(l, &l->scan.entries[i]);
        if (turn_page(l))
                scan_on(l, RECORD_PREFIX, records_read);
        else
                scan_on(l, OWNER_PREFIX, indexes_read);
}

void registry_load(struct registry *r, struct registry_load *l)
{
        struct load *job = xnew(struct load);

        ASSERT(r->records.by_id.n == 0);
        l->loaded = l->foreign = l->damaged = 0;
        l->damaged_key = STR_NULL;
        job->r = r;
        job->out = l;
        buf_init(&job->after, STORE_KEY_MAX);
        buf_init(&job->damaged, STORE_KEY_MAX);
        request_begin(r, &l->req, load_end, job);
        scan_on(job, RECORD_PREFIX, records_read);
}
