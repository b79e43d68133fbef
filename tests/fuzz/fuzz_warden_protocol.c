/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "plan/protocol.h"

/* The first byte says how many descriptors came. What is taken has one encoding: the bytes it came
 * from. */

static void try_request(const struct warden_packet *m, struct arena *a, struct buf *b)
{
        struct warden_request q;
        enum warden_msg call;
        uint64_t request_id;
        struct err e = { 0 };

        if (warden_request_decode(m, WARDEN_PHASE_READY, a, &q, &e) < 0) {
                ASSERT(e.message[0]);
                return;
        }
        ASSERT(warden_request_peek(m->message, &call, &request_id));
        ASSERT(call == q.call && request_id == q.request_id);
        ASSERT(warden_request_encode(&q, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

static void try_reply(const struct warden_packet *m, struct arena *a, struct buf *b)
{
        struct warden_reply w;
        struct err e = { 0 };

        if (warden_reply_decode(m, a, &w, &e) < 0)
                return;
        ASSERT(warden_reply_fds(&w) == m->n_fds && !warden_is_event(m->message));
        ASSERT(warden_reply_encode(&w, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

static void try_event(const struct warden_packet *m, struct arena *a, struct buf *b)
{
        struct warden_event n;
        struct err e = { 0 };

        if (warden_event_decode(m, a, &n, &e) < 0)
                return;
        ASSERT(warden_is_event(m->message));
        ASSERT(warden_event_encode(&n, b, &e) == 0 && str_eq(buf_str(b), m->message));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static void (*const tries[])(const struct warden_packet *, struct arena *,
                                     struct buf *) = { try_request, try_reply, try_event };
        struct warden_packet m;

        if (n == 0)
                return 0;
        m = (struct warden_packet){ str_of((const char *) p + 1, n - 1), p[0] };
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
