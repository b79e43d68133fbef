/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ARENA_H
#define HUTCH_BASE_ARENA_H

/*
 * The memory of one request: taken piece by piece, given back at once.
 *
 * An arena has a maximum, because an outsider decides how much a request needs; past it, every
 * call returns NULL. Nothing in an arena is freed alone, and nothing that outlives the request may
 * point into one: copy it out.
 *
 * Memory comes in blocks of ARENA_BLOCK bytes, a larger piece in a block of its own. arena_reset
 * keeps one ordinary block, so that a busy connection allocates nothing per request. Under the
 * address sanitizer what was not taken, or was taken before a reset, is poisoned.
 */

#include <stdarg.h>

#include "base/compiler.h"
#include "base/str.h"

#define ARENA_BLOCK 4096 /* header included: one page */

struct arena_block;

struct arena {
        struct arena_block *blocks; /* newest first */
        char *p;                    /* next free byte of the newest block */
        size_t left;
        char *last;  /* piece taken last, if it ends at p; for arena_append */
        size_t used; /* sum of block sizes, held against max */
        size_t max;
        size_t first; /* see arena_init_small */
};

/* --- life cycle --- */

void arena_init(struct arena *a, size_t max);

/* For what there are many of, and which stay: the first block has `first` bytes, header included, and
 * the next are as large as all before, up to the ordinary size. */
void arena_init_small(struct arena *a, size_t max, size_t first);
void arena_done(struct arena *a);

/* The same for one that held secrets: what was in it is overwritten first. */
void arena_wipe(struct arena *a);

/* Forgets everything but keeps one block of the ordinary size for what comes next. */
void arena_reset(struct arena *a);

/* --- taking memory: NULL when the maximum or memory is reached --- */

void *arena_alloc(struct arena *a, size_t n) must_check; /* aligned for any type, not zeroed */
void *arena_zalloc(struct arena *a, size_t n) must_check;
void *arena_alloc_array(struct arena *a, size_t n, size_t size) must_check; /* overflow-checked */

/* NUL-terminated copies. */
char *arena_strdup(struct arena *a, const char *z) must_check;
char *arena_dup(struct arena *a, struct str s) must_check;
struct str arena_dup_str(struct arena *a, struct str s) must_check; /* the null view on failure */
char *arena_printf(struct arena *a, const char *fmt, ...) must_check printf_like(2, 3);

/* Appends to the piece at (p, n), in place if it was the last one taken, else by copying (with room
 * to grow, so that many fragments cost no more than one text). The result is NUL-terminated; its
 * length is n + more.n. p may be NULL with n == 0. On failure the old piece is intact. */
char *arena_append(struct arena *a, char *p, size_t n, struct str more) must_check;

#define arena_new(a, type) ((type *) arena_zalloc((a), sizeof(type)))

#endif
