/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/text.h"
#include "registry/registry_impl.h"

/*
 * One write: what it does to the store comes first, step by step; what it does to memory is decided
 * when the store's answer is known, and done right before the starter's `done`.
 */

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
        struct entry *entry;    /* what is there, or NULL */
        struct sandbox *record; /* what is to be there, or was read */
        struct buf value;
        struct str key;
        struct verified_write verified;
        struct claim *claim; /* of a bound owner */
        enum effect effect;
        uint64_t version; /* in the store, of the record */
        unsigned tries;
        struct store_get get;
        char key_text[RECORD_KEY_SIZE];
};

static struct str id_of(const struct write *w)
{
        return w->writing.by_id.key;
}

/* --- the end --- */

static void add(struct write *w)
{
        struct entry *entry = records_add(&w->r->records, TAKE_PTR(w->record), w->version);

        uncertain_write_forget(w->r, entry->record->id);
        if (w->claim)
                entry->owner_version = w->claim->version;
}

/* The index goes behind the record: it may point to nothing, not the other way round. */
static void release(struct write *w)
{
        struct entry *entry = w->entry;

        if (entry->owner_version > 0)
                release_owner(w->r, &entry->record->owner, entry->owner_version);
        entry->owner_version = 0;
}

static void take_effect(struct write *w)
{
        switch (w->effect) {
        case EFFECT_ADD:
                add(w);
                return;
        case EFFECT_REPLACE:
                if (!w->record->owner_bound)
                        release(w);
                records_replace(&w->r->records, w->entry, TAKE_PTR(w->record), w->version);
                return;
        case EFFECT_REMOVE:
                release(w);
                records_remove(&w->r->records, w->entry);
                return;
        case EFFECT_NONE:
        default:
                return;
        }
}

static void write_free(struct write *w)
{
        sandbox_free(w->record);
        buf_done(&w->value);
        free(w->claim);
        free(w);
}

static void write_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct write *w = req->_impl;

        take_effect(w);
        writing_end(w->r, &w->writing);
        request_end(w->r, req, result);
        write_free(w);
}

static void finish(struct write *w, int result)
{
        op_finish_now(&w->req->op, result);
}

static void finish_effect(struct write *w, enum effect effect)
{
        w->effect = effect;
        finish(w, 0);
}

/* With the story of a step. */
static void fail(struct write *w, const struct err *e)
{
        w->req->err = *e;
        finish(w, ERR_RETURN(e->code));
}

/* --- the beginning --- */

static struct write *write_begin(struct registry *r, struct registry_req *req, struct str id,
                                 struct sandbox *record)
{
        struct write *w = xnew(struct write);

        w->r = r;
        w->req = req;
        w->record = record;
        buf_init(&w->value, STORE_VALUE_MAX);
        request_begin(r, req, write_end, w);
        if (!sandbox_id_is_valid(id) || writing_has(r, id))
                return w; /* without a key: nothing is written */
        writing_begin(r, &w->writing, id);
        w->entry = records_get(&r->records, id);
        w->key = record_key(id, w->key_text);
        return w;
}

/* 0 or a code in the request. */
static int encode(struct write *w)
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

static void exists(struct write *w, const char *other)
{
        struct registry_register *g = container_of(w->req, struct registry_register, req);

        (void) snprintf(g->other_id, sizeof(g->other_id), "%s", other);
        finish(w, err_set(&w->req->err, ERR_EXISTS, "there is a sandbox '%s'", other));
}

static void same_id(struct write *w)
{
        char id[SANDBOX_ID_MAX + 1];

        (void) snprintf(id, sizeof(id), "%.*s", STR_ARG(id_of(w)));
        exists(w, id);
}

static void undo_claim(struct write *w)
{
        if (w->claim && w->claim->made)
                release_owner(w->r, &w->record->owner, w->claim->version);
}

/* What was in the way has gone meanwhile (version 0, as of what is absent), or was never
 * acknowledged. */
static bool may_overwrite(struct write *w)
{
        const struct verified_write *s = &w->verified;

        return w->tries++ < TRIES_MAX
               && (!s->found.p || uncertain_write_matches(w->r, id_of(w), s->found));
}

/*
 * With other nodes on the store. A lock is a lease, and whoever stalls between its index and its record may have lost
 * it: to the next holder an index without a record means nothing, and he takes the place. So the index is looked at
 * once more when the record is there. Either he has seen the record, or the index is not ours any more; never
 * have two the place.
 */
static void taken_back(struct verified_write *s, int result)
{
        struct write *w = container_of(s, struct write, verified);

        if (result < 0 && s->uncertain)
                uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
        finish(w, err_set(&w->req->err, ERR_UNAVAILABLE,
                          "another node has taken the owner's place; ask again"));
}

static void claim_seen(struct op *op, int result)
{
        struct write *w = container_of(op, struct write, get.req.op);

        if (result == 0 && w->get.version == w->claim->version) {
                finish_effect(w, EFFECT_ADD);
        } else if (result == 0 || result == ERR_RETURN(ERR_NOT_FOUND)) {
                w->verified.done = taken_back;
                verified_write_remove(&w->verified, w->r->store, w->key, w->version);
        } else {
                uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
                fail(w, &w->get.req.err);
        }
}

static void see_claim(struct write *w)
{
        op_init(&w->get.req.op, claim_seen);
        store_get(w->r->store, &w->get, str_of(w->claim->_key, w->claim->_key_n));
}

static void record_added(struct verified_write *s, int result)
{
        struct write *w = container_of(s, struct write, verified);

        if (result == 0) {
                w->version = s->version;
                if (w->claim && w->r->nodes)
                        see_claim(w);
                else
                        finish_effect(w, EFFECT_ADD);
                return;
        }
        if (result == ERR_RETURN(ERR_CONFLICT) && may_overwrite(w)) {
                verified_write_cas(s, w->r->store, w->key, s->found_version, buf_str(&w->value));
                return;
        }
        if (s->uncertain) {
                /* The index stays: if the record is there, it belongs to it. */
                uncertain_write_add(w->r, id_of(w), buf_str(&w->value));
                fail(w, &s->err);
                return;
        }
        undo_claim(w);
        if (result == ERR_RETURN(ERR_CONFLICT))
                same_id(w);
        else
                fail(w, &s->err);
}

static void add_record(struct write *w)
{
        w->verified.done = record_added;
        verified_write_cas(&w->verified, w->r->store, w->key, STORE_ABSENT, buf_str(&w->value));
}

static void claimed(struct claim *c, int result)
{
        struct write *w = c->data;

        if (result == 0)
                add_record(w);
        else if (result == ERR_RETURN(ERR_EXISTS))
                exists(w, c->other);
        else
                fail(w, &c->err);
}

void registry_register(struct registry *r, struct registry_register *g, struct sandbox *record)
{
        struct write *w;

        g->other_id[0] = '\0';
        w = write_begin(r, &g->req, record->id, record);
        if (!w->key.p && sandbox_id_is_valid(record->id)) {
                finish(w, err_set(&w->req->err, ERR_CONFLICT, "the record is being written"));
                return;
        }
        if (w->entry) {
                same_id(w);
                return;
        }
        if (encode(w) < 0) {
                finish(w, ERR_RETURN(w->req->err.code));
                return;
        }
        if (!record->owner_bound) {
                add_record(w);
                return;
        }
        w->claim = xnew(struct claim);
        w->claim->done = claimed;
        w->claim->data = w;
        claim_start(w->claim, r, record);
}

/* --- update --- */

/* Somebody else wrote, or an earlier write of ours that seemed to have failed did not: what is in the
 * store is the truth, and what everybody sees from now on. */
static void refresh(struct write *w)
{
        struct verified_write *s = &w->verified;
        struct sandbox *found = NULL;
        struct err e = { 0 };

        if (!s->found.p) {
                w->effect = EFFECT_REMOVE;
                finish(w, err_set(&w->req->err, ERR_NOT_FOUND, "somebody else has removed it"));
                return;
        }
        if (registry__read_record(w->key, s->found, &found, &e) == 0 && !sandbox_is_foreign(found)
            && !is_ours(w->r, found)) {
                sandbox_free(found);
                w->effect = EFFECT_REMOVE;
                finish(w, err_set(&w->req->err, ERR_NOT_FOUND,
                                  "another node took this one for lost and has given it up"));
                return;
        }
        if (!found || !records_same(w->entry->record, found)) {
                sandbox_free(found);
                finish(w, err_set(&w->req->err, ERR_CONFLICT,
                                  "somebody else has written something that is no such record"));
                return;
        }
        sandbox_free(w->record);
        w->record = found;
        w->version = s->found_version;
        w->effect = EFFECT_REPLACE;
        finish(w, err_set(&w->req->err, ERR_CONFLICT, "somebody else has written it"));
}

static void record_replaced(struct verified_write *s, int result)
{
        struct write *w = container_of(s, struct write, verified);

        if (result == 0) {
                w->version = s->version;
                finish_effect(w, EFFECT_REPLACE);
        } else if (result == ERR_RETURN(ERR_CONFLICT)) {
                refresh(w);
        } else {
                fail(w, &s->err);
        }
}

/* Who it is does not change, and a place that was given up is not taken again. */
static int check_change(struct write *w)
{
        const struct sandbox *now = w->entry->record, *next = w->record;

        if (!records_same(now, next))
                return err_set(&w->req->err, ERR_INVALID,
                               "id, tenant, node, owner, driver and time of creation stay");
        if (next->owner_bound && !now->owner_bound)
                return err_set(&w->req->err, ERR_INVALID, "a sandbox is bound when it is made");
        return 0;
}

void registry_update(struct registry *r, struct registry_update *u, struct sandbox *next)
{
        struct write *w;
        int result;

        ASSERT(!writing_has(r, next->id));
        w = write_begin(r, &u->req, next->id, next);
        if (!w->entry) {
                finish(w, err_set(&u->req.err, ERR_NOT_FOUND, "there is no sandbox %s",
                                  QUOTED(next->id)));
                return;
        }
        next->version = w->entry->record->version + 1;
        result = check_change(w);
        if (result == 0)
                result = encode(w);
        if (result < 0) {
                finish(w, result);
                return;
        }
        w->verified.done = record_replaced;
        verified_write_cas(&w->verified, r->store, w->key, w->entry->version, buf_str(&w->value));
}

/* --- unregister --- */

static void record_removed(struct verified_write *s, int result);

static void remove_record(struct write *w, uint64_t version)
{
        w->verified.done = record_removed;
        verified_write_remove(&w->verified, w->r->store, w->key, version);
}

/* Whether what was found under the key is a record of this node, of the one we know if we know one. */
static bool may_remove(struct write *w, struct str value)
{
        scoped(sandbox_freep) struct sandbox *found = NULL;
        struct err e = { 0 };

        if (registry__read_record(w->key, value, &found, &e) < 0)
                return false;
        return w->entry ? records_same(w->entry->record, found) : is_ours(w->r, found);
}

static void not_ours(struct write *w)
{
        finish(w,
               err_set(&w->req->err, ERR_CONFLICT,
                       "what is stored under '%.*s' is no record of this node", STR_ARG(w->key)));
}

static void record_removed(struct verified_write *s, int result)
{
        struct write *w = container_of(s, struct write, verified);

        if (result == 0) {
                uncertain_write_forget(w->r, id_of(w));
                finish_effect(w, w->entry ? EFFECT_REMOVE : EFFECT_NONE);
        } else if (result != ERR_RETURN(ERR_CONFLICT)) {
                fail(w, &s->err);
        } else if (w->tries++ < TRIES_MAX && may_remove(w, s->found)) {
                remove_record(w, s->found_version);
        } else {
                not_ours(w);
        }
}

static void unknown_read(struct op *op, int result)
{
        struct write *w = container_of(op, struct write, get.req.op);

        if (result == ERR_RETURN(ERR_NOT_FOUND))
                finish(w, 0);
        else if (result < 0)
                fail(w, &w->get.req.err);
        else if (may_remove(w, w->get.value))
                remove_record(w, w->get.version);
        else
                not_ours(w);
}

void registry_unregister(struct registry *r, struct registry_unregister *u, struct str id)
{
        struct write *w;

        ASSERT(!writing_has(r, id));
        w = write_begin(r, &u->req, id, NULL);
        if (!w->key.p) {
                finish(w, 0);
        } else if (w->entry) {
                remove_record(w, w->entry->version);
        } else {
                op_init(&w->get.req.op, unknown_read);
                store_get(r->store, &w->get, w->key);
        }
}
