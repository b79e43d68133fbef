/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ARENA_H
#define HUTCH_BASE_ARENA_H

/*
 * The memory of one request: allocated piece by piece, freed at once.
 *
 * An arena has a maximum, because an outsider decides how much a request needs; past it, every
 * call returns NULL. No piece is freed alone, and nothing that outlives the request may point into an
 * arena: copy it out.
 *
 * Memory comes in blocks of ARENA_BLOCK bytes, a larger piece in a block of its own. arena_reset
 * keeps one ordinary block, so that a busy connection allocates nothing per request. Under the
 * address sanitizer, memory that is not allocated is poisoned.
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
        char *last;  /* newest piece, if it ends at p; for arena_append */
        size_t used; /* sum of block sizes, at most max */
        size_t max;
        size_t first; /* see arena_init_small */
};

/* --- life cycle --- */

void arena_init(struct arena *a, size_t max);

/* For many long-lived arenas: the first block has `first` bytes, header included, and each further
 * one is as large as all before it, up to the ordinary size. */
void arena_init_small(struct arena *a, size_t max, size_t first);
void arena_done(struct arena *a);

/* As arena_done, but overwrites the content first: it held secrets. */
void arena_wipe(struct arena *a);

/* Frees everything except one block of the ordinary size. */
void arena_reset(struct arena *a);

/* --- allocating: NULL at the maximum, or when there is no memory --- */

void *arena_alloc(struct arena *a, size_t n) must_check; /* aligned for any type, not zeroed */
void *arena_zalloc(struct arena *a, size_t n) must_check;
void *arena_alloc_array(struct arena *a, size_t n, size_t size) must_check; /* overflow-checked */

/* NUL-terminated copies. */
char *arena_strdup(struct arena *a, const char *z) must_check;
char *arena_dup(struct arena *a, struct str s) must_check;
struct str arena_dup_str(struct arena *a, struct str s) must_check; /* the null view on failure */
char *arena_printf(struct arena *a, const char *fmt, ...) must_check printf_like(2, 3);

/* Appends to the piece at (p, n), in place if it is the newest one, otherwise by copying (with room
 * to grow, so that many fragments cost no more than one text). The result is NUL-terminated; its
 * length is n + more.n. p may be NULL with n == 0. On failure the old piece is intact. */
char *arena_append(struct arena *a, char *p, size_t n, struct str more) must_check;

#define arena_new(a, type) ((type *) arena_zalloc((a), sizeof(type)))

#endif
