/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/registry.h"

#include "base/base.h"
#include "base/sha256.h"
#include "registry/registry_impl.h"

#define UNCERTAIN_WRITES_MAX 1024 /* further ones are resolved by the next start */

struct uncertain_write {
        struct tree_node by_id;
        uint8_t digest[SHA256_SIZE];
        char id[SANDBOX_ID_MAX];
};

/* --- life cycle --- */

struct registry *registry_new(struct net_loop *loop, struct store *store,
                              const struct registry_config *config)
{
        struct registry *r = xnew(struct registry);

        r->loop = loop;
        r->store = store;
        r->clock = config->clock;
        r->node = xstrndup_str(config->node);
        r->nodes = config->nodes;
        ids_init(&r->ids);
        records_init(&r->records);
        tree_init(&r->writing);
        tree_init(&r->uncertain_writes);
        r->locks = locks_new(r);
        tree_init(&r->snapshots.by_id);
        tree_init(&r->snapshots.in_order);
        return r;
}

void registry_free(struct registry *r)
{
        struct tree_node *n;

        if (!r)
                return;
        ASSERT(r->under_way == 0);
        locks_free(r->locks);
        while ((n = tree_take_any(&r->uncertain_writes)))
                free(container_of(n, struct uncertain_write, by_id));
        records_done(&r->records);
        snapshots__done(r);
        free(r->node);
        free(r);
}

/* --- operations --- */

void request_begin(struct registry *r, struct registry_req *req, op_done_fn *step, void *impl)
{
        req->err = (struct err){ 0 };
        req->_impl = impl;
        r->under_way++;
        op_wrap(&req->op, &req->_wrap, step);
        /* The registry waits for nothing but the store, which always finishes: there is no cancel. */
        op_begin(&req->op, r->loop, /* cancel= */ NULL);
}

void writing_begin(struct registry *r, struct writing *w, struct str id)
{
        ASSERT(id.n <= sizeof(w->id));
        memcpy(w->id, id.p, id.n);
        tree_add(&r->writing, &w->by_id, str_of(w->id, id.n)); /* asserts that there is none */
}

void writing_end(struct registry *r, struct writing *w)
{
        tree_remove(&r->writing, &w->by_id);
}

bool writing_has(const struct registry *r, struct str id)
{
        return tree_get(&r->writing, id) != NULL;
}

/* --- uncertain writes --- */

static struct uncertain_write *find_uncertain_write(const struct registry *r, struct str id)
{
        struct tree_node *n = tree_get(&r->uncertain_writes, id);

        return n ? container_of(n, struct uncertain_write, by_id) : NULL;
}

void uncertain_write_add(struct registry *r, struct str id, struct str value)
{
        struct uncertain_write *u = find_uncertain_write(r, id);

        if (!u && r->uncertain_writes.n >= UNCERTAIN_WRITES_MAX)
                return;
        if (!u) {
                u = xnew(struct uncertain_write);
                memcpy(u->id, id.p, id.n);
                tree_add(&r->uncertain_writes, &u->by_id, str_of(u->id, id.n));
        }
        sha256(value.p, value.n, u->digest);
}

bool uncertain_write_matches(const struct registry *r, struct str id, struct str value)
{
        const struct uncertain_write *u = find_uncertain_write(r, id);
        uint8_t digest[SHA256_SIZE];

        if (!u)
                return false;
        sha256(value.p, value.n, digest);
        return memcmp(digest, u->digest, sizeof(digest)) == 0;
}

void uncertain_write_forget(struct registry *r, struct str id)
{
        struct uncertain_write *u = find_uncertain_write(r, id);

        if (!u)
                return;
        tree_remove(&r->uncertain_writes, &u->by_id);
        free(u);
}

/* --- reading --- */

int registry__read_record(struct str key, struct str value, struct sandbox **ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        char own[RECORD_KEY_SIZE];
        struct err ignored;
        int r = sandbox_decode(value, &s, e);

        if (r == ERR_RETURN(ERR_UNSUPPORTED))
                return r;
        if (r < 0 && sandbox_decode_purista(value, &s, &ignored) < 0)
                return err_set(e, ERR_INVALID, "%s", e->message);
        if (!str_eq(record_key(s->id, own), key))
                return err_set(e, ERR_INVALID, "the record of '%.*s' is under another key",
                               STR_ARG(s->id));
        *ret = TAKE_PTR(s);
        return 0;
}

const struct sandbox *registry_peek(const struct registry *r, struct str id)
{
        struct entry *entry = records_get(&r->records, id);

        return entry ? entry->record : NULL;
}

const struct sandbox *registry_next(const struct registry *r, struct str after)
{
        struct entry *entry = records_after(&r->records, after);

        return entry ? entry->record : NULL;
}
