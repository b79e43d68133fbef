/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_BUF_H
#define HUTCH_BASE_BUF_H

/*
 * A growable byte buffer with a maximum.
 *
 * Every buffer has a maximum: input from outside can fill it, never exceed it. An append that would
 * exceed the maximum (or that finds no memory) adds nothing and marks the buffer as failed; further
 * appends do nothing either. So a sequence of appends needs one check at its end, and the content
 * before the failure is intact:
 *
 *         struct buf b;
 *         buf_init(&b, BUF_MAX_JSON);
 *         buf_add_str(&b, STR("id="));
 *         buf_add_hex(&b, id, sizeof(id));
 *         if (buf_failed(&b))
 *                 ...
 *         buf_done(&b);
 *
 * Memory is allocated with the first append and doubles. One NUL always follows the content, for
 * debuggers and C strings; the content may contain NULs and nothing relies on it. A buffer that was
 * consumed to its end can free its memory (buf_release), so that an idle connection costs none.
 */

#include <stdarg.h>

#include "base/compiler.h"
#include "base/str.h"

struct buf {
        char *p;      /* content starts at p + start */
        size_t start; /* bytes consumed from the front */
        size_t n;     /* bytes of content */
        size_t size;  /* bytes allocated, the NUL included; 0 before the first append */
        size_t max;   /* content never exceeds this */
        bool failed;
        bool no_memory; /* it failed because there was no memory */
        bool fixed;     /* p belongs to the caller */
        bool secret;    /* see buf_mark_secret */
};

/* --- life cycle --- */

void buf_init(struct buf *b, size_t max);

/* A buffer over the caller's storage, which it neither grows nor frees: holds up to size - 1 bytes.
 * For texts of a known small maximum. */
void buf_init_fixed(struct buf *b, char *storage, size_t size);

/* Frees the memory; the buffer may be used again, with the same maximum. Also for scoped(). */
void buf_done(struct buf *b);

/* For a buffer that will hold a secret: from now on memory is wiped before it is freed, also when the
 * buffer grows. Lasts until buf_init. */
void buf_mark_secret(struct buf *b);

/* Empties the buffer, keeps its memory, and clears a failure. */
void buf_reset(struct buf *b);

/* Frees the memory if there is no content. */
void buf_release(struct buf *b);

/* --- queries --- */

static inline struct str buf_str(const struct buf *b)
{
        return (struct str){ b->p ? b->p + b->start : "", b->n };
}

static inline bool buf_failed(const struct buf *b)
{
        return b->failed;
}

/* How much may still be added. */
static inline size_t buf_room(const struct buf *b)
{
        return b->max - b->n;
}

/* --- changes --- */

void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) printf_like(2, 0);
void buf_add_u64(struct buf *b, uint64_t v);
void buf_add_hex(struct buf *b, const void *p, size_t n);

/* "text" with quotes and JSON escapes for control characters (including DEL and U+0080 to U+009F,
 * which control terminals), quotes, backslashes, U+2028 and U+2029, which some readers take for line
 * ends, and marks that change the direction of writing. Each byte of invalid UTF-8 becomes U+FFFD. The
 * result is one line of printable text for any input. */
void buf_add_quoted(struct buf *b, struct str s);

/* The same in at most `max` bytes, quotes included: a longer text is cut between two characters and
 * ends in "…". Returns whether it was cut. max must be at least BUF_QUOTED_MIN. */
bool buf_add_quoted_cut(struct buf *b, struct str s, size_t max);
#define BUF_QUOTED_MIN 8

/* Makes room for n more bytes and returns where they go, or NULL (the buffer then is failed).
 * buf_advance adds those that were written. */
char *buf_reserve(struct buf *b, size_t n) must_check;
void buf_advance(struct buf *b, size_t n);

/* Drops n bytes from the front. Cheap: content moves only when room is needed. */
void buf_consume(struct buf *b, size_t n);

/* Cuts the content to its first n bytes; for undoing an incomplete append. */
void buf_truncate(struct buf *b, size_t n);

#endif
