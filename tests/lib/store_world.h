/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_STORE_WORLD_H
#define HUTCH_TESTS_LIB_STORE_WORLD_H

/*
 * A loop, a store and a directory for tests, and the calls of a store as functions that wait: they
 * turn the loop until `done` was called and return the result.
 */

#include "store/store.h"

struct store_world;

/* How a member is opened. */
struct store_maker {
        const char *name;
        struct store *(*open)(struct store_world *w);
        bool reopen;                          /* world_pause closes and opens it */
        void (*pause)(struct store_world *w); /* what world_pause does instead, or NULL */
};

struct store_world {
        struct net_loop loop;
        struct store *store;
        const struct store_maker *maker;
        char dir[64];
        char path[80]; /* for a file in the directory, "…/store.db" */
};

/* With maker NULL no store is opened. */
void world_open(struct store_world *w, const struct store_maker *maker);
void world_close(struct store_world *w);

/* The opener of a store in the world's path, which must succeed. */
struct store *world_sqlite(struct store_world *w);

void world_close_store(struct store_world *w);

/* Between the steps of a test: a member that can is closed and opened again here. */
void world_pause(struct store_world *w);

/* Turns the loop until it is so. */
#define world_until(w, condition)                            \
        do {                                                 \
                while (!(condition))                         \
                        net_loop_run_once(&(w)->loop, true); \
        } while (0)

/* --- calls that wait --- */

int world_put(struct store_world *w, struct str key, struct str value, uint64_t *ret_version);
int world_cas(struct store_world *w, struct str key, uint64_t expected, struct str value,
              uint64_t *ret_version);
int world_remove(struct store_world *w, struct str key, uint64_t expected);

/* The value replaces what is in the buffer; both outputs may be NULL. */
int world_get(struct store_world *w, struct str key, struct buf *value, uint64_t *ret_version);

/* One page as text, "key=value key=value", in the buffer; *ret_more may be NULL. */
int world_page(struct store_world *w, struct store_scan *scan, struct buf *text);

/* All keys of the prefix by pages of `limit`, "key key key". */
void world_keys(struct store_world *w, struct str prefix, unsigned limit, struct buf *text);

/* What the last of these calls said. */
const struct err *world_err(void);

#endif
