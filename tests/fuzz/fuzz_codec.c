/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "base/codec.h"

/* Each byte of the first half names a value to be read from the second. What was read and is written
 * again has the same bytes: there is one encoding. */

static void copy_value(struct codec_reader *r, unsigned kind, struct buf *out)
{
        struct codec_reader before = *r;

        switch (kind % 6) {
        case 0:
                codec_put_u8(out, codec_u8(r));
                break;
        case 1:
                codec_put_u16(out, codec_u16(r));
                break;
        case 2:
                codec_put_u32(out, codec_u32(r));
                break;
        case 3:
                codec_put_u64(out, codec_u64(r));
                break;
        case 4:
                codec_put_str(out, codec_str(r));
                break;
        default:
                codec_put_cstr(out, codec_cstr(r));
        }
        ASSERT(!before.failed || r->failed);
        ASSERT(r->failed || r->left.n < before.left.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        const size_t kinds = n / 2;
        const struct str input = str_of((const char *) p + kinds, n - kinds);
        scoped(arena_done) struct arena a;
        scoped(buf_done) struct buf out;
        struct codec_reader r = { .left = input, .arena = &a };
        size_t good = 0;

        arena_init(&a, 1 * MiB);
        buf_init(&out, 1 * MiB);
        for (size_t i = 0; i < kinds && !r.failed; i++) {
                copy_value(&r, p[i], &out);
                if (!r.failed)
                        good = out.n;
        }
        ASSERT(good <= input.n && memcmp(buf_str(&out).p, input.p, good) == 0);
        return 0;
}
