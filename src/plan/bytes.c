/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/bytes.h"

#include "base/base.h"

void bytes_put_number(struct buf *b, uint64_t v, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                buf_add_char(b, (char) (v >> (8 * i) & 0xff));
}

void bytes_put_piece(struct buf *b, struct str s)
{
        bytes_put_number(b, s.n, 4);
        buf_add(b, s.p, s.n);
}

void bytes_put_text(struct buf *b, const char *z)
{
        bytes_put_piece(b, str_from(z));
}

uint64_t bytes_number(struct bytes *r, size_t bytes)
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

struct str bytes_piece(struct bytes *r)
{
        uint64_t n = bytes_number(r, 4);
        struct str s;

        if (r->failed || n > r->left.n) {
                r->failed = true;
                return STR("");
        }
        s = str_of(r->left.p, n);
        r->left = str_skip(r->left, n);
        return s;
}

const char *bytes_text(struct bytes *r)
{
        struct str s = bytes_piece(r);
        char *z = NULL;

        if (!r->failed && !memchr(s.p, 0, s.n))
                z = arena_dup(r->arena, s);
        r->failed |= !z;
        return z ? z : "";
}
