/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/store_memory.h"

#include "base/base.h"
#include "base/tree.h"
#include "store/store_impl.h"

/*
 * Entries in a tree. Versions come from one counter for all keys, so a removed key leaves nothing
 * behind and still never sees a version again.
 */

struct memory {
        struct store store;
        struct tree entries;
        uint64_t version; /* the last one given */
        size_t bytes;     /* of all entries, by entry_cost */
        size_t bytes_max;
};

struct entry {
        struct tree_node node;
        uint64_t version;
        size_t value_n;
        char *value;
        char key[];
};

static size_t entry_cost(size_t key_n, size_t value_n)
{
        return sizeof(struct entry) + key_n + value_n;
}

static struct entry *entry_of(struct tree_node *n)
{
        return n ? container_of(n, struct entry, node) : NULL;
}

static struct entry *entry_get(struct memory *m, struct str key)
{
        return entry_of(tree_get(&m->entries, key));
}

static void entry_free(struct memory *m, struct entry *entry)
{
        tree_remove(&m->entries, &entry->node);
        m->bytes -= entry_cost(entry->node.key.n, entry->value_n);
        free(entry->value);
        free(entry);
}

static struct entry *entry_new(struct memory *m, struct str key)
{
        struct entry *entry = xcalloc(1, sizeof(*entry) + key.n);

        memcpy(entry->key, key.p, key.n);
        tree_add(&m->entries, &entry->node, str_of(entry->key, key.n));
        m->bytes += entry_cost(key.n, 0);
        return entry;
}

/* What is there is replaced only once the new value is safe. */
static int write_entry(struct memory *m, struct store_req *req, struct str key, struct str value,
                       uint64_t *ret_version)
{
        struct entry *entry = entry_get(m, key);
        size_t before = entry ? entry_cost(key.n, entry->value_n) : 0;
        char *copy = NULL;

        if (m->bytes - before + entry_cost(key.n, value.n) > m->bytes_max)
                return err_set(&req->err, ERR_EXHAUSTED,
                               "the store in memory is full: %zu of %zu bytes", m->bytes,
                               m->bytes_max);
        if (value.n > 0) {
                copy = malloc(value.n);
                if (!copy)
                        return err_set(&req->err, ERR_EXHAUSTED, "no memory for a value");
                memcpy(copy, value.p, value.n);
        }
        if (!entry)
                entry = entry_new(m, key);
        m->bytes += value.n - entry->value_n;
        free(entry->value);
        entry->value = copy;
        entry->value_n = value.n;
        entry->version = ++m->version;
        *ret_version = entry->version;
        return 0;
}

static int memory_get(struct memory *m, struct store_get *g)
{
        struct entry *entry = entry_get(m, g->key);

        if (!entry)
                return store_fail_not_found(&g->req);
        return store_get_set(g, str_of(entry->value, entry->value_n), entry->version);
}

static int memory_remove(struct memory *m, struct store_remove *r)
{
        struct entry *entry = entry_get(m, r->key);

        if (r->expected != STORE_ANY && (!entry || entry->version != r->expected))
                return store_fail_conflict(&r->req);
        if (entry)
                entry_free(m, entry);
        return 0;
}

static int memory_cas(struct memory *m, struct store_cas *c)
{
        struct entry *entry = entry_get(m, c->key);

        if ((entry ? entry->version : STORE_ABSENT) != c->expected)
                return store_fail_conflict(&c->req);
        return write_entry(m, &c->req, c->key, c->value, &c->version);
}

static int memory_scan(struct memory *m, struct store_scan *sc)
{
        bool exclusive;
        struct str start = store_scan_start(sc, &exclusive);
        struct tree_node *n = exclusive ? tree_after(&m->entries, start)
                                        : tree_from(&m->entries, start);

        for (; n && str_starts_with(n->key, sc->prefix); n = tree_after(&m->entries, n->key)) {
                struct entry *entry = entry_of(n);
                struct str value = str_of(entry->value, entry->value_n);

                if (!store_scan_add(sc, (struct store_entry){ n->key, value, entry->version }))
                        break;
        }
        return store_scan_result(sc);
}

static int memory_call(struct memory *m, struct store_req *req)
{
        struct store_put *p;

        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                return memory_get(m, STORE_AS(get, req));
        case STORE_CALL_PUT:
                p = STORE_AS(put, req);
                return write_entry(m, req, p->key, p->value, &p->version);
        case STORE_CALL_REMOVE:
                return memory_remove(m, STORE_AS(remove, req));
        case STORE_CALL_CAS:
                return memory_cas(m, STORE_AS(cas, req));
        case STORE_CALL_SCAN:
                return memory_scan(m, STORE_AS(scan, req));
        case STORE_CALL_MAX_:
        default:
                ASSERT(!"a call that does not exist");
        }
}

static void memory_run(struct store *s)
{
        struct memory *m = container_of(s, struct memory, store);

        for (struct store_req *req; (req = store_next(s));)
                store_finish(req, memory_call(m, req));
}

static void memory_free(struct store *s)
{
        struct memory *m = container_of(s, struct memory, store);

        while (m->entries.n > 0)
                entry_free(m, entry_of(tree_take_any(&m->entries)));
        free(m);
}

static const struct store_ops store_memory = {
        .name = "memory",
        .run = memory_run,
        .free = memory_free,
};

struct store *store_memory_open(struct net_loop *loop, size_t max_bytes)
{
        struct memory *m = xnew(struct memory);

        store_init(&m->store, &store_memory, loop);
        tree_init(&m->entries);
        m->bytes_max = max_bytes;
        return &m->store;
}
