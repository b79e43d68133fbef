/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tar reader yields the same events however its input is cut. So that mutations get past the
 * checksums, those of blocks that look like headers are put right first if the first byte is odd;
 * the second one is the size of the pieces.
 */

#include "tests/fuzz/fuzz.h"

#include "tests/lib/tar_trace.h"

#define CHECKSUM_AT 148

static void mend(unsigned char *block)
{
        unsigned sum = 0;
        char text[8];

        memset(block + CHECKSUM_AT, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += block[i];
        (void) snprintf(text, sizeof(text), "%06o", sum);
        memcpy(block + CHECKSUM_AT, text, 7);
}

static void mend_all(unsigned char *p, size_t n)
{
        for (size_t at = 0; at + TAR_BLOCK <= n; at += TAR_BLOCK)
                if (memcmp(p + at + 257, "ustar", 5) == 0)
                        mend(p + at);
}

static void same_with(struct str in, struct cut cut, struct str want)
{
        struct buf log;

        (void) tar_trace_run(in, cut, &log);
        ASSERT(str_eq(buf_str(&log), want));
        buf_done(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        unsigned char *copy;
        struct buf log;
        struct str in;

        if (n < 2)
                return 0;
        copy = xcalloc(1, n);
        memcpy(copy, p, n);
        if (p[0] & 1)
                mend_all(copy + 2, n - 2);
        in = str_of((const char *) copy + 2, n - 2);
        (void) tar_trace_run(in, CUT_NONE, &log);
        if (n < 8192)
                same_with(in, CUT_BYTES, buf_str(&log));
        same_with(in, CUT_EVERY((size_t) p[1] + 1), buf_str(&log));
        same_with(in, CUT_AT((size_t) p[1] + 1), buf_str(&log));
        buf_done(&log);
        free(copy);
        return 0;
}
