/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "driver/agent_events.h"
#include "tests/fuzz/fuzz.h"

/* However the bytes are cut into pieces, the outcome is the same; nothing grows past its maximum. */

#define OUT_MAX 4096

struct reading {
        struct agent_events v;
        struct buf out, err_out;
        int result;
};

static void read_all(struct reading *r, struct str bytes, size_t piece)
{
        buf_init(&r->out, OUT_MAX);
        buf_init(&r->err_out, OUT_MAX);
        agent_events_init(&r->v, &r->out, &r->err_out);
        r->result = 0;
        while (bytes.n > 0 && r->result == 0) {
                r->result = agent_events_feed(&r->v, str_of(bytes.p, MIN_OF(piece, bytes.n)));
                bytes = str_skip(bytes, MIN_OF(piece, bytes.n));
        }
        if (r->result == 0)
                r->result = agent_events_finish(&r->v);
}

static void reading_done(struct reading *r)
{
        agent_events_done(&r->v);
        buf_done(&r->out);
        buf_done(&r->err_out);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str bytes = str_of((const char *) p, n);
        struct reading complete, pieces;

        read_all(&complete, bytes, SIZE_MAX);
        read_all(&pieces, bytes, 1 + n % 7);
        ASSERT(complete.result == pieces.result);
        ASSERT(complete.v.end == pieces.v.end);
        ASSERT(complete.v.exit_code == pieces.v.exit_code);
        ASSERT(str_eq(buf_str(&complete.out), buf_str(&pieces.out)));
        ASSERT(str_eq(buf_str(&complete.err_out), buf_str(&pieces.err_out)));
        ASSERT(complete.v.exit_code >= 0 && complete.v.exit_code <= 255);
        reading_done(&complete);
        reading_done(&pieces);
        return 0;
}
