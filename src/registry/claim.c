/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claiming the owner's index for a record, by compare-and-set.
 *
 *         [legacy index] ─ index: cas absent ─┬─ written: ours
 *                                             └─ conflict: which sandbox does it name?
 *                                                  ├─ this one: a register that did not end left it; ours
 *                                                  ├─ one that is bound to the owner, or is being written: ERR_EXISTS
 *                                                  ├─ one whose write is uncertain: remove that record, replace the index
 *                                                  └─ none, or of another owner: replace the index
 *
 * Each replacement compares the version of the index that was judged.
 */

#include "base/base.h"
#include "registry/registry_impl.h"

#define TRIES_MAX 8 /* against a process that writes the same index again and again */

static void claim_finish(struct claim *c, int result)
{
        if (result != ERR_RETURN(ERR_EXISTS))
                c->other[0] = '\0';
        c->done(c, result);
}

static void claim_fail(struct claim *c, const struct err *e)
{
        c->err = *e;
        claim_finish(c, ERR_RETURN(e->code));
}

static void claim_refuse(struct claim *c)
{
        claim_finish(c, err_set(&c->err, ERR_EXISTS, "the owner has a sandbox already: '%s'",
                                c->other));
}

static void write_index(struct claim *c, uint64_t expected)
{
        verified_write_start(&c->_verified, c->_registry->store, str_of(c->_key, c->_key_n),
                             expected, index_value(c->_record->id, c->_value));
}

/* --- the sandbox that the index names --- */

static verified_write_fn index_written;

static void uncertain_removed(struct verified_write *v, int result)
{
        struct claim *c = container_of(v, struct claim, _verified);

        if (result < 0)
                return claim_fail(c, &v->err);
        uncertain_write_forget(c->_registry, str_from(c->other));
        v->done = index_written;
        return write_index(c, c->_stale);
}

/* The record decides whether the sandbox has a right to the index. One of a newer hutchd can't be judged, and has. */
static void record_read(struct op *op, int result)
{
        struct claim *c = container_of(op, struct claim, _get.req.op);
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err e = { 0 };
        bool has_right = false;
        int r;

        if (result < 0 && result != ERR_RETURN(ERR_NOT_FOUND))
                return claim_fail(c, &c->_get.req.err);
        if (result == 0) {
                r = registry__read_record(c->_get.key, c->_get.value, &s, &e);
                has_right = r < 0 ? r == ERR_RETURN(ERR_UNSUPPORTED)
                                  : is_bound_to(s, &c->_record->owner);
        }
        if (!has_right)
                return write_index(c, c->_stale);
        if (!uncertain_write_matches(c->_registry, str_from(c->other), c->_get.value))
                return claim_refuse(c);
        c->_verified.done = uncertain_removed;
        return verified_write_start(&c->_verified, c->_registry->store, c->_get.key,
                                    c->_get.version, STR_NULL);
}

/* --- the index --- */

/* `version` is that of the index that would be replaced, which need not be the one that named the id. */
static void judge_found(struct claim *c, struct str id, uint64_t version)
{
        struct registry *r = c->_registry;
        struct entry *entry;

        c->_stale = version;
        if (!id.p)
                return write_index(c, version);
        memcpy(c->other, id.p, id.n);
        c->other[id.n] = '\0';
        entry = records_get(&r->records, str_from(c->other));
        if (entry ? is_bound_to(entry->record, &c->_record->owner)
                  : writing_has(r, str_from(c->other)))
                return claim_refuse(c);
        if (entry)
                return write_index(c, c->_stale);
        op_init(&c->_get.req.op, record_read);
        return store_start(r->store,
                           store_get_req(&c->_get, record_key(str_from(c->other), c->_other_key)));
}

static void index_written(struct verified_write *v, int result)
{
        struct claim *c = container_of(v, struct claim, _verified);
        struct str id;

        if (result == 0) {
                c->version = v->version;
                c->made = true;
                return claim_finish(c, 0);
        }
        if (result != ERR_RETURN(ERR_CONFLICT))
                return claim_fail(c, &v->err);
        if (++c->_tries > TRIES_MAX)
                return claim_finish(c, err_set(&c->err, ERR_UNAVAILABLE,
                                               "the index of the owner changes too often"));
        if (!v->found.p)
                return write_index(c, STORE_ABSENT);
        id = index_id(v->found);
        if (!id.p || !str_eq(id, c->_record->id))
                return judge_found(c, id, v->found_version);
        c->version = v->found_version; /* left by a register that did not end */
        return claim_finish(c, 0);
}

/* A sandbox with a right to the owner by an index without a scope keeps it, and its index: ours would be a new one. */
static void legacy_read(struct op *op, int result)
{
        struct claim *c = container_of(op, struct claim, _get.req.op);
        struct str id = result == 0 ? index_id(c->_get.value) : STR_NULL;

        if (result < 0 && result != ERR_RETURN(ERR_NOT_FOUND))
                return claim_fail(c, &c->_get.req.err);
        if (result == 0 && !(id.p && str_eq(id, c->_record->id)))
                return judge_found(c, id, STORE_ABSENT);
        return write_index(c, STORE_ABSENT);
}

void claim_start(struct claim *c, struct registry *r, const struct sandbox *record)
{
        struct str legacy;
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
        legacy = legacy_owner_key(buf_str(&key), &record->owner);
        if (!legacy.p)
                return write_index(c, STORE_ABSENT);
        op_init(&c->_get.req.op, legacy_read);
        return store_start(r->store, store_get_req(&c->_get, legacy));
}

void release_owner(struct registry *r, const struct owner *o, uint64_t version)
{
        char storage[OWNER_KEY_SIZE];
        struct buf key;

        buf_init_fixed(&key, storage, sizeof(storage));
        add_owner_key(&key, OWNER_PREFIX, o);
        remove_unverified(r->store, buf_str(&key), version);
}
