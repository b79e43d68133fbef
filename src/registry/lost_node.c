/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of a lost node. A record is given up by becoming a tombstone of the node that gives it up: the compare-and-set
 * that marks it Failed also moves it to that node, so it happens once, and the tombstone expires like any other. Its
 * owner may have another sandbox from then on. The lost node destroys what it still runs when it comes back
 * (service/adopt.c): it finds a sandbox whose record belongs to another node.
 *
 * A record that is a tombstone already is removed: its node is not there to do it.
 */

#include "base/base.h"
#include "registry/nodes.h"
#include "registry/registry_impl.h"

/* --- one record --- */

struct fail_lost {
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

static void fail_lost_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct fail_lost *x = req->_impl;

        if (result == 0 && x->verified.version > 0)
                (void) records_add(&x->r->records, TAKE_PTR(x->next), x->verified.version);
        writing_end(x->r, &x->writing); /* fine if it was not begun */
        x->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        sandbox_free(x->next);
        buf_done(&x->value);
        free(x);
}

/* A search for the owner would remove the index as well; but there may never be one. */
static void index_read(struct op *op, int result)
{
        struct fail_lost *x = container_of(op, struct fail_lost, get.req.op);
        struct str id = result == 0 ? index_id(x->get.value) : STR_NULL;

        if (id.p && str_eq(id, x->next->id))
                remove_unverified(x->r->store, x->get.key, x->get.version);
        op_finish_now(&x->out->req.op, 0);
}

static void record_written(struct verified_write *v, int result)
{
        struct fail_lost *x = container_of(v, struct fail_lost, verified);
        struct buf key;

        if (result < 0 || !x->bound) {
                x->out->req.err = v->err;
                op_finish_now(&x->out->req.op, result);
                return;
        }
        buf_init_fixed(&key, x->index_key, sizeof(x->index_key));
        add_owner_key(&key, OWNER_PREFIX, &x->next->owner);
        op_init(&x->get.req.op, index_read);
        store_start(x->r->store, store_get_req(&x->get, buf_str(&key)));
}

static int make_tombstone(struct fail_lost *x, struct err *e)
{
        struct sandbox *s = x->next;
        char message[NAME_MAX_TEXT + 64];
        struct status_step step = {
                .state = STATE_FAILED,
                .reason = STR(REASON_NODE_LOST),
                .at_ms = (int64_t) (clock_wall(x->r->clock) / USEC_PER_MSEC),
        };
        int r;

        (void) snprintf(message, sizeof(message), "node '%.*s' no longer responds",
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

static void record_read(struct op *op, int result)
{
        struct fail_lost *x = container_of(op, struct fail_lost, get.req.op);
        struct err *e = &x->out->req.err;
        struct verified_write *v = &x->verified;

        v->done = record_written;
        if (result < 0)
                *e = x->get.req.err;
        else
                result = registry__read_record(x->get.key, x->get.value, &x->next, e);
        /* The node has come back and deleted it, or another node was faster. */
        if (result == 0 && sandbox_is_foreign(x->next))
                result = err_set(e, ERR_CONFLICT, "it was not created by a node");
        if (result == 0 && nodes_status(x->r->nodes, x->next->node) != NODE_LOST)
                result = err_set(e, ERR_CONFLICT, "its node is not lost");
        if (result == 0 && state_is_final((enum state) x->next->status.state))
                return verified_write_start(v, x->r->store, x->get.key, x->get.version, STR_NULL);
        if (result == 0)
                result = make_tombstone(x, e);
        if (result < 0)
                return op_finish_now(&x->out->req.op, result);
        return verified_write_start(v, x->r->store, x->get.key, x->get.version, buf_str(&x->value));
}

void registry_fail_lost(struct registry *r, struct registry_fail_lost *l, struct str id)
{
        struct fail_lost *x = xnew(struct fail_lost);

        ASSERT(r->nodes && sandbox_id_is_valid(id));
        x->r = r;
        x->out = l;
        buf_init(&x->value, STORE_VALUE_MAX);
        request_begin(r, &l->req, fail_lost_step, x);
        if (registry_peek(r, id) || writing_has(r, id))
                return op_finish_now(&x->out->req.op, err_set(&l->req.err, ERR_CONFLICT,
                                                              "it is a sandbox of this node"));
        writing_begin(r, &x->writing, id);
        op_init(&x->get.req.op, record_read);
        return store_start(r->store, store_get_req(&x->get, record_key(id, x->key)));
}

/* --- all records --- */

struct sweep {
        struct registry *r;
        struct registry_sweep *out;
        struct store_walk walk;
        struct registry_fail_lost lose;
        unsigned n, next;
        char ids[STORE_WALK_PAGE][SANDBOX_ID_MAX + 1];
};

static void sweep_step(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct sweep *x = req->_impl;

        x->r->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the registry may be gone */
        store_walk_done(&x->walk);
        free(x);
}

static void sweep_next(struct sweep *x);

static void record_failed(struct op *op, int result)
{
        struct sweep *x = container_of(op, struct sweep, lose.req.op);
        const struct sandbox *s = registry_peek(x->r, str_from(x->ids[x->next - 1]));

        if (result == 0) {
                x->out->lost++;
                if (x->out->each && s)
                        x->out->each(x->out, s);
        } else {
                x->out->left++;
        }
        sweep_next(x);
}

static void sweep_next(struct sweep *x)
{
        if (x->next < x->n && !x->out->stop) {
                op_init(&x->lose.req.op, record_failed);
                registry_fail_lost(x->r, &x->lose, str_from(x->ids[x->next++]));
        } else if (x->out->stop || !store_walk_next(&x->walk)) {
                op_finish_now(&x->out->req.op, 0);
        }
}

static void page_read(struct op *op, int result)
{
        struct store_walk *walk = store_walk_of(op, result);
        struct sweep *x = container_of(walk, struct sweep, walk);

        if (result < 0) {
                x->out->req.err = walk->scan.req.err;
                op_finish_now(&x->out->req.op, result);
                return;
        }
        x->n = x->next = 0;
        for (unsigned i = 0; i < walk->scan.n; i++) {
                const struct store_entry *e = &walk->scan.entries[i];
                scoped(sandbox_freep) struct sandbox *s = NULL;
                struct err err = { 0 };

                if (registry__read_record(e->key, e->value, &s, &err) < 0 || sandbox_is_foreign(s)
                    || nodes_status(x->r->nodes, s->node) != NODE_LOST)
                        continue;
                memcpy(x->ids[x->n], s->id.p, s->id.n);
                x->ids[x->n++][s->id.n] = '\0';
        }
        sweep_next(x);
}

void registry_sweep(struct registry *r, struct registry_sweep *s)
{
        struct sweep *x = xnew(struct sweep);

        ASSERT(r->nodes);
        s->lost = s->left = 0;
        s->stop = false;
        x->r = r;
        x->out = s;
        request_begin(r, &s->req, sweep_step, x);
        store_walk(r->store, &x->walk, STR(RECORD_PREFIX), page_read);
}
