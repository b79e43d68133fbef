/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_BUF_H
#define HUTCH_BASE_BUF_H

/*
 * A growable byte buffer with a maximum.
 *
 * No buffer exists without its maximum: what an outsider sends can fill it, never more. An append
 * that would pass the maximum (or that finds no memory) adds nothing and marks the buffer as
 * failed; further appends do nothing either. So a sequence of appends needs one question at its
 * end, and the content before the failure is intact:
 *
 *         struct buf b;
 *         buf_init(&b, BUF_MAX_JSON);
 *         buf_add_str(&b, STR("id="));
 *         buf_add_hex(&b, id, sizeof(id));
 *         if (buf_failed(&b))
 *                 ...
 *         buf_done(&b);
 *
 * Memory is taken with the first append and doubles. One NUL always follows the content, for
 * debuggers and C strings; the content may hold NULs of its own and nothing relies on it.
 * A buffer that was consumed to its end can give its memory back (buf_release), so that an idle
 * connection costs none.
 */

#include <stdarg.h>

#include "base/compiler.h"
#include "base/str.h"

struct buf {
        char *p;      /* content starts at p + start */
        size_t start; /* bytes consumed from the front */
        size_t n;     /* bytes of content */
        size_t size;  /* bytes allocated, the NUL's place included; 0 before the first append */
        size_t max;   /* content never exceeds this */
        bool failed;
        bool no_memory; /* why it failed: not for its maximum, but there was no memory */
        bool fixed;     /* p belongs to the caller */
        bool secret;    /* see buf_mark_secret */
};

/* --- life cycle --- */

void buf_init(struct buf *b, size_t max);

/* A buffer over the caller's storage, which it neither grows nor frees: holds up to size - 1 bytes.
 * For texts of a known small maximum, where allocating would be waste. */
void buf_init_fixed(struct buf *b, char *storage, size_t size);

/* Frees the memory; the buffer may be used again, with the same maximum. Also for scoped(). */
void buf_done(struct buf *b);

/* For a buffer that will hold a secret: from now on memory is wiped before it is given back, also
 * when a larger piece takes its place. Holds until buf_init. */
void buf_mark_secret(struct buf *b);

/* Empties the buffer and keeps its memory; forgets a failure. */
void buf_reset(struct buf *b);

/* Gives the memory back if there is no content. */
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

/* "text" with quotes, in JSON's escapes: control characters (DEL and U+0080 to U+009F among them,
 * with which terminals are steered), quotes, backslashes, U+2028 and U+2029, which some readers
 * take for line ends, and the marks that turn the direction of writing. Each byte of invalid UTF-8
 * becomes U+FFFD. What comes out is one line of printable text, whatever went in. */
void buf_add_quoted(struct buf *b, struct str s);

/* The same in at most `max` bytes, quotes included: a longer text is cut between two characters and
 * ends in "…". Returns whether it was cut. max is at least BUF_QUOTED_MIN. */
bool buf_add_quoted_cut(struct buf *b, struct str s, size_t max);
#define BUF_QUOTED_MIN 8

/* Makes room for n more bytes and returns where they go, or NULL (the buffer then is failed).
 * buf_advance says how many of them were really written. */
char *buf_reserve(struct buf *b, size_t n) must_check;
void buf_advance(struct buf *b, size_t n);

/* Drops n bytes from the front. Costs nothing: content moves only when room is needed. */
void buf_consume(struct buf *b, size_t n);

/* Cuts the content to its first n bytes; for taking back an unfinished append. */
void buf_truncate(struct buf *b, size_t n);

#endif
