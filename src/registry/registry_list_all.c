/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/labels.h"
#include "registry/registry_impl.h"

/*
 * A list with what other nodes have. Their records are in no memory of ours: the store is walked, a page at a time, and
 * those that match are kept, in the same indexes as our own; then the two are merged.
 */

#define PAGE 100

struct list_all {
        struct registry *r;
        struct registry_list_all *out;
        struct store_scan scan;
        struct buf after;
        struct records others;
        struct registry_page *pages; /* of the two sides */
};

static void list_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct list_all *x = req->_impl;

        request_end(x->r, req, result);
        records_done(&x->others);
        buf_done(&x->after);
        free(x->pages);
        free(x);
}

/* --- merging --- */

struct side {
        const struct records *records;
        struct registry_page *page;
        struct registry_query query;
        unsigned at;
};

static void turn(struct side *s)
{
        records_list(s->records, &s->query, s->page);
        s->query.skip += s->page->n;
        s->at = 0;
}

static const struct sandbox *head_of(struct side *s)
{
        if (s->at == s->page->n && s->page->n == s->query.limit)
                turn(s);
        return s->at < s->page->n ? s->page->items[s->at] : NULL;
}

/* As in each of the two: newest first, then by id. */
static bool is_before(const struct sandbox *a, const struct sandbox *b)
{
        if (a->created_ms != b->created_ms)
                return a->created_ms > b->created_ms;
        return str_cmp(a->id, b->id) < 0;
}

static const struct sandbox *take_first(struct side sides[static 2])
{
        const struct sandbox *a = head_of(&sides[0]), *b = head_of(&sides[1]);
        struct side *from = !b || (a && is_before(a, b)) ? &sides[0] : &sides[1];

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
        uint64_t place = 0;

        for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
                sides[i].query.skip = 0;
                sides[i].query.limit = REGISTRY_PAGE_MAX;
                turn(&sides[i]);
                page->total += sides[i].page->total;
        }
        if (q->skip >= page->total)
                return;
        for (; page->n < q->limit && (s = take_first(sides)); place++)
                if (place >= q->skip)
                        page->items[page->n++] = s;
}

/* --- what others have --- */

static void scan(struct list_all *x);

/* 0, or a code in the request. */
static int note_record(struct list_all *x, const struct store_entry *e)
{
        const struct registry_query *q = &x->out->query;
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err err = { 0 };

        if (registry__read_record(e->key, e->value, &s, &err) < 0 || sandbox_is_foreign(s)
            || is_ours(x->r, s) || (q->tenant.p && !str_eq(s->tenant, q->tenant))
            || records_get(&x->others, s->id) || !labels_match(&s->metadata, &q->metadata))
                return 0;
        x->out->page.examined++;
        if (x->others.by_id.n >= REGISTRY_OTHERS_MAX)
                return err_set(&x->out->req.err, ERR_UNAVAILABLE,
                               "other nodes have more than %d such sandboxes: ask with a label",
                               REGISTRY_OTHERS_MAX);
        (void) records_add(&x->others, TAKE_PTR(s), e->version);
        return 0;
}

static void scanned(struct op *op, int result)
{
        struct list_all *x = container_of(op, struct list_all, scan.req.op);

        if (result < 0)
                x->out->req.err = x->scan.req.err;
        for (unsigned i = 0; result == 0 && i < x->scan.n; i++)
                result = note_record(x, &x->scan.entries[i]);
        buf_reset(&x->after);
        if (result == 0 && x->scan.more) {
                buf_add_str(&x->after, x->scan.entries[x->scan.n - 1].key);
                scan(x);
                return;
        }
        op_finish_now(&x->out->req.op, result);
}

static void scan(struct list_all *x)
{
        op_init(&x->scan.req.op, scanned);
        store_scan(x->r->store, &x->scan, STR(RECORD_PREFIX), buf_str(&x->after), PAGE);
}

/* Our own may have changed since the walk began: they are looked at right before they are told. */
static void list_done(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);

        if (result == 0)
                merge(req->_impl);
        list_end(op, result);
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
        buf_init(&x->after, STORE_KEY_MAX);
        request_begin(r, &l->req, list_done, x);
        scan(x);
}
