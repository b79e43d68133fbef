/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/store_world.h"

#include <dirent.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

static struct err last_err;

const struct err *world_err(void)
{
        return &last_err;
}

/* --- life cycle --- */

void world_open(struct store_world *w, const struct store_maker *maker)
{
        *w = (struct store_world){ .maker = maker };
        check_i64_eq(net_loop_init(&w->loop, &clock_system), 0);
        (void) snprintf(w->dir, sizeof(w->dir), "%s/storeXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        (void) snprintf(w->path, sizeof(w->path), "%s/store.db", w->dir);
        if (maker)
                w->store = maker->open(w);
}

struct store *world_sqlite(struct store_world *w)
{
        struct store *s = NULL;
        struct err e = { 0 };

        if (store_sqlite_open(&w->loop, w->path, &s, &e) < 0)
                fail_msg("%s", e.message);
        return s;
}

struct closing {
        struct store_close close;
        bool done;
};

static void closing_done(struct op *op, int result)
{
        struct closing *c = container_of(op, struct closing, close.op);

        check_i64_eq(result, 0);
        c->done = true;
}

void world_close_store(struct store_world *w)
{
        struct closing c = { 0 };

        op_init(&c.close.op, closing_done);
        store_close(w->store, &c.close);
        world_until(w, c.done);
        w->store = NULL;
}

void world_pause(struct store_world *w)
{
        if (w->maker->pause)
                w->maker->pause(w);
        if (!w->maker->reopen)
                return;
        world_close_store(w);
        w->store = w->maker->open(w);
}

static void remove_directory(const char *path)
{
        DIR *d = opendir(path);

        for (struct dirent *entry; d && (entry = readdir(d));)
                (void) unlinkat(dirfd(d), entry->d_name, 0);
        if (d)
                (void) closedir(d);
        (void) rmdir(path);
}

void world_close(struct store_world *w)
{
        if (w->store)
                world_close_store(w);
        net_loop_done(&w->loop);
        remove_directory(w->dir);
}

/* --- calls that wait --- */

struct waiting {
        union {
                struct store_req req;
                struct store_get get;
                struct store_put put;
                struct store_remove remove;
                struct store_cas cas;
        };
        struct buf *value;
        bool done;
        int result;
};

static void waiting_done(struct op *op, int result)
{
        struct waiting *x = container_of(op, struct waiting, req.op);

        if (result == 0 && x->value) {
                buf_reset(x->value);
                buf_add_str(x->value, x->get.value);
        }
        x->result = result;
        x->done = true;
}

static int await(struct store_world *w, struct waiting *x)
{
        world_until(w, x->done);
        last_err = x->req.err;
        return x->result;
}

int world_put(struct store_world *w, struct str key, struct str value, uint64_t *ret_version)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        store_start(w->store, store_put_req(&x.put, key, value));
        if (await(w, &x) == 0 && ret_version)
                *ret_version = x.put.version;
        return x.result;
}

int world_cas(struct store_world *w, struct str key, uint64_t expected, struct str value,
              uint64_t *ret_version)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        store_start(w->store, store_cas_req(&x.cas, key, expected, value));
        if (await(w, &x) == 0 && ret_version)
                *ret_version = x.cas.version;
        return x.result;
}

int world_remove(struct store_world *w, struct str key, uint64_t expected)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        store_start(w->store, store_remove_req(&x.remove, key, expected));
        return await(w, &x);
}

int world_get(struct store_world *w, struct str key, struct buf *value, uint64_t *ret_version)
{
        struct waiting x = { .value = value };

        op_init(&x.req.op, waiting_done);
        store_start(w->store, store_get_req(&x.get, key));
        if (await(w, &x) == 0 && ret_version)
                *ret_version = x.get.version;
        return x.result;
}

/* --- scans --- */

struct scanning {
        struct store_scan *scan;
        struct store_scan own;
        struct buf *text;
        struct buf *last;
        bool keys_only;
        bool done;
        int result;
};

static void add_entry(struct scanning *x, const struct store_entry *entry)
{
        if (x->text->n > 0)
                buf_add_char(x->text, ' ');
        buf_add_str(x->text, entry->key);
        if (x->keys_only)
                return;
        buf_add_char(x->text, '=');
        buf_add_str(x->text, entry->value);
}

static void scanning_done(struct op *op, int result)
{
        struct scanning *x = container_of(op, struct scanning, own.req.op);

        for (unsigned i = 0; i < x->own.n; i++)
                add_entry(x, &x->own.entries[i]);
        if (x->last && x->own.n > 0) {
                buf_reset(x->last);
                buf_add_str(x->last, x->own.entries[x->own.n - 1].key);
        }
        x->result = result;
        x->done = true;
}

int world_page(struct store_world *w, struct store_scan *scan, struct buf *text)
{
        struct scanning x = { .text = text };

        buf_reset(text);
        op_init(&x.own.req.op, scanning_done);
        store_start(w->store, store_scan_req(&x.own, scan->prefix, scan->after, scan->limit));
        world_until(w, x.done);
        last_err = x.own.req.err;
        scan->n = x.own.n;
        scan->more = x.own.more;
        return x.result;
}

void world_keys(struct store_world *w, struct str prefix, unsigned limit, struct buf *text)
{
        struct buf last;
        struct scanning x = { .text = text, .last = &last, .keys_only = true };
        struct buf after;

        buf_init(&last, STORE_KEY_MAX);
        buf_init(&after, STORE_KEY_MAX);
        buf_reset(text);
        do {
                buf_reset(&after);
                buf_add_str(&after, buf_str(&last));
                x.done = false;
                op_init(&x.own.req.op, scanning_done);
                store_start(w->store, store_scan_req(&x.own, prefix, buf_str(&after), limit));
                world_until(w, x.done);
                check_i64_eq(x.result, 0);
                check_true(x.own.n <= limit && (x.own.n > 0 || !x.own.more));
        } while (x.own.more);
        buf_done(&last);
        buf_done(&after);
}
