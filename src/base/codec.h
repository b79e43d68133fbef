/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_CODEC_H
#define HUTCH_BASE_CODEC_H

/*
 * Binary encoding of messages between our processes, and of what they keep on disk.
 *
 * Numbers are little-endian, in as many bytes as their type has. A string is its length (u32) and
 * its bytes. Each value has exactly one encoding, and nothing is padded or aligned.
 *
 * Writing appends to a struct buf, which has a maximum and remembers a failure. Reading takes
 * values off the front of a view; a read past the end fails the reader, which stays failed, and
 * yields 0 or an empty string. So both a sequence of writes and a sequence of reads need one check at
 * their end:
 *
 *         codec_put_u32(&b, id);
 *         codec_put_str(&b, name);
 *         if (buf_failed(&b)) …
 *
 *         struct codec_reader r = { .left = message };
 *         id = codec_u32(&r);
 *         name = codec_str(&r);
 *         if (!codec_complete(&r)) …
 *
 * A decoder that finds a value it does not accept sets `failed` itself.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

/* --- writing --- */

/* A number that does not fit, or a string of more than UINT32_MAX bytes, fails the buffer. */
void codec_put_u8(struct buf *b, uint64_t v);
void codec_put_u16(struct buf *b, uint64_t v);
void codec_put_u32(struct buf *b, uint64_t v);
void codec_put_u64(struct buf *b, uint64_t v);
void codec_put_str(struct buf *b, struct str s);
void codec_put_cstr(struct buf *b, const char *z);

/* --- reading --- */

struct codec_reader {
        struct str left;
        struct arena *arena; /* for codec_cstr only */
        bool failed;
};

uint8_t codec_u8(struct codec_reader *r);
uint16_t codec_u16(struct codec_reader *r);
uint32_t codec_u32(struct codec_reader *r);
uint64_t codec_u64(struct codec_reader *r);

/* A view into the input; never the null view. */
struct str codec_str(struct codec_reader *r);

/* A NUL-terminated copy in the arena; never NULL. A string with a NUL in it fails the reader. */
const char *codec_cstr(struct codec_reader *r);

/* Whether nothing failed and nothing is left. */
static inline bool codec_complete(const struct codec_reader *r)
{
        return !r->failed && r->left.n == 0;
}

#endif
