/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#include "base/banned.h"

static void put_number(struct buf *b, uint64_t v, size_t bytes)
{
        char *p = buf_reserve(b, bytes);

        if (bytes < sizeof(v) && v >> (8 * bytes) != 0)
                b->failed = true;
        if (!p || b->failed)
                return;
        for (size_t i = 0; i < bytes; i++)
                p[i] = (char) (v >> (8 * i) & 0xff);
        buf_advance(b, bytes);
}

void codec_put_u8(struct buf *b, uint64_t v)
{
        put_number(b, v, 1);
}

void codec_put_u16(struct buf *b, uint64_t v)
{
        put_number(b, v, 2);
}

void codec_put_u32(struct buf *b, uint64_t v)
{
        put_number(b, v, 4);
}

void codec_put_u64(struct buf *b, uint64_t v)
{
        put_number(b, v, 8);
}

void codec_put_str(struct buf *b, struct str s)
{
        put_number(b, s.n, 4);
        buf_add_str(b, s);
}

void codec_put_cstr(struct buf *b, const char *z)
{
        codec_put_str(b, str_from(z));
}

static uint64_t take_number(struct codec_reader *r, size_t bytes)
{
        uint64_t v = 0;

        if (r->failed || r->left.n < bytes) {
                r->failed = true;
                return 0;
        }
        for (size_t i = 0; i < bytes; i++)
                v |= (uint64_t) (unsigned char) r->left.p[i] << (8 * i);
        r->left = str_skip(r->left, bytes);
        return v;
}

uint8_t codec_u8(struct codec_reader *r)
{
        return (uint8_t) take_number(r, 1);
}

uint16_t codec_u16(struct codec_reader *r)
{
        return (uint16_t) take_number(r, 2);
}

uint32_t codec_u32(struct codec_reader *r)
{
        return (uint32_t) take_number(r, 4);
}

uint64_t codec_u64(struct codec_reader *r)
{
        return take_number(r, 8);
}

struct str codec_str(struct codec_reader *r)
{
        uint32_t n = codec_u32(r);
        struct str s;

        if (r->failed || n > r->left.n) {
                r->failed = true;
                return STR("");
        }
        s = str_of(r->left.p, n);
        r->left = str_skip(r->left, n);
        return s;
}

const char *codec_cstr(struct codec_reader *r)
{
        struct str s = codec_str(r);
        char *z = NULL;

        if (!r->failed && !memchr(s.p, 0, s.n))
                z = arena_dup(r->arena, s);
        r->failed |= !z;
        return z ? z : "";
}
