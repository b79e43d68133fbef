/* SPDX-License-Identifier: Apache-2.0 */

/* Lookups that may need the store: by id of any node, and by owner. */

#include "base/base.h"
#include "registry/registry_impl.h"

struct find {
        struct registry *r;
        struct registry_get *get;
        struct sandbox *record; /* read from the store */
        const struct owner *owner;
        uint64_t index_version;
        struct str legacy; /* the index key without a scope, or null */
        bool in_legacy;    /* it was, or is being, read */
        struct store_get read;
        size_t id_n;
        char id[SANDBOX_ID_MAX];
        char key[RECORD_KEY_SIZE];
        char index_key[OWNER_KEY_SIZE];
};

static struct str id_of(const struct find *f)
{
        return str_of(f->id, f->id_n);
}

/* Memory is consulted at the very end: it may have changed since. */
static void find_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct find *f = req->_impl;

        f->get->record = result == 0 ? f->record : NULL;
        if (result == 0 && !f->record)
                f->get->record = registry_peek(f->r, id_of(f));
        if (result == 0 && !f->get->record)
                result = ERR_RETURN(ERR_NOT_FOUND);
        if (result == ERR_RETURN(ERR_NOT_FOUND))
                (void) err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox");
        f->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        sandbox_free(f->record);
        free(f);
}

static struct find *find_begin(struct registry *r, struct registry_get *g)
{
        struct find *f = xnew(struct find);

        f->r = r;
        f->get = g;
        g->record = NULL;
        request_begin(r, &g->req, find_step, f);
        return f;
}

static op_done_fn index_read;

/* There is no index with this key; or it is stale: it points to nothing, or to a record of another owner. Tries the
 * index without a scope. */
static void next_index(struct find *f, bool stale)
{
        sandbox_freep(&f->record);
        if (stale && !f->in_legacy && !f->get->unlocked)
                release_owner(f->r, f->owner, f->index_version);
        if (f->in_legacy || !f->legacy.p)
                return op_finish_now(&f->get->req.op, ERR_RETURN(ERR_NOT_FOUND));
        f->in_legacy = true;
        op_init(&f->read.req.op, index_read);
        return store_start(f->r->store, store_get_req(&f->read, f->legacy));
}

static void record_read(struct op *op, int result)
{
        struct find *f = container_of(op, struct find, read.req.op);
        struct err e = { 0 };
        int r;

        if (result == ERR_RETURN(ERR_NOT_FOUND) && f->owner)
                return next_index(f, /* stale= */ true);
        if (result < 0) {
                f->get->req.err = f->read.req.err;
                return op_finish_now(&f->get->req.op, result);
        }
        r = registry__read_record(f->read.key, f->read.value, &f->record, &e);
        if (f->owner && r != ERR_RETURN(ERR_UNSUPPORTED)
            && (r < 0 || !is_bound_to(f->record, f->owner)))
                return next_index(f, /* stale= */ true);
        /* Not readable, or not acknowledged. */
        if (r < 0 || uncertain_write_matches(f->r, id_of(f), f->read.value)
            || writing_has(f->r, id_of(f)))
                result = ERR_RETURN(ERR_NOT_FOUND);
        return op_finish_now(&f->get->req.op, result);
}

void registry_get(struct registry *r, struct registry_get *g, struct str id)
{
        struct find *f = find_begin(r, g);

        if (!sandbox_id_is_valid(id))
                return op_finish_now(&g->req.op, ERR_RETURN(ERR_NOT_FOUND));
        memcpy(f->id, id.p, id.n);
        f->id_n = id.n;
        if (registry_peek(r, id))
                return op_finish_now(&g->req.op, 0);
        op_init(&f->read.req.op, record_read);
        return store_start(r->store, store_get_req(&f->read, record_key(id, f->key)));
}

/* --- by owner --- */

static void index_read(struct op *op, int result)
{
        struct find *f = container_of(op, struct find, read.req.op);
        const struct sandbox *s;
        struct str id;

        if (result == ERR_RETURN(ERR_NOT_FOUND))
                return next_index(f, /* stale= */ false);
        if (result < 0) {
                f->get->req.err = f->read.req.err;
                return op_finish_now(&f->get->req.op, result);
        }
        f->index_version = f->read.version;
        id = index_id(f->read.value);
        s = id.p ? registry_peek(f->r, id) : NULL;
        if (!id.p || (s && !is_bound_to(s, f->owner)))
                return next_index(f, /* stale= */ true);
        memcpy(f->id, id.p, id.n);
        f->id_n = id.n;
        if (s)
                return op_finish_now(&f->get->req.op, 0);
        if (writing_has(f->r, id)) /* being written */
                return op_finish_now(&f->get->req.op, ERR_RETURN(ERR_NOT_FOUND));
        op_init(&f->read.req.op, record_read);
        return store_start(f->r->store, store_get_req(&f->read, record_key(id_of(f), f->key)));
}

void registry_find_by_owner(struct registry *r, struct registry_get *g, const struct owner *owner)
{
        struct find *f = find_begin(r, g);
        struct buf key;
        int result = owner_check(owner, &g->req.err);

        if (result < 0)
                return op_finish_now(&g->req.op, result);
        f->owner = owner;
        buf_init_fixed(&key, f->index_key, sizeof(f->index_key));
        add_owner_key(&key, OWNER_PREFIX, owner);
        f->legacy = legacy_owner_key(buf_str(&key), owner);
        op_init(&f->read.req.op, index_read);
        return store_start(r->store, store_get_req(&f->read, buf_str(&key)));
}
