/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chunked bodies, streamed and collected, and what may follow them on the connection: the same
 * story however the input is cut. The first byte chooses the pieces and the kind of handler.
 */

#include "tests/fuzz/fuzz.h"

#include "tests/lib/conn_trace.h"

#define HEAD(path) "POST " path " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static struct conn_trace trace;
        struct buf input, complete, cut;

        if (!trace.server)
                conn_trace_init(&trace);
        if (n < 1)
                return 0;
        buf_init(&input, n + 200);
        buf_add_str(&input, p[0] & 1 ? STR(HEAD("/stream")) : STR(HEAD("/collect")));
        buf_add(&input, p + 1, n - 1);
        conn_trace_run(&trace, buf_str(&input), CUT_NONE, &complete);
        conn_trace_run(&trace, buf_str(&input), CUT_EVERY((size_t) (p[0] >> 1) + 1), &cut);
        ASSERT(str_eq(buf_str(&complete), buf_str(&cut)));
        buf_done(&input);
        buf_done(&complete);
        buf_done(&cut);
        return 0;
}
