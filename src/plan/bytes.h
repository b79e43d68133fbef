/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_BYTES_H
#define HUTCH_PLAN_BYTES_H

/*
 * How facts are written as bytes, for messages and for the warden's own notes: numbers little-endian in
 * as many bytes as their field has; a text or a piece of bytes is its length (32 bits) and itself. There
 * is one encoding of each value.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

void bytes_put_number(struct buf *b, uint64_t v, size_t bytes);
void bytes_put_text(struct buf *b, const char *z);
void bytes_put_piece(struct buf *b, struct str s);

/* What is left to be read. A read past the end fails it, and it stays failed; what was read then is
 * zero or empty. So a sequence of reads needs one question at its end. */
struct bytes {
        struct str left;
        struct arena *arena; /* of texts, which are copied */
        bool failed;
};

uint64_t bytes_number(struct bytes *r, size_t bytes);

/* NUL-terminated, without a NUL inside; never NULL. */
const char *bytes_text(struct bytes *r);

/* A view into what is read. */
struct str bytes_piece(struct bytes *r);

/* Nothing failed, and nothing is left. */
static inline bool bytes_complete(const struct bytes *r)
{
        return !r->failed && r->left.n == 0;
}

#endif
