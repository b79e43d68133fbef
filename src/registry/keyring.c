/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/keyring.h"

#include "base/base.h"
#include "base/map.h"
#include "base/tree.h"
#include "model/text.h"
#include "registry/store_keys.h"
#include "registry/verified_write.h"

static const char *const role_names[] = {
        [ROLE_READ] = "read",
        [ROLE_USER] = "user",
        [ROLE_ADMIN] = "admin",
};
ENUM_TABLE(role, role_names, ROLE_MAX_);

enum key_state {
        KEY_ADDING, /* not stored yet: invisible */
        KEY_OPEN,
        KEY_REMOVING, /* listed, not accepted */
        KEY_CLOSED,   /* the same: it could not be removed */
};

struct key {
        struct api_key key;
        enum key_state state;
        uint64_t round; /* the load that has seen it, or that was the last when it was made */
        struct tree_node by_id;
        struct map_node by_digest; /* of those that are open */
        char text[];
};

struct keyring {
        struct net_loop *loop;
        struct store *store;
        struct tree by_id;
        struct map by_digest;
        size_t under_way;
        uint64_t round; /* of loads */
        bool enforced;
};

/* --- one key --- */

static const struct json_field key_fields[] = {
        JSON_STR(struct api_key, id, "id", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct api_key, name, "name", 0),
        JSON_STR(struct api_key, tenant, "tenant", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct api_key, principal, "principal", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_ENUM(struct api_key, role, "role", JSON_REQUIRED, &role_table),
        JSON_I64(struct api_key, created_ms, "createdAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_END,
};

static int check_key(const struct api_key *k, struct err *e)
{
        const struct {
                const char *name;
                struct str value;
                bool may_be_empty;
        } texts[] = {
                { "id", k->id, false },
                { "name", k->name, true },
                { "tenant", k->tenant, false },
                { "principal", k->principal, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                if (texts[i].may_be_empty && texts[i].value.n == 0)
                        continue;
                if (!text_is_clean(texts[i].value, NAME_MAX_TEXT))
                        return err_set(e, ERR_INVALID,
                                       "%s of an API key: must be 1 to %d bytes of text without "
                                       "control characters",
                                       texts[i].name, NAME_MAX_TEXT);
        }
        if (!role_to_string(k->role))
                return err_set(e, ERR_INVALID, "role of an API key: unknown");
        if (k->created_ms < 0)
                return err_set(e, ERR_INVALID, "createdAt of an API key: before 1970");
        return 0;
}

static struct str put_text(char **at, struct str s)
{
        struct str copy = str_of(*at, s.n);

        if (s.n > 0)
                memcpy(*at, s.p, s.n);
        *at += s.n + 1;
        return copy;
}

static struct key *key_copy(const struct api_key *from)
{
        size_t n = from->id.n + from->name.n + from->tenant.n + from->principal.n + 4;
        struct key *k = xcalloc(1, sizeof(*k) + n);
        char *at = k->text;

        k->key = *from;
        k->key.id = put_text(&at, from->id);
        k->key.name = put_text(&at, from->name);
        k->key.tenant = put_text(&at, from->tenant);
        k->key.principal = put_text(&at, from->principal);
        return k;
}

static struct str digest_of(const struct api_key *k)
{
        return str_of((const char *) k->digest, sizeof(k->digest));
}

static struct key *find_id(const struct keyring *kr, struct str id)
{
        struct tree_node *n = tree_get(&kr->by_id, id);

        return n ? container_of(n, struct key, by_id) : NULL;
}

static struct key *find_digest(const struct keyring *kr, struct str digest)
{
        struct map_node *n = map_get(&kr->by_digest, digest);

        return n ? container_of(n, struct key, by_digest) : NULL;
}

/* --- the ring --- */

static void key_enter(struct keyring *kr, struct key *k)
{
        k->state = KEY_ADDING;
        tree_add(&kr->by_id, &k->by_id, k->key.id);
}

/* A key that the configuration has as well is accepted as that one. */
static void key_open(struct keyring *kr, struct key *k)
{
        bool taken = find_digest(kr, digest_of(&k->key));

        k->state = taken ? KEY_CLOSED : KEY_OPEN;
        k->round = kr->round;
        if (!taken)
                map_add(&kr->by_digest, &k->by_digest, digest_of(&k->key));
        kr->enforced = true;
}

static void key_free(struct keyring *kr, struct key *k)
{
        tree_remove(&kr->by_id, &k->by_id);
        map_remove(&kr->by_digest, &k->by_digest);
        free(k);
}

struct keyring *keyring_new(struct net_loop *loop, struct store *store)
{
        struct keyring *kr = xnew(struct keyring);

        kr->loop = loop;
        kr->store = store;
        tree_init(&kr->by_id);
        map_init(&kr->by_digest);
        return kr;
}

void keyring_free(struct keyring *kr)
{
        struct tree_node *n;

        if (!kr)
                return;
        ASSERT(kr->under_way == 0);
        while ((n = tree_nth(&kr->by_id, 0)))
                key_free(kr, container_of(n, struct key, by_id));
        map_done(&kr->by_digest);
        free(kr);
}

/* --- queries --- */

const struct api_key *keyring_find(const struct keyring *kr, struct str text)
{
        static const uint8_t nothing[SHA256_SIZE];
        uint8_t digest[SHA256_SIZE];
        const struct key *k;
        bool same;

        sha256(text.p, text.n, digest);
        k = find_digest(kr, str_of((const char *) digest, sizeof(digest)));
        same = str_eq_secret(k ? digest_of(&k->key)
                               : str_of((const char *) nothing, sizeof(nothing)),
                             str_of((const char *) digest, sizeof(digest)));
        return k && same ? &k->key : NULL;
}

const struct api_key *keyring_next(const struct keyring *kr, struct str after)
{
        struct tree_node *n = tree_after(&kr->by_id, after);

        while (n && container_of(n, struct key, by_id)->state == KEY_ADDING)
                n = tree_after(&kr->by_id, n->key);
        return n ? &container_of(n, struct key, by_id)->key : NULL;
}

bool keyring_is_enforced(const struct keyring *kr)
{
        return kr->enforced;
}

const struct api_key *keyring_get(const struct keyring *kr, struct str id)
{
        const struct key *k = find_id(kr, id);

        return k && k->state == KEY_OPEN ? &k->key : NULL;
}

/* --- the configuration --- */

/* Into a ring of their own first, where duplicates are found. */
static int check_configured(const struct keyring *kr, const struct api_key *keys, size_t n,
                            struct keyring *fresh, struct err *e)
{
        for (size_t i = 0; i < n; i++) {
                const struct key *same_id = find_id(kr, keys[i].id);
                const struct key *same = find_digest(kr, digest_of(&keys[i]));
                struct key *k;
                int r = check_key(&keys[i], e);

                if (r < 0)
                        return r;
                if ((same_id && !same_id->key.configured) || (same && !same->key.configured))
                        return err_set(e, ERR_EXISTS, "API key %s is stored already",
                                       QUOTED(keys[i].id));
                if (find_id(fresh, keys[i].id) || find_digest(fresh, digest_of(&keys[i])))
                        return err_set(e, ERR_EXISTS, "API key %s is configured twice",
                                       QUOTED(keys[i].id));
                k = key_copy(&keys[i]);
                k->key.configured = true;
                key_enter(fresh, k);
                key_open(fresh, k);
        }
        return 0;
}

int keyring_configure(struct keyring *kr, const struct api_key *keys, size_t n, struct err *e)
{
        struct keyring *fresh = keyring_new(kr->loop, kr->store);
        int r = check_configured(kr, keys, n, fresh, e);
        struct tree_node *node = r == 0 ? tree_from(&kr->by_id, STR("")) : NULL;
        struct key *k;

        while (node) { /* the old ones */
                k = container_of(node, struct key, by_id);
                node = tree_after(&kr->by_id, node->key);
                if (k->key.configured)
                        key_free(kr, k);
        }
        while (r == 0 && (node = tree_take_any(&fresh->by_id))) {
                k = container_of(node, struct key, by_id);
                map_remove(&fresh->by_digest, &k->by_digest);
                key_enter(kr, k);
                key_open(kr, k);
        }
        keyring_free(fresh);
        return r;
}

/* --- operations --- */

#define STORED_KEY_SIZE (sizeof(API_KEY_PREFIX) + (size_t) 2 * SHA256_SIZE)

struct keyring_op {
        struct keyring *kr;
        struct registry_req *req;
        struct key *key;
        struct buf value;
        union {
                struct verified_write verified;
                struct store_walk walk;
        };
        char stored_key[STORED_KEY_SIZE];
};

static struct str stored_key(const struct api_key *k, char ret[static STORED_KEY_SIZE])
{
        size_t n = strlen(API_KEY_PREFIX);

        memcpy(ret, API_KEY_PREFIX, n);
        hex_encode(ret + n, k->digest, SHA256_SIZE);
        return str_of(ret, n + (size_t) 2 * SHA256_SIZE);
}

static void keyring_op_end(struct op *op, int result)
{
        struct registry_req *req = container_of(op, struct registry_req, op);
        struct keyring_op *w = req->_impl;

        w->kr->under_way--;
        op_unwrap(op, &req->_wrap, result); /* req and the ring may be gone */
        buf_done(&w->value);
        free(w);
}

static struct keyring_op *keyring_op_begin(struct keyring *kr, struct registry_req *req)
{
        struct keyring_op *w = xnew(struct keyring_op);

        w->kr = kr;
        w->req = req;
        buf_init(&w->value, STORE_VALUE_MAX);
        req->err = (struct err){ 0 };
        req->_impl = w;
        kr->under_way++;
        op_wrap(&req->op, &req->_wrap, keyring_op_end);
        op_begin(&req->op, kr->loop, /* cancel= */ NULL);
        return w;
}

/* --- add --- */

static void key_added(struct verified_write *s, int result)
{
        struct keyring_op *w = container_of(s, struct keyring_op, verified);

        if (result == 0) {
                key_open(w->kr, w->key);
                op_finish_now(&w->req->op, 0);
                return;
        }
        key_free(w->kr, w->key);
        if (result == ERR_RETURN(ERR_CONFLICT))
                result = err_set(&w->req->err, ERR_EXISTS, "there is already such an API key");
        else
                w->req->err = s->err;
        op_finish_now(&w->req->op, result);
}

void keyring_add(struct keyring *kr, struct keyring_add *a, const struct api_key *key)
{
        struct keyring_op *w = keyring_op_begin(kr, &a->req);
        int r = check_key(key, &a->req.err);

        if (r == 0 && (find_id(kr, key->id) || find_digest(kr, digest_of(key))))
                r = err_set(&a->req.err, ERR_EXISTS, "there is already such an API key");
        if (r < 0) {
                op_finish_now(&w->req->op, r);
                return;
        }
        w->key = key_copy(key);
        w->key->key.configured = false;
        key_enter(kr, w->key);
        json_encode(&w->value, key_fields, &w->key->key);
        ASSERT(!buf_failed(&w->value)); /* four short texts */
        w->verified.done = key_added;
        verified_write_start(&w->verified, kr->store, stored_key(key, w->stored_key), STORE_ABSENT,
                             buf_str(&w->value));
}

/* --- remove --- */

static void key_removed(struct verified_write *s, int result)
{
        struct keyring_op *w = container_of(s, struct keyring_op, verified);

        if (result == 0) {
                key_free(w->kr, w->key);
        } else {
                w->key->state = KEY_CLOSED;
                w->req->err = s->err;
        }
        op_finish_now(&w->req->op, result);
}

void keyring_remove(struct keyring *kr, struct keyring_remove *r, struct str id)
{
        struct keyring_op *w = keyring_op_begin(kr, &r->req);
        struct key *k = find_id(kr, id);
        struct err *e = &r->req.err;
        int result = 0;

        if (!k || k->state == KEY_ADDING)
                result = err_set(e, ERR_NOT_FOUND, "there is no API key %s", QUOTED(id));
        else if (k->key.configured)
                result = err_set(e, ERR_FORBIDDEN,
                                 "API key %s is in the configuration file; remove it there",
                                 QUOTED(id));
        else if (k->state == KEY_REMOVING)
                result = err_set(e, ERR_CONFLICT, "API key %s is being removed", QUOTED(id));
        if (result < 0) {
                op_finish_now(&w->req->op, result);
                return;
        }
        k->state = KEY_REMOVING;
        map_remove(&kr->by_digest, &k->by_digest);
        w->key = k;
        w->verified.done = key_removed;
        verified_write_start(&w->verified, kr->store, stored_key(&k->key, w->stored_key), STORE_ANY,
                             STR_NULL);
}

/* --- load --- */

/* The store's key ends with the digest. */
static bool read_digest(struct str hex, uint8_t ret[static SHA256_SIZE])
{
        static const struct str digits = { "0123456789abcdef", 16 };

        if (hex.n != (size_t) 2 * SHA256_SIZE)
                return false;
        for (size_t i = 0; i < hex.n; i++) {
                ssize_t digit = str_find(digits, hex.p[i]);

                if (digit < 0)
                        return false;
                ret[i / 2] = (uint8_t) (ret[i / 2] << 4 | digit);
        }
        return true;
}

/* False: it can't be read. One that is in memory with this id already is marked as seen. */
static bool take_key(struct keyring *kr, const struct store_entry *e)
{
        struct api_key key = { 0 };
        struct json_error je;
        struct arena a;
        struct key *k = NULL;
        bool ok;

        arena_init(&a, 64 * KiB);
        ok = read_digest(str_skip(e->key, strlen(API_KEY_PREFIX)), key.digest)
             && json_decode(e->value, key_fields, JSON_REFUSE_UNKNOWN, &a, &key, &je) == 0
             && check_key(&key, NULL) == 0;
        if (ok)
                k = find_id(kr, key.id);
        if (k && !k->key.configured && str_eq(digest_of(&k->key), digest_of(&key))) {
                k->round = kr->round;
        } else if (ok && !k && !find_digest(kr, digest_of(&key))) {
                k = key_copy(&key);
                key_enter(kr, k);
                key_open(kr, k);
        } else {
                ok = false;
        }
        arena_done(&a);
        return ok;
}

static void page_read(struct op *op, int result)
{
        struct store_walk *walk = store_walk_of(op, result);
        struct keyring_op *w = container_of(walk, struct keyring_op, walk);
        struct keyring_load *l = container_of(w->req, struct keyring_load, req);
        struct keyring *kr = w->kr;
        struct tree_node *n;

        if (result < 0)
                l->req.err = walk->scan.req.err;
        for (unsigned i = 0; result == 0 && i < walk->scan.n; i++) {
                bool taken = take_key(kr, &walk->scan.entries[i]);

                l->loaded += taken;
                l->damaged += !taken;
                kr->enforced = true;
        }
        if (result == 0 && store_walk_next(walk))
                return;
        /* At the end, those that another node has removed since the last load are dropped. */
        n = result == 0 ? tree_nth(&kr->by_id, 0) : NULL;
        while (n) {
                struct key *k = container_of(n, struct key, by_id);

                n = tree_after(&kr->by_id, n->key);
                if (!k->key.configured && k->round != kr->round
                    && (k->state == KEY_OPEN || k->state == KEY_CLOSED))
                        key_free(kr, k);
        }
        store_walk_done(walk);
        op_finish_now(&w->req->op, result);
}

void keyring_load(struct keyring *kr, struct keyring_load *l)
{
        struct keyring_op *w = keyring_op_begin(kr, &l->req);

        l->loaded = l->damaged = 0;
        kr->round++;
        store_walk(kr->store, &w->walk, STR(API_KEY_PREFIX), page_read);
}
