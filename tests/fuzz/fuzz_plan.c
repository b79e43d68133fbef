/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "plan/plan.h"

/* What is taken has passed the check, has one encoding, and makes a plan that can be printed. */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        const struct str message = str_of((const char *) p, n);
        struct plan_spec spec;
        struct arena arena;
        struct plan plan;
        struct err e = { 0 };
        struct buf b;
        int r;

        arena_init(&arena, MiB);
        buf_init(&b, 4 * MiB);
        r = plan_spec_decode(message, &arena, &spec, &e);
        if (r == 0) {
                ASSERT(plan_spec_encode(&spec, &b, &e) == 0);
                ASSERT(str_eq(buf_str(&b), message));
                buf_reset(&b);
                spec.uid_first = 0x10000000;
                ASSERT(plan_make(&spec, &arena, &plan) == 0);
                plan_render(&plan, &b);
                ASSERT(!buf_failed(&b) && str_is_utf8(buf_str(&b)));
        } else {
                ASSERT(r == ERR_RETURN(e.code) && e.message[0]);
        }
        buf_done(&b);
        arena_done(&arena);
        return 0;
}
