/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/base.h"
#include "store/store_impl.h"

/*
 * A request is started, queued, taken by the backend, finished, done. The facade wraps the operation (net/op.h): it takes the
 * result out of the operation before `done`, which may free it, and frees the result afterwards.
 */

/* --- life cycle --- */

/* One step further, if nothing is in the way: the backend is closed first, then the operation is finished. */
static void close_go_on(struct store *s)
{
        if (!s->_close || s->_under_way > 0)
                return;
        if (!s->_close_begun) {
                s->_close_begun = true;
                if (s->ops->close)
                        s->ops->close(s);
                else
                        store_closed(s);
        } else if (s->_close_ended && s->_close->op.state == OP_RUNNING) {
                op_finish(&s->_close->op, 0);
        }
}

void store_closed(struct store *s)
{
        s->_close_ended = true;
        close_go_on(s);
}

static void close_done(struct op *op, int result)
{
        struct store_close *c = container_of(op, struct store_close, op);
        struct store *s = c->_store;

        /* A request was started after the store was closed; its refusal is still queued. */
        if (s->_under_way > 0) {
                op_begin(op, s->loop, /* cancel= */ NULL);
                return;
        }
        net_task_cancel(&s->_task);
        s->ops->free(s);
        op_unwrap(op, &c->_wrap, result);
}

static void run_task(struct net_task *t)
{
        struct store *s = container_of(t, struct store, _task);

        if (!list_empty(&s->_queue))
                s->ops->run(s);
        close_go_on(s);
}

void store_init(struct store *s, const struct store_ops *ops, struct net_loop *loop)
{
        *s = (struct store){ .ops = ops, .loop = loop };
        list_init(&s->_queue);
        net_task_init(&s->_task, run_task);
}

void store_close(struct store *s, struct store_close *c)
{
        ASSERT(!s->_close);
        s->_close = c;
        c->_store = s;
        op_wrap(&c->op, &c->_wrap, close_done);
        op_begin(&c->op, s->loop, /* cancel= */ NULL);
        net_task_queue(s->loop, &s->_task);
}

const char *store_name(const struct store *s)
{
        return s->ops->name;
}

/* --- a request --- */

static void req_done(struct op *op, int result)
{
        struct store_req *req = container_of(op, struct store_req, op);
        struct store *s = req->_store;
        struct buf out = req->_out;
        struct store_entry *entries = NULL;

        if (req->_call == STORE_CALL_SCAN)
                entries = STORE_AS(scan, req)->entries;
        req->_out = (struct buf){ 0 };
        op_unwrap(op, &req->_wrap, result); /* req may be gone, or in progress again */
        buf_done(&out);
        free(entries);
        s->_under_way--;
        close_go_on(s);
}

void store_finish(struct store_req *req, int result)
{
        const char *base = buf_str(&req->_out).p;
        struct store_scan *sc = req->_call == STORE_CALL_SCAN ? STORE_AS(scan, req) : NULL;

        ASSERT(result == 0 || result == ERR_RETURN(req->err.code));
        if (result < 0)
                store_result_reset(req);
        else if (req->_call == STORE_CALL_GET)
                STORE_AS(get, req)->value = buf_str(&req->_out);
        /* Entries point into a buffer that moves while it grows, so the views are set at the end. */
        for (unsigned i = 0; sc && i < sc->n; i++) {
                struct store_entry *entry = &sc->entries[i];

                entry->key.p = base;
                entry->value.p = base + entry->key.n;
                base += entry->key.n + entry->value.n;
        }
        op_finish_now(&req->op, result);
}

static void req_cancel(struct op *op)
{
        struct store_req *req = container_of(op, struct store_req, op);
        struct store *s = req->_store;

        if (req->_taken) {
                if (s->ops->cancel)
                        s->ops->cancel(s, req);
                return;
        }
        list_remove(&req->_node);
        store_finish(req, err_set(&req->err, ERR_CANCELED, "canceled before it was begun"));
}

struct store_req *store_next(struct store *s)
{
        struct list *first = list_first(&s->_queue);
        struct store_req *req;

        if (!first)
                return NULL;
        list_remove(first);
        req = container_of(first, struct store_req, _node);
        req->_taken = true;
        return req;
}

void store_again(struct store *s)
{
        if (!list_empty(&s->_queue))
                net_task_queue(s->loop, &s->_task);
}

/* --- starting --- */

struct str store_req_key(const struct store_req *req)
{
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                return STORE_AS(get, req)->key;
        case STORE_CALL_PUT:
                return STORE_AS(put, req)->key;
        case STORE_CALL_REMOVE:
                return STORE_AS(remove, req)->key;
        case STORE_CALL_CAS:
                return STORE_AS(cas, req)->key;
        case STORE_CALL_SCAN:
        case STORE_CALL_MAX_:
        default:
                return STR_NULL;
        }
}

struct str store_req_value(const struct store_req *req)
{
        if (req->_call == STORE_CALL_PUT)
                return STORE_AS(put, req)->value;
        if (req->_call == STORE_CALL_CAS)
                return STORE_AS(cas, req)->value;
        return STR_NULL;
}

static int check_arguments(struct store_req *req)
{
        struct str key = store_req_key(req), value = store_req_value(req);

        if (req->_call == STORE_CALL_SCAN) {
                if (STORE_AS(scan, req)->limit == 0)
                        return err_set(&req->err, ERR_INVALID, "scan of no entries");
                return 0;
        }
        if (key.n == 0)
                return err_set(&req->err, ERR_INVALID, "a key must not be empty");
        if (key.n > STORE_KEY_MAX)
                return err_set(&req->err, ERR_TOO_LARGE, "a key of %zu bytes: at most %zu", key.n,
                               STORE_KEY_MAX);
        if (value.n > STORE_VALUE_MAX)
                return err_set(&req->err, ERR_TOO_LARGE, "a value of %zu bytes: at most %zu",
                               value.n, STORE_VALUE_MAX);
        return 0;
}

void store_start(struct store *s, struct store_req *req)
{
        int r;

        req->err = (struct err){ 0 };
        req->_store = s;
        req->_taken = false;
        buf_init(&req->_out,
                 req->_call == STORE_CALL_SCAN ? STORE_SCAN_BYTES_MAX : STORE_VALUE_MAX);
        list_init(&req->_node);
        op_wrap(&req->op, &req->_wrap, req_done);
        s->_under_way++;
        op_begin(&req->op, s->loop, req_cancel);

        r = check_arguments(req);
        if (r == 0 && s->_close)
                r = err_set(&req->err, ERR_UNAVAILABLE, "the store is being closed");
        if (r < 0) {
                store_finish(req, r);
                return;
        }
        list_append(&s->_queue, &req->_node);
        net_task_queue(s->loop, &s->_task);
}

/* --- requests --- */

struct store_req *store_get_req(struct store_get *g, struct str key)
{
        g->req._call = STORE_CALL_GET;
        g->key = key;
        g->value = STR_NULL;
        g->version = 0;
        return &g->req;
}

struct store_req *store_put_req(struct store_put *p, struct str key, struct str value)
{
        p->req._call = STORE_CALL_PUT;
        p->key = key;
        p->value = value;
        p->version = 0;
        return &p->req;
}

struct store_req *store_remove_req(struct store_remove *r, struct str key, uint64_t expected)
{
        r->req._call = STORE_CALL_REMOVE;
        r->key = key;
        r->expected = expected;
        return &r->req;
}

struct store_req *store_cas_req(struct store_cas *c, struct str key, uint64_t expected,
                                struct str value)
{
        c->req._call = STORE_CALL_CAS;
        c->key = key;
        c->value = value;
        c->expected = expected;
        c->version = 0;
        return &c->req;
}

struct store_req *store_scan_req(struct store_scan *sc, struct str prefix, struct str after,
                                 unsigned limit)
{
        sc->req._call = STORE_CALL_SCAN;
        sc->prefix = prefix;
        sc->after = after;
        sc->limit = MIN_OF(limit, STORE_SCAN_MAX);
        sc->entries = NULL;
        sc->n = 0;
        sc->more = false;
        return &sc->req;
}

/* --- walks --- */

void store_walk(struct store *s, struct store_walk *w, struct str prefix, op_done_fn *page)
{
        buf_done(&w->_after);
        buf_init(&w->_after, STORE_KEY_MAX);
        w->_store = s;
        w->_prefix = prefix;
        op_init(&w->scan.req.op, page);
        store_start(s, store_scan_req(&w->scan, prefix, STR_NULL, STORE_WALK_PAGE));
}

struct store_walk *store_walk_of(struct op *op, int result)
{
        struct store_walk *w = container_of(op, struct store_walk, scan.req.op);

        buf_reset(&w->_after);
        w->_more = result == 0 && w->scan.more;
        if (w->_more)
                buf_add_str(&w->_after, w->scan.entries[w->scan.n - 1].key);
        return w;
}

bool store_walk_next(struct store_walk *w)
{
        if (!w->_more)
                return false;
        store_start(w->_store,
                    store_scan_req(&w->scan, w->_prefix, buf_str(&w->_after), STORE_WALK_PAGE));
        return true;
}

void store_walk_done(struct store_walk *w)
{
        buf_done(&w->_after);
}

/* --- results --- */

void store_result_reset(struct store_req *req)
{
        struct store_scan *sc;

        buf_done(&req->_out);
        if (req->_call != STORE_CALL_SCAN)
                return;
        sc = STORE_AS(scan, req);
        free(sc->entries);
        sc->entries = NULL;
        sc->n = 0;
        sc->more = false;
}

int store_get_set(struct store_get *g, struct str value, uint64_t version)
{
        buf_add_str(&g->req._out, value);
        if (buf_failed(&g->req._out))
                return err_set(&g->req.err, ERR_EXHAUSTED, "no memory for a value of %zu bytes",
                               value.n);
        g->version = version;
        return 0;
}

bool store_scan_add(struct store_scan *sc, struct store_entry entry)
{
        struct buf *out = &sc->req._out;

        if (sc->n == sc->limit || (sc->n > 0 && entry.key.n + entry.value.n > buf_room(out))) {
                sc->more = true;
                return false;
        }
        buf_add_str(out, entry.key);
        buf_add_str(out, entry.value);
        if (buf_failed(out))
                return false;
        if (!sc->entries)
                sc->entries = xcalloc(sc->limit, sizeof(*sc->entries));
        sc->entries[sc->n++] = entry;
        return true;
}

int store_scan_result(struct store_scan *sc)
{
        if (buf_failed(&sc->req._out))
                return err_set(&sc->req.err, ERR_EXHAUSTED, "no memory for a page of entries");
        return 0;
}

struct str store_scan_start(const struct store_scan *sc, bool *ret_exclusive)
{
        *ret_exclusive = sc->after.n > 0 && str_cmp(sc->after, sc->prefix) >= 0;
        return *ret_exclusive ? sc->after : sc->prefix;
}

int store_fail_conflict(struct store_req *req)
{
        return err_set(&req->err, ERR_CONFLICT, "the key does not have the expected version");
}

int store_fail_not_found(struct store_req *req)
{
        return err_set(&req->err, ERR_NOT_FOUND, "no such key");
}
