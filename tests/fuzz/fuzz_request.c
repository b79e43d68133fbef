/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A server connection understands the same however its input is cut: the same requests with the
 * same bodies reach the handlers, and as many are served and refused. The first byte
 * chooses the pieces.
 */

#include "tests/fuzz/fuzz.h"

#include "tests/lib/conn_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static struct conn_trace trace;
        struct buf complete, cut;
        struct str in;

        if (!trace.server)
                conn_trace_init(&trace);
        if (n < 1)
                return 0;
        in = str_of((const char *) p + 1, n - 1);
        conn_trace_run(&trace, in, CUT_NONE, &complete);
        conn_trace_run(&trace, in, CUT_EVERY((size_t) p[0] + 1), &cut);
        ASSERT(str_eq(buf_str(&complete), buf_str(&cut)));
        buf_done(&complete);
        buf_done(&cut);
        return 0;
}
