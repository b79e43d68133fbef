/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The multipart parser tells the same story however its input is cut. The first byte chooses the
 * boundary and the limits, the second the size of the pieces.
 */

#include "tests/fuzz/fuzz.h"

#include "tests/lib/multipart_trace.h"

static const struct str boundaries[] = {
        STR("b"),
        STR("--"),
        STR("AaB03x"),
        STR("0123456789012345678901234567890123456789012345678901234567890123456789"),
};

static const struct multipart_limits narrow = {
        .parts_max = 3,
        .header_bytes_max = 64,
        .headers_max = 2,
        .epilogue_max = 8,
};

static void same_with(struct str boundary, struct str in, struct cut cut,
                      const struct multipart_limits *limits, struct str want)
{
        struct buf log;

        multipart_trace_run(boundary, in, cut, limits, &log);
        ASSERT(str_eq(buf_str(&log), want));
        buf_done(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        const struct multipart_limits *limits;
        struct str in, boundary;
        struct buf log;

        if (n < 2)
                return 0;
        in = str_of((const char *) p + 2, n - 2);
        boundary = boundaries[p[0] % ARRAY_SIZE(boundaries)];
        limits = p[0] & 0x80 ? &narrow : NULL;

        multipart_trace_run(boundary, in, CUT_NONE, limits, &log);
        same_with(boundary, in, CUT_BYTES, limits, buf_str(&log));
        same_with(boundary, in, CUT_EVERY((size_t) p[1] + 1), limits, buf_str(&log));
        same_with(boundary, in, CUT_AT((size_t) p[1] + 1), limits, buf_str(&log));
        buf_done(&log);

        if (multipart_boundary(in, &boundary) == 0)
                ASSERT(boundary.n >= 1 && boundary.n <= MULTIPART_BOUNDARY_MAX
                       && !memchr(boundary.p, '\r', boundary.n));
        return 0;
}
