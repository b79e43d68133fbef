/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "plan/wire.h"

/* The first byte says how many descriptors came. What is taken has one encoding: the bytes it came
 * from. */

static void try_request(const struct wire_envelope *m, struct arena *a, struct buf *b)
{
        struct wire_request q;
        enum wire_call call;
        uint64_t ticket;
        struct err e = { 0 };

        if (wire_request_decode(m, WIRE_PHASE_READY, a, &q, &e) < 0) {
                ASSERT(e.message[0]);
                return;
        }
        ASSERT(wire_request_peek(m->message, &call, &ticket));
        ASSERT(call == q.call && ticket == q.ticket);
        ASSERT(wire_request_encode(&q, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

static void try_answer(const struct wire_envelope *m, struct arena *a, struct buf *b)
{
        struct wire_answer w;
        struct err e = { 0 };

        if (wire_answer_decode(m, a, &w, &e) < 0)
                return;
        ASSERT(wire_answer_fds(&w) == m->n_fds && !wire_is_news(m->message));
        ASSERT(wire_answer_encode(&w, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

static void try_news(const struct wire_envelope *m, struct arena *a, struct buf *b)
{
        struct wire_news n;
        struct err e = { 0 };

        if (wire_news_decode(m, a, &n, &e) < 0)
                return;
        ASSERT(wire_is_news(m->message));
        ASSERT(wire_news_encode(&n, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static void (*const tries[])(const struct wire_envelope *, struct arena *,
                                     struct buf *) = { try_request, try_answer, try_news };
        struct wire_envelope m;

        if (n == 0)
                return 0;
        m = (struct wire_envelope){ str_of((const char *) p + 1, n - 1), p[0] };
        for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
                struct arena arena;
                struct buf b;

                arena_init(&arena, MiB);
                buf_init(&b, MiB);
                tries[i](&m, &arena, &b);
                buf_done(&b);
                arena_done(&arena);
        }
        return 0;
}
