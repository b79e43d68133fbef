/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: registry writes.
 *
 * The problem: a record, its owner's index and the records in memory must agree, but the store can only change one key
 * at a time, may fail after it has written, and hutchd may be killed between any two writes. Other nodes write to the
 * same store.
 *
 * The invariants:
 *
 *   - The store is the truth. Memory changes when the store has acknowledged, right before the starter's `done`. So a
 *     change is visible when it is reported, and what was reported is durable.
 *   - An owner's index is a hint. It is written before its record and removed after it, so it may point to nothing, but
 *     a bound record is never without one. Whoever reads an index compares it with the record it names.
 *   - Every write is compare-and-set with the version that memory knows. A conflict makes the registry read the record
 *     again; after that memory has what the store has.
 *   - The outcome of every write is determined (verified_write.h). If even that fails, the write is uncertain: the
 *     result is the store's error, and memory stays as it was.
 *
 * The order of steps:
 *
 *         register     [claim the owner's index] ─ record: cas absent ─ [several nodes: read the index again] ─ add
 *         update       record: cas version ─ replace ─ [unbound: remove the index]
 *         unregister   record: remove version ─ remove ─ [remove the index]
 *
 * The steps in brackets are those of a bound owner. Removing an index is not waited for.
 *
 * An uncertain update or unregister is found out by the next one, which meets a conflict. An uncertain register leaves
 * a record that no one was notified of: its id and the digest of its value are remembered (uncertain_write_add), so that
 * later reads in this process ignore it, and a register may replace it.
 *
 * Crash: after the claim there is an index that points to nothing; the next register or search repairs it. After the
 * record there is a record in state Pending; the service finishes or undoes it at the next start.
 */

#include "base/base.h"
#include "model/text.h"
#include "registry/registry_impl.h"

#define TRIES_MAX 8

enum effect {
        EFFECT_NONE,
        EFFECT_ADD,     /* the record, new */
        EFFECT_REPLACE, /* the entry's record */
        EFFECT_REMOVE,  /* the entry */
};

struct write {
        struct registry *r;
        struct registry_req *req;
        struct writing writing;
        struct entry *entry;    /* in memory, or NULL */
        struct sandbox *record; /* to be written, or as read */
        struct buf value;
        struct str key; /* null: nothing can be written */
        struct verified_write verified;
        struct claim *claim; /* of a bound owner */
        enum effect effect;
        uint64_t version; /* of the record in the store */
        unsigned tries;
        struct store_get get;
        char key_text[RECORD_KEY_SIZE];
};

static struct str id_of(const struct write *w)
{
        return w->writing.by_id.key;
}

/* --- life cycle --- */

/* After the record: an index may point to nothing, but a bound record is not without one. */
static void release_index(struct write *w)
{
        struct entry *entry = w->entry;

        if (entry->owner_version > 0)
                release_owner(w->r, &entry->record->owner, entry->owner_version);
        entry->owner_version = 0;
}

/* Memory changes here, right before the starter's `done`. */
static void write_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct write *w = req->_impl;
        struct records *records = &w->r->records;
        struct entry *entry;

        switch (w->effect) {
        case EFFECT_ADD:
                entry = records_add(records, TAKE_PTR(w->record), w->version);
                uncertain_write_forget(w->r, entry->record->id);
                if (w->claim)
                        entry->owner_version = w->claim->version;
                break;
        case EFFECT_REPLACE:
                if (!w->record->owner_bound)
                        release_index(w);
                records_replace(records, w->entry, TAKE_PTR(w->record), w->version);
                break;
        case EFFECT_REMOVE:
                release_index(w);
                records_remove(records, w->entry);
                break;
        case EFFECT_NONE:
        default:
                break;
        }
        writing_end(w->r, &w->writing);
        w->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        sandbox_free(w->record);
        buf_done(&w->value);
        free(w->claim);
        free(w);
}

static struct write *write_begin(struct registry *r, struct registry_req *req, struct str id,
                                 struct sandbox *record)
{
        struct write *w = xnew(struct write);

        w->r = r;
        w->req = req;
        w->record = record;
        buf_init(&w->value, STORE_VALUE_MAX);
        request_begin(r, req, write_step, w);
        if (!sandbox_id_is_valid(id) || writing_has(r, id))
                return w; /* without a key: nothing is written */
        writing_begin(r, &w->writing, id);
        w->entry = records_get(&r->records, id);
        w->key = record_key(id, w->key_text);
        return w;
}

static void write_fail(struct write *w, const struct err *e)
{
        w->req->err = *e;
        op_finish_now(&w->req->op, ERR_RETURN(e->code));
}

/* 0, or a code with its message in the request. */
static int write_encode(struct write *w)
{
        struct err *e = &w->req->err;
        int r = sandbox_check(w->record, e);

        if (r < 0)
                return r;
        if (!is_ours(w->r, w->record))
                return err_set(e, ERR_INVALID, "a record of node %s", QUOTED(w->record->node));
        sandbox_encode(&w->value, w->record);
        if (buf_failed(&w->value))
                return err_set(e, ERR_TOO_LARGE, "the record of '%.*s' is longer than %zu bytes",
                               STR_ARG(id_of(w)), STORE_VALUE_MAX);
        return 0;
}

/* --- register --- */

static void register_exists(struct write *w, struct str other)
{
        struct registry_register *g = container_of(w->req, struct registry_register, req);

        (void) snprintf(g->other_id, sizeof(g->other_id), "%.*s", STR_ARG(other));
        op_finish_now(&w->req->op,
                      err_set(&w->req->err, ERR_EXISTS, "there is a sandbox '%s'", g->other_id));
}

/*
 * With several nodes on the store. The owner's lock is a lease: a holder that stalls between its index and its record may
 * have lost it, and to the next holder an index without a record means nothing. So the index is read once more when the
 * record is written. Either the next holder has seen the record, or the index is no longer ours; never do two sandboxes
 * have the owner.
 */
static void taken_back(struct verified_write *v, int result)
{
        struct write *w = container_of(v, struct write, verified);

        if (result < 0 && v->uncertain)
                uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
        op_finish_now(&w->req->op, err_set(&w->req->err, ERR_UNAVAILABLE,
                                           "another node has claimed this owner; try again"));
}

static void claim_reread(struct op *op, int result)
{
        struct write *w = container_of(op, struct write, get.req.op);

        if (result == 0 && w->get.version == w->claim->version)
                return op_finish_now(&w->req->op, 0);
        w->effect = EFFECT_NONE;
        if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)) {
                w->verified.done = taken_back;
                return verified_write_start(&w->verified, w->r->store, w->key, w->version,
                                            STR_NULL);
        }
        uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
        return write_fail(w, &w->get.req.err);
}

static void record_added(struct verified_write *v, int result)
{
        struct write *w = container_of(v, struct write, verified);
        bool conflict = result == ERR_RETURN(ERR_CONFLICT);

        if (result == 0) {
                w->version = v->version;
                w->effect = EFFECT_ADD;
                if (!w->claim || !w->r->nodes)
                        return op_finish_now(&w->req->op, 0);
                op_init(&w->get.req.op, claim_reread);
                return store_start(w->r->store, store_get_req(&w->get, str_of(w->claim->_key,
                                                                              w->claim->_key_n)));
        }
        /* What was in the way is gone (version 0, as of an absent key), or was never acknowledged. */
        if (conflict && w->tries++ < TRIES_MAX
            && (!v->found.p || uncertain_write_matches(w->r, id_of(w), v->found)))
                return verified_write_start(v, w->r->store, w->key, v->found_version,
                                            buf_str(&w->value));
        if (v->uncertain) {
                /* The index stays: if the record is there, it belongs to it. */
                uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
                return write_fail(w, &v->err);
        }
        if (w->claim && w->claim->made)
                release_owner(w->r, &w->record->owner, w->claim->version);
        if (conflict)
                return register_exists(w, id_of(w));
        return write_fail(w, &v->err);
}

static void claimed(struct claim *c, int result)
{
        struct write *w = c->data;

        if (result == ERR_RETURN(ERR_EXISTS))
                return register_exists(w, str_from(c->other));
        if (result < 0)
                return write_fail(w, &c->err);
        return verified_write_start(&w->verified, w->r->store, w->key, STORE_ABSENT,
                                    buf_str(&w->value));
}

void registry_register(struct registry *r, struct registry_register *g, struct sandbox *record)
{
        struct write *w;
        int result;

        g->other_id[0] = '\0';
        w = write_begin(r, &g->req, record->id, record);
        if (w->entry)
                return register_exists(w, id_of(w));
        result = !w->key.p && sandbox_id_is_valid(record->id)
                         ? err_set(&g->req.err, ERR_CONFLICT, "the record is being written")
                         : write_encode(w);
        if (result < 0)
                return op_finish_now(&w->req->op, result);
        w->verified.done = record_added;
        if (!record->owner_bound)
                return verified_write_start(&w->verified, r->store, w->key, STORE_ABSENT,
                                            buf_str(&w->value));
        w->claim = xnew(struct claim);
        w->claim->done = claimed;
        w->claim->data = w;
        return claim_start(w->claim, r, record);
}

/* --- update --- */

static void record_replaced(struct verified_write *v, int result)
{
        struct write *w = container_of(v, struct write, verified);
        scoped(sandbox_freep) struct sandbox *found = NULL;
        struct err *e = &w->req->err, ignored = { 0 };

        if (result == 0) {
                w->version = v->version;
                w->effect = EFFECT_REPLACE;
                return op_finish_now(&w->req->op, 0);
        }
        if (result != ERR_RETURN(ERR_CONFLICT))
                return write_fail(w, &v->err);
        /* Another process wrote, or an earlier write of ours that seemed to have failed took effect: what is in the
         * store is the truth, and visible from now on. */
        if (v->found.p && registry__read_record(w->key, v->found, &found, &ignored) < 0)
                found = NULL;
        if (!v->found.p) {
                w->effect = EFFECT_REMOVE;
                result = err_set(e, ERR_NOT_FOUND, "another process has removed it");
        } else if (found && !sandbox_is_foreign(found) && !is_ours(w->r, found)) {
                w->effect = EFFECT_REMOVE;
                result = err_set(e, ERR_NOT_FOUND,
                                 "another node considered this one lost and has given it up");
        } else if (!found || !records_same(w->entry->record, found)) {
                result = err_set(e, ERR_CONFLICT,
                                 "another process has written something that is no such record");
        } else {
                sandbox_free(w->record);
                w->record = TAKE_PTR(found);
                w->version = v->found_version;
                w->effect = EFFECT_REPLACE;
                result = err_set(e, ERR_CONFLICT, "another process has written it");
        }
        return op_finish_now(&w->req->op, result);
}

void registry_update(struct registry *r, struct registry_update *u, struct sandbox *next)
{
        struct err *e = &u->req.err;
        const struct sandbox *now;
        struct write *w;
        int result;

        ASSERT(!writing_has(r, next->id));
        w = write_begin(r, &u->req, next->id, next);
        if (!w->entry)
                return op_finish_now(&w->req->op,
                                     err_set(e, ERR_NOT_FOUND, "there is no sandbox %s",
                                             QUOTED(next->id)));
        now = w->entry->record;
        next->version = now->version + 1;
        if (!records_same(now, next))
                result = err_set(e, ERR_INVALID,
                                 "id, tenant, node, owner, driver and creation time cannot change");
        else if (next->owner_bound && !now->owner_bound)
                result = err_set(e, ERR_INVALID, "a sandbox is bound when it is created");
        else
                result = write_encode(w);
        if (result < 0)
                return op_finish_now(&w->req->op, result);
        w->verified.done = record_replaced;
        return verified_write_start(&w->verified, r->store, w->key, w->entry->version,
                                    buf_str(&w->value));
}

/* --- unregister --- */

/* Removes what was found under the key, if it is a record of this node, and the one in memory if there is one. */
static void remove_found(struct write *w, struct str value, uint64_t version)
{
        scoped(sandbox_freep) struct sandbox *found = NULL;
        struct err e = { 0 };

        if (registry__read_record(w->key, value, &found, &e) == 0
            && (w->entry ? records_same(w->entry->record, found) : is_ours(w->r, found)))
                return verified_write_start(&w->verified, w->r->store, w->key, version, STR_NULL);
        return op_finish_now(&w->req->op,
                             err_set(&w->req->err, ERR_CONFLICT,
                                     "what is stored under '%.*s' is no record of this node",
                                     STR_ARG(w->key)));
}

static void record_removed(struct verified_write *v, int result)
{
        struct write *w = container_of(v, struct write, verified);

        if (result == 0) {
                uncertain_write_forget(w->r, id_of(w));
                w->effect = w->entry ? EFFECT_REMOVE : EFFECT_NONE;
                op_finish_now(&w->req->op, 0);
        } else if (result == ERR_RETURN(ERR_CONFLICT) && w->tries++ < TRIES_MAX) {
                remove_found(w, v->found, v->found_version);
        } else {
                write_fail(w, &v->err);
        }
}

static void unknown_read(struct op *op, int result)
{
        struct write *w = container_of(op, struct write, get.req.op);

        if (result == ERR_RETURN(ERR_NOT_FOUND))
                op_finish_now(&w->req->op, 0);
        else if (result < 0)
                write_fail(w, &w->get.req.err);
        else
                remove_found(w, w->get.value, w->get.version);
}

void registry_unregister(struct registry *r, struct registry_unregister *u, struct str id)
{
        struct write *w;

        ASSERT(!writing_has(r, id));
        w = write_begin(r, &u->req, id, NULL);
        w->verified.done = record_removed;
        if (!w->key.p) {
                op_finish_now(&u->req.op, 0);
        } else if (w->entry) {
                verified_write_start(&w->verified, r->store, w->key, w->entry->version, STR_NULL);
        } else {
                op_init(&w->get.req.op, unknown_read);
                store_start(r->store, store_get_req(&w->get, w->key));
        }
}
