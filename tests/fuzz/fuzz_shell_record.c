/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a shell may say on its control channel. The first byte is the size of the pieces; the result
 * does not depend on it. The nonce is known here, or nothing would ever be found.
 */

#include "tests/fuzz/fuzz.h"

#include <limits.h>

#include "base/base.h"
#include "execd/shell_record.h"

#define NONCE "0123456789abcdef0123456789abcdef"

static void feed(struct shell_record *r, struct str input, size_t piece)
{
        int completed = 0;

        shell_record_init(r);
        shell_record_begin(r, NONCE);
        for (size_t at = 0; at < input.n; at += piece)
                completed +=
                        shell_record_feed(r, str_of(input.p + at, MIN_OF(piece, input.n - at)));
        ASSERT(completed == r->complete);
        ASSERT(r->status >= -1 && r->status <= 255);
        ASSERT(!r->complete || r->status >= 0);
        ASSERT(!r->cwd || (r->complete && r->cwd[0] == '/' && strlen(r->cwd) < PATH_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct shell_record complete, pieces;
        struct str input;

        if (n == 0)
                return 0;
        input = str_of((const char *) p + 1, n - 1);
        feed(&complete, input, input.n + 1);
        feed(&pieces, input, (size_t) p[0] + 1);
        ASSERT(complete.complete == pieces.complete && complete.status == pieces.status);
        ASSERT(complete.saved == pieces.saved);
        ASSERT(str_eq(str_from(complete.cwd), str_from(pieces.cwd)));
        shell_record_done(&complete);
        shell_record_done(&pieces);
        return 0;
}
