/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/verified_write.h"

#include "base/base.h"

/* What the key holds decides. A conflict is an answer of the store: the write did not happen. */
static int judge_outcome(struct verified_write *w, int read)
{
        bool refused = w->_first == ERR_RETURN(ERR_CONFLICT);

        if (read < 0) { /* the key is absent */
                if (!w->_value.p)
                        return 0;
                if (w->_expected == STORE_ABSENT && !refused)
                        return w->_first;
                return err_set(&w->err, ERR_CONFLICT, "another process has removed it");
        }
        if (w->_value.p && !refused && w->_get.version != w->_expected
            && str_eq(w->_get.value, w->_value)) {
                w->version = w->_get.version;
                return 0;
        }
        w->found = w->_get.value;
        w->found_version = w->_get.version;
        /* Untouched: with STORE_ANY, whatever is there is what was to be removed. */
        if (!refused && (w->_get.version == w->_expected || w->_expected == STORE_ANY))
                return w->_first;
        return err_set(&w->err, ERR_CONFLICT, "another process has written it");
}

static void read_done(struct op *op, int result)
{
        struct verified_write *w = container_of(op, struct verified_write, _get.req.op);

        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)) {
                result = judge_outcome(w, result);
        } else if (w->_first == ERR_RETURN(ERR_CONFLICT)) {
                w->err = w->_get.req.err;
        } else {
                w->uncertain = true;
                result = w->_first;
        }
        w->done(w, result);
}

static void write_done(struct op *op, int result)
{
        struct verified_write *w = container_of(op, struct verified_write, _req.op);

        if (result < 0)
                w->err = w->_req.err;
        if (result == 0 && w->_value.p)
                w->version = w->_cas.version;
        /* After these nothing was changed: see store.h. */
        if (result == 0 || result == ERR_RETURN(ERR_INVALID) || result == ERR_RETURN(ERR_TOO_LARGE)
            || result == ERR_RETURN(ERR_EXHAUSTED)) {
                w->done(w, result);
                return;
        }
        w->_first = result;
        op_init(&w->_get.req.op, read_done);
        store_start(w->_store, store_get_req(&w->_get, w->_key));
}

void verified_write_start(struct verified_write *w, struct store *store, struct str key,
                          uint64_t expected, struct str value)
{
        w->version = w->found_version = 0;
        w->found = STR_NULL;
        w->uncertain = false;
        w->_store = store;
        w->_key = key;
        w->_value = value;
        w->_expected = expected;
        w->_first = 0;
        op_init(&w->_req.op, write_done);
        if (value.p)
                store_start(store, store_cas_req(&w->_cas, key, expected, value));
        else
                store_start(store, store_remove_req(&w->_remove, key, expected));
}

/* --- without a result --- */

struct removal {
        struct store_remove remove;
        char key[];
};

static void removal_done(struct op *op, int result)
{
        (void) result;
        free(container_of(op, struct removal, remove.req.op));
}

void remove_unverified(struct store *store, struct str key, uint64_t expected)
{
        struct removal *x = xcalloc(1, sizeof(*x) + key.n);

        memcpy(x->key, key.p, key.n);
        op_init(&x->remove.req.op, removal_done);
        store_start(store, store_remove_req(&x->remove, str_of(x->key, key.n), expected));
}
