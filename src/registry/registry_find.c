/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/registry_impl.h"

struct find {
        struct registry *r;
        struct registry_get *get;
        struct sandbox *record; /* read from the store */
        const struct owner *owner;
        uint64_t index_version;
        struct str older; /* the key without a scope, or null */
        bool in_older;    /* it was, or is being, read */
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

static int not_found(struct registry_req *req)
{
        return err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox");
}

/* What is in memory is looked up at the very end: it may have changed since. */
static void find_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct find *f = req->_impl;

        f->get->record = result == 0 ? f->record : NULL;
        if (result == 0 && !f->record)
                f->get->record = registry_peek(f->r, id_of(f));
        if (result == 0 && !f->get->record)
                result = not_found(req);
        request_end(f->r, req, result);
        sandbox_free(f->record);
        free(f);
}

static void finish(struct find *f, int result)
{
        op_finish_now(&f->get->req.op, result);
}

static void finish_not_found(struct find *f)
{
        finish(f, not_found(&f->get->req));
}

static struct find *find_begin(struct registry *r, struct registry_get *g)
{
        struct find *f = xnew(struct find);

        f->r = r;
        f->get = g;
        g->record = NULL;
        request_begin(r, &g->req, find_end, f);
        return f;
}

static op_done_fn index_read;

/* There is none with a scope. */
static void try_older(struct find *f)
{
        struct str key = f->older;

        if (f->in_older || !key.p) {
                finish_not_found(f);
                return;
        }
        f->in_older = true;
        op_init(&f->read.req.op, index_read);
        store_get(f->r->store, &f->read, key);
}

/* The index means nothing: it points to nothing, or to somebody else. */
static void repair(struct find *f)
{
        sandbox_free(f->record);
        f->record = NULL;
        if (!f->in_older && !f->get->unlocked)
                release_owner(f->r, f->owner, f->index_version);
        try_older(f);
}

static void record_read(struct op *op, int result)
{
        struct find *f = container_of(op, struct find, read.req.op);
        struct err e = { 0 };
        bool unknown;
        int r;

        if (result == ERR_RETURN(ERR_NOT_FOUND) && f->owner) {
                repair(f);
                return;
        }
        if (result < 0) {
                f->get->req.err = f->read.req.err;
                finish(f, result);
                return;
        }
        r = registry__read_record(f->read.key, f->read.value, &f->record, &e);
        unknown = r == ERR_RETURN(ERR_UNSUPPORTED);
        if (f->owner && !unknown && (r < 0 || !is_bound_to(f->record, f->owner)))
                repair(f);
        else if (r < 0 || uncertain_write_matches(f->r, id_of(f), f->read.value)
                 || writing_has(f->r, id_of(f)))
                finish_not_found(f); /* not readable, or not acknowledged */
        else
                finish(f, 0);
}

static void read_it(struct find *f)
{
        op_init(&f->read.req.op, record_read);
        store_get(f->r->store, &f->read, record_key(id_of(f), f->key));
}

static void set_id(struct find *f, struct str id)
{
        memcpy(f->id, id.p, id.n);
        f->id_n = id.n;
}

void registry_get(struct registry *r, struct registry_get *g, struct str id)
{
        struct find *f = find_begin(r, g);

        if (!sandbox_id_is_valid(id)) {
                finish_not_found(f);
                return;
        }
        set_id(f, id);
        if (registry_peek(r, id))
                finish(f, 0);
        else
                read_it(f);
}

/* --- by owner --- */

static void index_read(struct op *op, int result)
{
        struct find *f = container_of(op, struct find, read.req.op);
        const struct sandbox *s;
        struct str id;

        if (result == ERR_RETURN(ERR_NOT_FOUND)) {
                try_older(f);
                return;
        }
        if (result < 0) {
                f->get->req.err = f->read.req.err;
                finish(f, result);
                return;
        }
        f->index_version = f->read.version;
        id = index_id(f->read.value);
        if (!id.p) {
                repair(f);
                return;
        }
        set_id(f, id);
        s = registry_peek(f->r, id_of(f));
        if (s && is_bound_to(s, f->owner))
                finish(f, 0);
        else if (s)
                repair(f);
        else if (writing_has(f->r, id_of(f)))
                finish_not_found(f); /* its record is on the way */
        else
                read_it(f);
}

void registry_find_by_owner(struct registry *r, struct registry_get *g, const struct owner *owner)
{
        struct find *f = find_begin(r, g);
        struct buf key;
        int result;

        result = owner_check(owner, &g->req.err);
        if (result < 0) {
                finish(f, result);
                return;
        }
        f->owner = owner;
        buf_init_fixed(&key, f->index_key, sizeof(f->index_key));
        add_owner_key(&key, OWNER_PREFIX, owner);
        f->older = legacy_owner_key(buf_str(&key), owner);
        op_init(&f->read.req.op, index_read);
        store_get(r->store, &f->read, buf_str(&key));
}
