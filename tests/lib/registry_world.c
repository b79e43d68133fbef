/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/registry_world.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/store_memory.h"

static struct err last_err;
static char last_other_id[64];

const struct err *rw_err(void)
{
        return &last_err;
}

const char *rw_other_id(void)
{
        return last_other_id;
}

/* --- life --- */

static struct store *open_failing(struct store_world *w)
{
        return store_failing_open(store_memory_open(&w->loop, 256 * MiB));
}

static const struct store_maker failing_maker = { .name = "failing", .open = open_failing };

static struct registry *new_registry(struct registry_world *w, const char *node)
{
        const struct registry_config config = { .node = str_from(node), .clock = &w->clock.clock };

        return registry_new(&w->store.loop, w->store.store, &config);
}

void rw_open(struct registry_world *w)
{
        struct registry_load load;
        char damaged[128];

        *w = (struct registry_world){ 0 };
        clock_fake_init(&w->clock, 1 * USEC_PER_SEC, 1000 * USEC_PER_SEC);
        world_open(&w->store, &failing_maker);
        w->r = new_registry(w, RW_NODE);
        check_i64_eq(rw_load(w, w->r, &load, damaged), 0);
}

void rw_restart(struct registry_world *w)
{
        registry_free(w->r);
        w->r = new_registry(w, RW_NODE);
}

struct registry *rw_other(struct registry_world *w, const char *node)
{
        check_true(w->n_others < ARRAY_SIZE(w->others));
        return w->others[w->n_others++] = new_registry(w, node);
}

void rw_close(struct registry_world *w)
{
        registry_free(w->r);
        for (size_t i = 0; i < w->n_others; i++)
                registry_free(w->others[i]);
        world_close(&w->store);
}

/* --- samples --- */

static const char *or_default(const char *z, const char *otherwise)
{
        return z ? z : otherwise;
}

void sample_text(struct buf *b, const struct sample *s)
{
        buf_addf(b,
                 "{\"schema\":1,\"sandboxId\":\"%s\",\"organizationId\":\"o\",\"projectId\":\"p\","
                 "\"userId\":\"%s\",\"containerName\":\"hutch-%s\",\"createdAt\":%lld,"
                 "\"scope\":{\"kind\":\"shared-project-user\"},%s",
                 s->id, or_default(s->user, "u"), s->id, (long long) s->created_ms,
                 s->bound ? "\"ownerBound\":true," : "");
        buf_addf(b,
                 "\"tenant\":\"%s\",\"node\":\"%s\",\"driver\":\"%s\",\"image\":\"debian:12\","
                 "\"entrypoint\":[\"sh\"],",
                 or_default(s->tenant, "t"), or_default(s->node, RW_NODE),
                 or_default(s->driver, "fake"));
        if (s->metadata)
                buf_addf(b, "\"metadata\":{%s},", s->metadata);
        buf_addf(b, "\"status\":{\"state\":\"%s\",\"lastTransitionAt\":0},\"version\":1}",
                 state_to_string(s->state));
}

struct sandbox *sample_record(const struct sample *s)
{
        struct sandbox *record = NULL;
        struct err e = { 0 };
        struct buf b;

        buf_init(&b, STORE_VALUE_MAX);
        sample_text(&b, s);
        if (sandbox_decode(buf_str(&b), &record, &e) < 0)
                fail_msg("%s", e.message);
        buf_done(&b);
        return record;
}

struct owner sample_owner(const char *user)
{
        return (struct owner){ STR("o"), STR("p"), str_from(user), { 0 } };
}

struct sandbox *rw_changed(const struct registry *r, const char *id, enum state state)
{
        const struct sandbox *now = registry_peek(r, str_from(id));
        struct sandbox *next;

        check_true(now != NULL);
        next = sandbox_copy(now);
        next->status.state = (int) state;
        return next;
}

/* --- calls that wait --- */

struct waiting {
        union {
                struct registry_req req;
                struct registry_register reg;
                struct registry_update update;
                struct registry_unregister unregister;
                struct registry_get get;
                struct registry_load load;
        };
        char *id;      /* of what was found */
        char *damaged; /* the key */
        bool done;
        int result;
};

static void waiting_done(struct op *op, int result)
{
        struct waiting *x = container_of(op, struct waiting, req.op);

        if (x->id && result == 0)
                (void) snprintf(x->id, 64, "%.*s", STR_ARG(x->get.record->id));
        if (x->damaged)
                (void) snprintf(x->damaged, 128, "%.*s", STR_ARG(x->load.damaged_key));
        x->result = result;
        x->done = true;
}

static int await(struct registry_world *w, struct waiting *x)
{
        check_false(x->done);
        world_until(&w->store, x->done);
        last_err = x->req.err;
        check_true(x->result == 0 || x->result == ERR_RETURN(x->req.err.code));
        return x->result;
}

int rw_register_record(struct registry_world *w, struct registry *r, struct sandbox *record)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        registry_register(r, &x.reg, record);
        (void) await(w, &x);
        memcpy(last_other_id, x.reg.other_id, sizeof(last_other_id));
        return x.result;
}

int rw_register(struct registry_world *w, const struct sample *s)
{
        return rw_register_record(w, w->r, sample_record(s));
}

int rw_update(struct registry_world *w, struct sandbox *next)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        registry_update(w->r, &x.update, next);
        return await(w, &x);
}

int rw_unregister(struct registry_world *w, const char *id)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        registry_unregister(w->r, &x.unregister, str_from(id));
        return await(w, &x);
}

int rw_get(struct registry_world *w, const char *id, char ret[static 64])
{
        struct waiting x = { .id = ret };

        ret[0] = '\0';
        op_init(&x.req.op, waiting_done);
        registry_get(w->r, &x.get, str_from(id));
        return await(w, &x);
}

int rw_find(struct registry_world *w, const char *user, char ret[static 64])
{
        struct waiting x = { .id = ret };
        struct owner owner = sample_owner(user);

        ret[0] = '\0';
        op_init(&x.req.op, waiting_done);
        registry_find_by_owner(w->r, &x.get, &owner);
        return await(w, &x);
}

int rw_load(struct registry_world *w, struct registry *r, struct registry_load *ret_load,
            char ret[static 128])
{
        struct waiting x = { .damaged = ret };

        ret[0] = '\0';
        op_init(&x.req.op, waiting_done);
        registry_load(r, &x.load);
        (void) await(w, &x);
        *ret_load = x.load;
        return x.result;
}

/* --- the store --- */

void rw_plan(struct registry_world *w, const struct store_failing_plan *plan)
{
        store_failing_plan(w->store.store, plan);
}

void rw_put(struct registry_world *w, const char *key, const char *value)
{
        check_i64_eq(world_put(&w->store, str_from(key), str_from(value), NULL), 0);
}

void rw_put_sample(struct registry_world *w, const struct sample *s)
{
        struct buf b;
        char key[128];

        buf_init(&b, STORE_VALUE_MAX);
        sample_text(&b, s);
        (void) snprintf(key, sizeof(key), "sandbox:registry:%s", s->id);
        check_i64_eq(world_put(&w->store, str_from(key), buf_str(&b), NULL), 0);
        buf_done(&b);
}

void rw_text(struct registry_world *w, const char *key, struct buf *ret)
{
        buf_reset(ret);
        if (world_get(&w->store, str_from(key), ret, NULL) < 0)
                buf_reset(ret);
}

bool rw_has(struct registry_world *w, const char *key)
{
        return world_get(&w->store, str_from(key), NULL, NULL) == 0;
}

size_t rw_stored(struct registry_world *w, const char *prefix)
{
        struct buf b;
        size_t n;

        buf_init(&b, 64 * MiB);
        world_keys(&w->store, str_from(prefix), STORE_SCAN_MAX, &b);
        n = b.n > 0;
        for (size_t i = 0; i < b.n; i++)
                n += buf_str(&b).p[i] == ' ';
        buf_done(&b);
        return n;
}
