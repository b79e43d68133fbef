/* SPDX-License-Identifier: Apache-2.0 */

/* The protocol between hutchd and its engine worker: what is accepted is decoded again from its own encoding. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "engine/protocol.h"

static void read_request(struct str in)
{
        struct engine_request q, again;
        struct arena a;
        struct buf b;
        struct err e;

        arena_init(&a, 4 * MiB);
        buf_init(&b, MiB);
        if (engine_request_decode(in, &a, &q, &e) == 0) {
                engine_request_encode(&b, &q);
                ASSERT(engine_request_decode(buf_str(&b), &a, &again, &e) == 0);
                ASSERT(again.call == q.call && again.request_id == q.request_id);
        }
        buf_done(&b);
        arena_done(&a);
}

static void read_message(struct str in)
{
        struct engine_message m, again;
        struct arena a;
        struct buf b;
        struct err e;

        arena_init(&a, 4 * MiB);
        buf_init(&b, MiB);
        if (engine_message_decode(in, &a, &m, &e) == 0) {
                engine_message_encode(&b, &m);
                ASSERT(engine_message_decode(buf_str(&b), &a, &again, &e) == 0);
                ASSERT(again.request_id == m.request_id && again.done == m.done);
        }
        buf_done(&b);
        arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str in = str_of((const char *) p, n);

        read_request(in);
        read_message(in);
        return 0;
}
