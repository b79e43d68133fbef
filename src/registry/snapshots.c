/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/snapshots.h"

#include <endian.h>

#include "base/base.h"
#include "model/text.h"
#include "registry/registry_impl.h"

/* A snapshot in memory, ordered like sandboxes (registry/records.h): by time counted backwards, then by id. */
struct snapshot_entry {
        struct tree_node by_id, in_order;
        struct snapshot *record;
        uint64_t version; /* in the store */
        bool writing;
        size_t order_n;
        char order[ORDER_TIME + SANDBOX_ID_MAX];
};

static struct snapshot_entry *kept_of(struct tree_node *n)
{
        return n ? container_of(n, struct snapshot_entry, by_id) : NULL;
}

static void keep(struct registry *r, struct snapshot *record, uint64_t version)
{
        struct snapshot_entry *k = xnew(struct snapshot_entry);
        uint64_t backwards = htobe64(UINT64_MAX - (uint64_t) record->created_ms);

        k->record = record;
        k->version = version;
        memcpy(k->order, &backwards, ORDER_TIME);
        memcpy(k->order + ORDER_TIME, record->id.p, record->id.n);
        k->order_n = ORDER_TIME + record->id.n;
        tree_add(&r->snapshots.by_id, &k->by_id,
                 str_of(k->order + ORDER_TIME, k->order_n - ORDER_TIME));
        tree_add(&r->snapshots.in_order, &k->in_order, str_of(k->order, k->order_n));
}

static void forget(struct registry *r, struct snapshot_entry *k)
{
        tree_remove(&r->snapshots.by_id, &k->by_id);
        tree_remove(&r->snapshots.in_order, &k->in_order);
        snapshot_free(k->record);
        free(k);
}

void snapshots__done(struct registry *r)
{
        for (struct tree_node *n; (n = tree_nth(&r->snapshots.by_id, 0));)
                forget(r, kept_of(n));
}

/* --- reading the store --- */

static int read_snapshot(struct str key, struct str value, struct snapshot **ret)
{
        scoped(snapshot_freep) struct snapshot *s = NULL;
        struct err e;

        if (snapshot_decode(value, &s, &e) < 0
            || !str_eq(str_skip(key, strlen(SNAPSHOT_PREFIX)), s->id))
                return -EBADMSG;
        *ret = TAKE_PTR(s);
        return 0;
}

enum snapshot_loaded snapshots__take(struct registry *r, const struct store_entry *e)
{
        struct snapshot *s;

        if (read_snapshot(e->key, e->value, &s) < 0)
                return SNAPSHOT_DAMAGED;
        if (!str_eq(s->node, str_from(r->node))) {
                snapshot_free(s);
                return SNAPSHOT_FOREIGN;
        }
        keep(r, s, e->version);
        return SNAPSHOT_LOADED;
}

/* --- writing --- */

struct change {
        struct registry *r;
        struct registry_req *req;
        struct snapshot_entry *kept; /* in memory, or NULL */
        struct snapshot *record;     /* to be written, or as read */
        enum { CHANGE_NOTHING, CHANGE_ADD, CHANGE_REPLACE, CHANGE_REMOVE } effect;
        uint64_t version;
        struct buf value;
        struct verified_write verified;
        size_t key_n;
        char key[sizeof(SNAPSHOT_PREFIX) + SANDBOX_ID_MAX];
};

static void change_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct change *c = req->_impl;
        struct snapshot_entry *entry = c->kept;

        if (entry)
                entry->writing = false;
        if (c->effect == CHANGE_ADD) {
                keep(c->r, TAKE_PTR(c->record), c->version);
        } else if (c->effect == CHANGE_REPLACE && entry) {
                snapshot_free(entry->record);
                entry->record = TAKE_PTR(c->record);
                entry->version = c->version;
        } else if (c->effect == CHANGE_REMOVE && entry) {
                forget(c->r, entry);
        }
        c->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        snapshot_free(c->record);
        buf_done(&c->value);
        free(c);
}

static struct change *change_begin(struct registry *r, struct snapshots_write *w, struct str id,
                                   struct snapshot *record)
{
        struct change *c = xnew(struct change);
        struct buf key;

        c->r = r;
        c->req = &w->req;
        c->record = record;
        buf_init(&c->value, STORE_VALUE_MAX);
        request_begin(r, &w->req, change_step, c);
        if (!sandbox_id_is_valid(id))
                return c; /* there can be no such record */
        buf_init_fixed(&key, c->key, sizeof(c->key));
        buf_add_str(&key, STR(SNAPSHOT_PREFIX));
        buf_add_str(&key, id);
        c->key_n = key.n;
        c->kept = kept_of(tree_get(&r->snapshots.by_id, id));
        if (c->kept) {
                ASSERT(!c->kept->writing);
                c->kept->writing = true;
        }
        return c;
}

static struct str key_of(const struct change *c)
{
        return str_of(c->key, c->key_n);
}

static int encode(struct change *c)
{
        struct err *e = &c->req->err;
        int r = snapshot_check(c->record, e);

        if (r < 0)
                return r;
        if (!str_eq(c->record->node, str_from(c->r->node)))
                return err_set(e, ERR_INVALID, "a snapshot of node %s", QUOTED(c->record->node));
        snapshot_encode(&c->value, c->record);
        if (buf_failed(&c->value))
                return err_set(e, ERR_TOO_LARGE, "the record of the snapshot is too long");
        return 0;
}

static void added(struct verified_write *s, int result)
{
        struct change *c = container_of(s, struct change, verified);

        if (result == 0) {
                c->version = s->version;
                c->effect = CHANGE_ADD;
        } else if (result == ERR_RETURN(ERR_CONFLICT)) {
                result = err_set(&c->req->err, ERR_EXISTS, "there is already such a snapshot");
        } else {
                c->req->err = s->err;
        }
        op_finish_now(&c->req->op, result);
}

void snapshots_add(struct registry *r, struct snapshots_write *w, struct snapshot *record)
{
        struct change *c = change_begin(r, w, record->id, record);
        int res = c->kept ? err_set(&w->req.err, ERR_EXISTS, "there is already such a snapshot")
                          : encode(c);

        if (res < 0) {
                op_finish_now(&c->req->op, res);
                return;
        }
        c->verified.done = added;
        verified_write_start(&c->verified, r->store, key_of(c), STORE_ABSENT, buf_str(&c->value));
}

static void updated(struct verified_write *s, int result)
{
        struct change *c = container_of(s, struct change, verified);
        struct snapshot *found;

        if (result == 0) {
                c->version = s->version;
                c->effect = CHANGE_REPLACE;
                return op_finish_now(&c->req->op, 0);
        }
        c->req->err = s->err;
        /* An earlier write of ours took effect after all, or another process wrote: what is in the store is the truth. */
        if (result == ERR_RETURN(ERR_CONFLICT) && s->found.p
            && read_snapshot(key_of(c), s->found, &found) == 0) {
                snapshot_free(c->record);
                c->record = found;
                c->version = s->found_version;
                c->effect = CHANGE_REPLACE;
        }
        return op_finish_now(&c->req->op, result);
}

void snapshots_update(struct registry *r, struct snapshots_write *w, struct snapshot *next)
{
        struct change *c = change_begin(r, w, next->id, next);
        const struct snapshot *old = c->kept ? c->kept->record : NULL;
        struct err *e = &w->req.err;
        int res;

        if (!old) {
                res = err_set(e, ERR_NOT_FOUND, "there is no such snapshot");
        } else if (!str_eq(old->tenant, next->tenant) || !str_eq(old->driver, next->driver)
                   || !str_eq(old->sandbox_id, next->sandbox_id)
                   || old->created_ms != next->created_ms) {
                res = err_set(e, ERR_INVALID,
                              "tenant, driver, sandbox and creation time cannot change");
        } else {
                next->version = old->version + 1;
                res = encode(c);
        }
        if (res < 0 || !c->kept)
                return op_finish_now(&w->req.op, res);
        c->verified.done = updated;
        return verified_write_start(&c->verified, r->store, key_of(c), c->kept->version,
                                    buf_str(&c->value));
}

static void removed(struct verified_write *s, int result)
{
        struct change *c = container_of(s, struct change, verified);

        if (result == 0)
                c->effect = CHANGE_REMOVE;
        else
                c->req->err = s->err;
        op_finish_now(&c->req->op, result);
}

void snapshots_remove(struct registry *r, struct snapshots_write *w, struct str id)
{
        struct change *c = change_begin(r, w, id, NULL);

        if (!c->kept) {
                op_finish_now(&c->req->op, 0);
                return;
        }
        c->verified.done = removed;
        verified_write_start(&c->verified, r->store, key_of(c), STORE_ANY, STR_NULL);
}

/* --- queries --- */

const struct snapshot *snapshots_get(const struct registry *r, struct str id)
{
        const struct snapshot_entry *k = kept_of(tree_get(&r->snapshots.by_id, id));

        return k ? k->record : NULL;
}

const struct snapshot *snapshots_next(const struct registry *r, struct str after)
{
        const struct snapshot_entry *k = kept_of(tree_after(&r->snapshots.by_id, after));

        return k ? k->record : NULL;
}

static bool matches(const struct snapshot *s, const struct snapshots_query *q)
{
        return (!q->tenant.p || str_eq(s->tenant, q->tenant))
               && (!q->sandbox_id.p || str_eq(s->sandbox_id, q->sandbox_id))
               && (!q->name.p || (s->name.p && str_eq(s->name, q->name)))
               && (!q->states || (q->states & STATE_SET((unsigned) s->status.state)));
}

size_t snapshots_count(const struct registry *r, struct str tenant)
{
        const struct snapshots_query q = { .tenant = tenant };
        const struct tree *all = &r->snapshots.by_id;
        size_t count = 0;

        if (!tenant.p)
                return all->n;
        for (struct tree_node *n = tree_nth(all, 0); n; n = tree_after(all, n->key))
                count += matches(kept_of(n)->record, &q);
        return count;
}

void snapshots_list(const struct registry *r, const struct snapshots_query *q,
                    struct snapshots_page *ret)
{
        const struct tree *all = &r->snapshots.in_order;

        ASSERT(q->limit >= 1 && q->limit <= REGISTRY_PAGE_MAX);
        ret->n = 0;
        ret->total = 0;
        for (struct tree_node *n = tree_nth(all, 0); n; n = tree_after(all, n->key)) {
                const struct snapshot *s = container_of(n, struct snapshot_entry, in_order)->record;

                if (!matches(s, q))
                        continue;
                if (ret->total >= q->skip && ret->n < q->limit)
                        ret->items[ret->n++] = s;
                ret->total++;
        }
}
