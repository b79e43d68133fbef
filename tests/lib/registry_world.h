/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_REGISTRY_WORLD_H
#define HUTCH_TESTS_LIB_REGISTRY_WORLD_H

/*
 * A registry on a store in memory that can be made to fail, and its calls as functions that wait.
 *
 *         struct registry_world w;
 *         rw_open(&w);
 *         check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
 *
 * A second registry on the same store is a second process: rw_other.
 */

#include "registry/registry.h"
#include "tests/lib/clock_fake.h"
#include "tests/lib/store_failing.h"
#include "tests/lib/store_world.h"

#define RW_NODE "n1"

struct registry_world {
        struct store_world store;
        struct clock_fake clock;
        struct registry *r;
        struct registry *others[4];
        size_t n_others;
};

/* Loaded, and empty. */
void rw_open(struct registry_world *w);
void rw_close(struct registry_world *w);

/* As after a crash: the same store, another registry, not loaded yet. */
void rw_restart(struct registry_world *w);

/* Another process, of that node, on the same store; not loaded. */
struct registry *rw_other(struct registry_world *w, const char *node);

/* What a test wants to say about a record; the rest is filled in. */
struct sample {
        const char *id;
        const char *tenant;   /* NULL: "t" */
        const char *node;     /* NULL: RW_NODE */
        const char *driver;   /* NULL: "fake" */
        const char *user;     /* NULL: "u" */
        const char *metadata; /* the inside of an object; NULL: none */
        bool bound;
        int state; /* enum state */
        int64_t created_ms;
};

/* The text as it is stored, and the record; the latter is the caller's. */
void sample_text(struct buf *b, const struct sample *s);
struct sandbox *sample_record(const struct sample *s);
struct owner sample_owner(const char *user);

/* --- calls that wait --- */

/* What the last call said; other_id of the last register. */
const struct err *rw_err(void);
const char *rw_other_id(void);

int rw_register(struct registry_world *w, const struct sample *s);
int rw_register_record(struct registry_world *w, struct registry *r, struct sandbox *record);
int rw_update(struct registry_world *w, struct sandbox *next);
int rw_unregister(struct registry_world *w, const char *id);

/* The id of what was found in ret, which may be NULL. */
int rw_get(struct registry_world *w, const char *id, char ret[static 64]);
int rw_find(struct registry_world *w, const char *user, char ret[static 64]);

/* The damaged key in ret, "" if there is none. */
int rw_load(struct registry_world *w, struct registry *r, struct registry_load *ret_load,
            char ret[static 128]);

/* A changed copy: another state, or another user's label. */
struct sandbox *rw_changed(const struct registry *r, const char *id, enum state state);

/* --- the store --- */

/* Puts a record, or any text, beside the registry. */
void rw_put(struct registry_world *w, const char *key, const char *value);
void rw_put_sample(struct registry_world *w, const struct sample *s);

/* "key=value", of small values, or "" if there is none. */
void rw_text(struct registry_world *w, const char *key, struct buf *ret);
bool rw_has(struct registry_world *w, const char *key);
size_t rw_stored(struct registry_world *w, const char *prefix);

void rw_plan(struct registry_world *w, const struct store_failing_plan *plan);

#endif
