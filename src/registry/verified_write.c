/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/verified_write.h"

#include "base/base.h"

/* After these nothing was changed: see store.h. */
static bool is_certain(int result)
{
        return result == 0 || result == ERR_RETURN(ERR_INVALID)
               || result == ERR_RETURN(ERR_TOO_LARGE) || result == ERR_RETURN(ERR_EXHAUSTED);
}

static bool is_removal(const struct verified_write *s)
{
        return !s->_value.p;
}

/* The first answer stands: it did not happen. */
static int keep_first(const struct verified_write *s)
{
        return s->_first;
}

static int conflict(struct verified_write *s)
{
        return err_set(&s->err, ERR_CONFLICT, "somebody else has written it");
}

/* Nobody has touched it: with STORE_ANY whatever is there is what was to go. */
static bool is_as_expected(const struct verified_write *s)
{
        return s->_get.version == s->_expected || s->_expected == STORE_ANY;
}

static int judge_found(struct verified_write *s)
{
        if (!is_removal(s) && s->_first != ERR_RETURN(ERR_CONFLICT)
            && s->_get.version != s->_expected && str_eq(s->_get.value, s->_value)) {
                s->version = s->_get.version;
                return 0;
        }
        s->found = s->_get.value;
        s->found_version = s->_get.version;
        if (is_as_expected(s) && s->_first != ERR_RETURN(ERR_CONFLICT))
                return keep_first(s);
        return conflict(s);
}

static int judge_absent(struct verified_write *s)
{
        if (is_removal(s))
                return 0;
        if (s->_expected == STORE_ABSENT && s->_first != ERR_RETURN(ERR_CONFLICT))
                return keep_first(s);
        return conflict(s);
}

static void read_done(struct op *op, int result)
{
        struct verified_write *s = container_of(op, struct verified_write, _get.req.op);

        if (result == 0) {
                result = judge_found(s);
        } else if (result == ERR_RETURN(ERR_NOT_FOUND)) {
                result = judge_absent(s);
        } else if (s->_first == ERR_RETURN(ERR_CONFLICT)) {
                s->err = s->_get.req.err;
        } else {
                s->uncertain = true;
                result = keep_first(s);
        }
        s->done(s, result);
}

static void write_done(struct op *op, int result)
{
        struct verified_write *s = container_of(op, struct verified_write, _req.op);

        if (result < 0)
                s->err = s->_req.err;
        if (result == 0 && !is_removal(s))
                s->version = s->_cas.version;
        if (is_certain(result)) {
                s->done(s, result);
                return;
        }
        s->_first = result;
        op_init(&s->_get.req.op, read_done);
        store_get(s->_store, &s->_get, s->_key);
}

static void begin(struct verified_write *s, struct store *store, struct str key, uint64_t expected)
{
        s->version = 0;
        s->found = STR_NULL;
        s->found_version = 0;
        s->uncertain = false;
        s->_store = store;
        s->_key = key;
        s->_expected = expected;
        s->_first = 0;
        op_init(&s->_req.op, write_done);
}

void verified_write_cas(struct verified_write *s, struct store *store, struct str key,
                        uint64_t expected, struct str value)
{
        ASSERT(value.p);
        begin(s, store, key, expected);
        s->_value = value;
        store_cas(store, &s->_cas, key, expected, value);
}

void verified_write_remove(struct verified_write *s, struct store *store, struct str key,
                           uint64_t expected)
{
        begin(s, store, key, expected);
        s->_value = STR_NULL;
        store_remove(store, &s->_remove, key, expected);
}

/* --- without an answer --- */

struct removal {
        struct store_remove remove;
        char key[];
};

static void removal_done(struct op *op, int result)
{
        free(container_of(op, struct removal, remove.req.op));
}

void remove_unverified(struct store *store, struct str key, uint64_t expected)
{
        struct removal *x = xcalloc(1, sizeof(*x) + key.n);

        memcpy(x->key, key.p, key.n);
        op_init(&x->remove.req.op, removal_done);
        store_remove(store, &x->remove, str_of(x->key, key.n), expected);
}
