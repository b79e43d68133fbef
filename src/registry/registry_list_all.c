/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/labels.h"
#include "registry/registry_impl.h"

/*
 * A list with the sandboxes of other nodes. Their records are not in memory: the store is walked, and those that match
 * are kept in the same indexes as our own. Then the two are merged.
 */

struct list_all {
        struct registry *r;
        struct registry_list_all *out;
        struct store_walk walk;
        struct records others;
        struct registry_page *pages; /* of the two sides */
};

/* --- merging --- */

struct side {
        const struct records *records;
        struct registry_page *page;
        struct registry_query query;
        unsigned at;
};

static void next_page(struct side *s)
{
        records_list(s->records, &s->query, s->page);
        s->query.skip += s->page->n;
        s->at = 0;
}

static const struct sandbox *head_of(struct side *s)
{
        if (s->at == s->page->n && s->page->n == s->query.limit)
                next_page(s);
        return s->at < s->page->n ? s->page->items[s->at] : NULL;
}

/* As in each of the two: newest first, then by id. */
static const struct sandbox *take_first(struct side sides[static 2])
{
        const struct sandbox *a = head_of(&sides[0]), *b = head_of(&sides[1]);
        bool take_a = !b
                      || (a
                          && (a->created_ms != b->created_ms ? a->created_ms > b->created_ms
                                                             : str_cmp(a->id, b->id) < 0));
        struct side *from = &sides[take_a ? 0 : 1];

        if (!a && !b)
                return NULL;
        return from->page->items[from->at++];
}

static void merge(struct list_all *x)
{
        const struct registry_query *q = &x->out->query;
        struct registry_page *page = &x->out->page;
        struct side sides[2] = {
                { &x->r->records, &x->pages[0], *q, 0 },
                { &x->others, &x->pages[1], *q, 0 },
        };
        const struct sandbox *s;
        uint64_t position = 0;

        for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
                sides[i].query.skip = 0;
                sides[i].query.limit = REGISTRY_PAGE_MAX;
                next_page(&sides[i]);
                page->total += sides[i].page->total;
        }
        if (q->skip >= page->total)
                return;
        for (; page->n < q->limit && (s = take_first(sides)); position++)
                if (position >= q->skip)
                        page->items[page->n++] = s;
}

/* --- the records of other nodes --- */

static void page_read(struct op *op, int result)
{
        struct store_walk *walk = store_walk_of(op, result);
        struct list_all *x = container_of(walk, struct list_all, walk);
        const struct registry_query *q = &x->out->query;

        if (result < 0)
                x->out->req.err = walk->scan.req.err;
        for (unsigned i = 0; result == 0 && i < walk->scan.n; i++) {
                const struct store_entry *e = &walk->scan.entries[i];
                scoped(sandbox_freep) struct sandbox *s = NULL;
                struct err err = { 0 };

                if (registry__read_record(e->key, e->value, &s, &err) < 0 || sandbox_is_foreign(s)
                    || is_ours(x->r, s) || (q->tenant.p && !str_eq(s->tenant, q->tenant))
                    || records_get(&x->others, s->id) || !labels_match(&s->metadata, &q->metadata))
                        continue;
                x->out->page.examined++;
                if (x->others.by_id.n < REGISTRY_OTHERS_MAX)
                        (void) records_add(&x->others, TAKE_PTR(s), e->version);
                else
                        result = err_set(&x->out->req.err, ERR_UNAVAILABLE,
                                         "other nodes have more than %d such sandboxes; narrow the "
                                         "list by a label",
                                         REGISTRY_OTHERS_MAX);
        }
        if (result < 0 || !store_walk_next(walk))
                op_finish_now(&x->out->req.op, result);
}

/* Our own records may have changed since the walk began: they are merged right before `done`. */
static void list_all_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct list_all *x = req->_impl;

        if (result == 0)
                merge(x);
        x->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        records_done(&x->others);
        store_walk_done(&x->walk);
        free(x->pages);
        free(x);
}

void registry_list_all(struct registry *r, struct registry_list_all *l)
{
        struct list_all *x = xnew(struct list_all);

        ASSERT(l->query.limit >= 1 && l->query.limit <= REGISTRY_PAGE_MAX);
        l->page.n = 0;
        l->page.total = l->page.examined = 0;
        x->r = r;
        x->out = l;
        x->pages = xcalloc(2, sizeof(*x->pages));
        records_init(&x->others);
        request_begin(r, &l->req, list_all_step, x);
        store_walk(r->store, &x->walk, STR(RECORD_PREFIX), page_read);
}
