/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of a node that is lost. One is given up by becoming a tombstone of whoever gives it up: the
 * compare-and-set that says so moves it to his node, so it happens once, and his tombstones go after their
 * time as always. The owner's place is free from then on. What the lost node still has of it, that node
 * removes when it comes back (service/reconcile.c): it finds a sandbox whose record is somebody else's.
 */

#include "base/base.h"
#include "registry/nodes.h"
#include "registry/registry_impl.h"

/* --- one --- */

/* A tombstone tells of an end; nobody needs two of them, and its node is not there to tell. */

struct losing {
        struct registry *r;
        struct registry_fail_lost *out;
        struct sandbox *next;
        struct store_get get;
        struct verified_write verified;
        struct writing writing;
        struct buf value;
        bool bound;
        char key[RECORD_KEY_SIZE];
        char index_key[OWNER_KEY_SIZE];
};

static void lose_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct losing *x = req->_impl;

        if (result == 0 && x->verified.version > 0)
                (void) records_add(&x->r->records, TAKE_PTR(x->next), x->verified.version);
        writing_end(x->r, &x->writing);
        request_end(x->r, req, result);
        sandbox_free(x->next);
        buf_done(&x->value);
        free(x);
}

static void finish(struct losing *x, int result)
{
        op_finish_now(&x->out->req.op, result);
}

/* Whoever looks for the owner would remove it as well; but nobody may ever look. */
static void index_read(struct op *op, int result)
{
        struct losing *x = container_of(op, struct losing, get.req.op);

        struct str id = result == 0 ? index_id(x->get.value) : STR_NULL;

        if (id.p && str_eq(id, x->next->id))
                remove_unverified(x->r->store, x->get.key, x->get.version);
        finish(x, 0);
}

static void written(struct verified_write *s, int result)
{
        struct losing *x = container_of(s, struct losing, verified);
        struct buf key;

        if (result < 0 || !x->bound) {
                x->out->req.err = s->err;
                finish(x, result);
                return;
        }
        buf_init_fixed(&key, x->index_key, sizeof(x->index_key));
        add_owner_key(&key, OWNER_PREFIX, &x->next->owner);
        op_init(&x->get.req.op, index_read);
        store_get(x->r->store, &x->get, buf_str(&key));
}

static int give_up(struct losing *x)
{
        struct sandbox *s = x->next;
        struct err *e = &x->out->req.err;
        char message[NAME_MAX_TEXT + 64];
        struct status_step step = {
                .state = STATE_FAILED,
                .reason = STR(REASON_NODE_LOST),
                .at_ms = (int64_t) (clock_wall(x->r->clock) / USEC_PER_MSEC),
        };
        int r;

        (void) snprintf(message, sizeof(message), "node '%.*s' does not answer any more",
                        STR_ARG(s->node));
        step.message = str_from(message);
        r = sandbox_change(s, &step, e);
        if (r < 0)
                return r;
        s->node = arena_dup_str(&s->arena, str_from(x->r->node));
        if (!s->node.p)
                return err_set(e, ERR_TOO_LARGE, "the record has no room for another node");
        x->bound = s->owner_bound;
        s->owner_bound = false;
        s->version++;
        sandbox_encode(&x->value, s);
        return buf_failed(&x->value) ? err_set(e, ERR_TOO_LARGE, "the record is too long") : 0;
}

static void was_read(struct op *op, int result)
{
        struct losing *x = container_of(op, struct losing, get.req.op);
        struct err *e = &x->out->req.err;

        if (result < 0)
                *e = x->get.req.err;
        else
                result = registry__read_record(x->get.key, x->get.value, &x->next, e);
        /* It has come back and deleted it, or somebody else was faster. */
        if (result == 0 && sandbox_is_foreign(x->next))
                result = err_set(e, ERR_CONFLICT, "no node has made it");
        if (result == 0 && nodes_status(x->r->nodes, x->next->node) != NODE_LOST)
                result = err_set(e, ERR_CONFLICT, "its node is not lost");
        if (result == 0 && state_is_final((enum state) x->next->status.state)) {
                x->verified.done = written;
                verified_write_remove(&x->verified, x->r->store, x->get.key, x->get.version);
                return;
        }
        if (result == 0)
                result = give_up(x);
        if (result < 0) {
                finish(x, result);
                return;
        }
        x->verified.done = written;
        verified_write_cas(&x->verified, x->r->store, x->get.key, x->get.version,
                           buf_str(&x->value));
}

void registry_fail_lost(struct registry *r, struct registry_fail_lost *l, struct str id)
{
        struct losing *x = xnew(struct losing);

        ASSERT(r->nodes && sandbox_id_is_valid(id));
        x->r = r;
        x->out = l;
        buf_init(&x->value, STORE_VALUE_MAX);
        request_begin(r, &l->req, lose_end, x);
        if (registry_peek(r, id) || writing_has(r, id)) {
                /* writing_end needs a node in no tree, which is fine. */
                finish(x, err_set(&l->req.err, ERR_CONFLICT, "it is looked after here"));
                return;
        }
        writing_begin(r, &x->writing, id);
        op_init(&x->get.req.op, was_read);
        store_get(r->store, &x->get, record_key(id, x->key));
}

/* --- all --- */

#define PAGE 100

struct sweeping {
        struct registry *r;
        struct registry_sweep *out;
        struct store_scan scan;
        struct registry_fail_lost lose;
        struct buf after;
        bool more;
        unsigned n, next;
        char ids[PAGE][SANDBOX_ID_MAX + 1];
};

static void sweep_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct sweeping *x = req->_impl;

        request_end(x->r, req, result);
        buf_done(&x->after);
        free(x);
}

static void lose_next(struct sweeping *x);
static void scan(struct sweeping *x);

static void was_lost(struct op *op, int result)
{
        struct sweeping *x = container_of(op, struct sweeping, lose.req.op);
        const struct sandbox *s = registry_peek(x->r, str_from(x->ids[x->next - 1]));

        if (result == 0) {
                x->out->lost++;
                if (x->out->each && s)
                        x->out->each(x->out, s);
        } else {
                x->out->left++;
        }
        lose_next(x);
}

static void lose_next(struct sweeping *x)
{
        if (x->next < x->n && !x->out->stop) {
                op_init(&x->lose.req.op, was_lost);
                registry_fail_lost(x->r, &x->lose, str_from(x->ids[x->next++]));
        } else if (x->more && !x->out->stop) {
                scan(x);
        } else {
                op_finish_now(&x->out->req.op, 0);
        }
}

static void note_record(struct sweeping *x, const struct store_entry *e)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err err = { 0 };

        if (registry__read_record(e->key, e->value, &s, &err) < 0 || sandbox_is_foreign(s)
            || nodes_status(x->r->nodes, s->node) != NODE_LOST)
                return;
        memcpy(x->ids[x->n], s->id.p, s->id.n);
        x->ids[x->n++][s->id.n] = '\0';
}

static void scanned(struct op *op, int result)
{
        struct sweeping *x = container_of(op, struct sweeping, scan.req.op);

        if (result < 0) {
                x->out->req.err = x->scan.req.err;
                op_finish_now(&x->out->req.op, result);
                return;
        }
        x->n = x->next = 0;
        for (unsigned i = 0; i < x->scan.n; i++)
                note_record(x, &x->scan.entries[i]);
        x->more = x->scan.more;
        buf_reset(&x->after);
        if (x->more)
                buf_add_str(&x->after, x->scan.entries[x->scan.n - 1].key);
        lose_next(x);
}

static void scan(struct sweeping *x)
{
        op_init(&x->scan.req.op, scanned);
        store_scan(x->r->store, &x->scan, STR(RECORD_PREFIX), buf_str(&x->after), PAGE);
}

void registry_sweep(struct registry *r, struct registry_sweep *s)
{
        struct sweeping *x = xnew(struct sweeping);

        ASSERT(r->nodes);
        s->lost = s->left = 0;
        s->stop = false;
        x->r = r;
        x->out = s;
        buf_init(&x->after, STORE_KEY_MAX);
        request_begin(r, &s->req, sweep_end, x);
        scan(x);
}
