/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/registry_impl.h"

/* One at a time: this happens once in the life of a store, and nobody is served before its end. */

static const struct {
        const char *from;
        const char *to; /* NULL: it goes */
        bool is_index;
} kinds[] = {
        { "lock/", NULL, false },
        { "key/", API_KEY_PREFIX, false },
        { "snapshot/", SNAPSHOT_PREFIX, false },
        { "owner/", OWNER_PREFIX, true },
        { "sandbox/", RECORD_PREFIX, false },
};

static void finish(struct forward *f, int result, const struct err *e)
{
        if (result < 0)
                f->err = *e;
        buf_done(&f->_old);
        buf_done(&f->_new);
        buf_done(&f->_value);
        buf_done(&f->_after);
        f->done(f, result);
}

static void scan(struct forward *f);

static void removed(struct op *op, int result)
{
        struct forward *f = container_of(op, struct forward, _remove.req.op);

        if (result < 0)
                finish(f, result, &f->_remove.req.err);
        else
                scan(f);
}

static void remove_old(struct forward *f)
{
        op_init(&f->_remove.req.op, removed);
        store_remove(f->_registry->store, &f->_remove, buf_str(&f->_old), STORE_ANY);
}

/* What is there under the new name was written before the last attempt was cut off. */
static void written(struct op *op, int result)
{
        struct forward *f = container_of(op, struct forward, _cas.req.op);

        if (result < 0 && result != ERR_RETURN(ERR_CONFLICT))
                finish(f, result, &f->_cas.req.err);
        else
                remove_old(f);
}

/* False if it can't be: nothing of ours ever had such a key or value. */
static bool translate(struct forward *f, const struct store_entry *e)
{
        const char *from = kinds[f->_kind].from, *to = kinds[f->_kind].to;
        bool quoted = kinds[f->_kind].is_index;

        buf_reset(&f->_old);
        buf_reset(&f->_new);
        buf_reset(&f->_value);
        buf_add_str(&f->_old, e->key);
        if (!to)
                return true;
        buf_add_str(&f->_new, str_from(to));
        buf_add_str(&f->_new, str_skip(e->key, strlen(from)));
        buf_add_str(&f->_value, quoted ? STR("\"") : STR(""));
        buf_add_str(&f->_value, e->value);
        buf_add_str(&f->_value, quoted ? STR("\"") : STR(""));
        return !buf_failed(&f->_new) && !buf_failed(&f->_value)
               && (!quoted || sandbox_id_is_valid(e->value));
}

static void move(struct forward *f, const struct store_entry *e)
{
        buf_reset(&f->_after);
        buf_add_str(&f->_after, e->key);
        if (!translate(f, e)) {
                scan(f);
        } else if (!kinds[f->_kind].to) {
                remove_old(f);
        } else {
                op_init(&f->_cas.req.op, written);
                store_cas(f->_registry->store, &f->_cas, buf_str(&f->_new), STORE_ABSENT,
                          buf_str(&f->_value));
        }
}

static void scanned(struct op *op, int result)
{
        struct forward *f = container_of(op, struct forward, _scan.req.op);

        if (result < 0) {
                finish(f, result, &f->_scan.req.err);
        } else if (f->_scan.n > 0) {
                move(f, &f->_scan.entries[0]);
        } else if (++f->_kind < ARRAY_SIZE(kinds)) {
                buf_reset(&f->_after);
                scan(f);
        } else {
                finish(f, 0, NULL);
        }
}

static void scan(struct forward *f)
{
        op_init(&f->_scan.req.op, scanned);
        store_scan(f->_registry->store, &f->_scan, str_from(kinds[f->_kind].from),
                   buf_str(&f->_after), 1);
}

void forward_start(struct forward *f, struct registry *r)
{
        f->_registry = r;
        f->_kind = 0;
        buf_init(&f->_old, STORE_KEY_MAX);
        buf_init(&f->_new, STORE_KEY_MAX);
        buf_init(&f->_value, STORE_VALUE_MAX);
        buf_init(&f->_after, STORE_KEY_MAX);
        scan(f);
}
