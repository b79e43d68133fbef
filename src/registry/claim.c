/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/registry_impl.h"

#define TRIES_MAX 8 /* against somebody who writes the same index again and again */

static struct str claim_key(const struct claim *c)
{
        return str_of(c->_key, c->_key_n);
}

static struct str other_of(const struct claim *c)
{
        return str_from(c->other);
}

static void finish(struct claim *c, int result)
{
        if (result != ERR_RETURN(ERR_EXISTS))
                c->other[0] = '\0';
        c->done(c, result);
}

static void finish_taken(struct claim *c)
{
        finish(c, err_set(&c->err, ERR_EXISTS, "the owner has a sandbox already: '%s'", c->other));
}

static void write_index(struct claim *c, uint64_t expected)
{
        verified_write_cas(&c->_verified, c->_registry->store, claim_key(c), expected,
                           index_value(c->_record->id, c->_value));
}

/* --- who is there --- */

static verified_write_fn index_written;

static void uncertain_removed(struct verified_write *s, int result)
{
        struct claim *c = container_of(s, struct claim, _verified);

        if (result < 0) {
                c->err = s->err;
                finish(c, result);
                return;
        }
        uncertain_write_forget(c->_registry, other_of(c));
        s->done = index_written;
        write_index(c, c->_stale);
}

/* Whether the record that the index points to, which was found in the store, has a right to it. One
 * that a newer hutchd wrote can't be judged: it has. */
static bool has_right(const struct claim *c)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err e = { 0 };
        int r = registry__read_record(c->_get.key, c->_get.value, &s, &e);

        if (r < 0)
                return r == ERR_RETURN(ERR_UNSUPPORTED);
        return is_bound_to(s, &c->_record->owner);
}

static void judge_record(struct claim *c)
{
        if (!has_right(c)) {
                write_index(c, c->_stale);
        } else if (uncertain_write_matches(c->_registry, other_of(c), c->_get.value)) {
                c->_verified.done = uncertain_removed;
                verified_write_remove(&c->_verified, c->_registry->store, c->_get.key,
                                      c->_get.version);
        } else {
                finish_taken(c);
        }
}

static void record_read(struct op *op, int result)
{
        struct claim *c = container_of(op, struct claim, _get.req.op);

        if (result == 0) {
                judge_record(c);
        } else if (result == ERR_RETURN(ERR_NOT_FOUND)) {
                write_index(c, c->_stale);
        } else {
                c->err = c->_get.req.err;
                finish(c, result);
        }
}

static void judge_other(struct claim *c)
{
        struct registry *r = c->_registry;
        struct entry *entry = records_get(&r->records, other_of(c));
        /* One that is being written: its record is on the way. */
        bool taken = entry ? is_bound_to(entry->record, &c->_record->owner)
                           : writing_has(r, other_of(c));

        if (taken) {
                finish_taken(c);
        } else if (entry) {
                write_index(c, c->_stale);
        } else {
                op_init(&c->_get.req.op, record_read);
                store_get(r->store, &c->_get, record_key(other_of(c), c->_other_key));
        }
}

/* --- the index --- */

/* The version of the index that would be replaced, which need not be the one it was found in. */
static void judge_found(struct claim *c, struct str id, uint64_t version)
{
        c->_stale = version;
        if (!id.p) {
                write_index(c, version);
                return;
        }
        memcpy(c->other, id.p, id.n);
        c->other[id.n] = '\0';
        judge_other(c);
}

static bool is_own(const struct claim *c, struct str id)
{
        return id.p && str_eq(id, c->_record->id);
}

static void judge_index(struct claim *c, struct str value, uint64_t version)
{
        struct str id = index_id(value);

        if (is_own(c, id)) {
                c->version = version; /* left by a register that did not come to its end */
                finish(c, 0);
        } else {
                judge_found(c, id, version);
        }
}

static void index_written(struct verified_write *s, int result)
{
        struct claim *c = container_of(s, struct claim, _verified);

        if (result == 0) {
                c->version = s->version;
                c->made = true;
                finish(c, 0);
        } else if (result != ERR_RETURN(ERR_CONFLICT)) {
                c->err = s->err;
                finish(c, result);
        } else if (++c->_tries > TRIES_MAX) {
                finish(c, err_set(&c->err, ERR_UNAVAILABLE,
                                  "the index of the owner changes too often"));
        } else if (s->found.p) {
                judge_index(c, s->found, s->found_version);
        } else {
                write_index(c, STORE_ABSENT);
        }
}

/* Who is there by an index without a scope keeps his place, and his index: ours would be a new one. */
static void older_read(struct op *op, int result)
{
        struct claim *c = container_of(op, struct claim, _get.req.op);
        struct str id = result == 0 ? index_id(c->_get.value) : STR_NULL;

        if (result == 0 && !is_own(c, id)) {
                judge_found(c, id, STORE_ABSENT);
        } else if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)) {
                write_index(c, STORE_ABSENT);
        } else {
                c->err = c->_get.req.err;
                finish(c, result);
        }
}

void claim_start(struct claim *c, struct registry *r, const struct sandbox *record)
{
        struct str older;
        struct buf key;

        ASSERT(record->owner_bound);
        c->_registry = r;
        c->_record = record;
        c->version = 0;
        c->made = false;
        c->_tries = 0;
        buf_init_fixed(&key, c->_key, sizeof(c->_key));
        add_owner_key(&key, OWNER_PREFIX, &record->owner);
        c->_key_n = key.n;
        c->_verified.done = index_written;
        older = legacy_owner_key(claim_key(c), &record->owner);
        if (!older.p) {
                write_index(c, STORE_ABSENT);
                return;
        }
        op_init(&c->_get.req.op, older_read);
        store_get(r->store, &c->_get, older);
}

void release_owner(struct registry *r, const struct owner *o, uint64_t version)
{
        char storage[OWNER_KEY_SIZE];
        struct buf key;

        buf_init_fixed(&key, storage, sizeof(storage));
        add_owner_key(&key, OWNER_PREFIX, o);
        remove_unverified(r->store, buf_str(&key), version);
}
