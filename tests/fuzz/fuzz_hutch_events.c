/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/json.h"
#include "client/framing.h"
#include "client/command_event.h"
#include "tests/fuzz/fuzz.h"

/* Event streams as servers send them. However the bytes are cut into pieces, the events are the same; none
 * is over the maximum; and whatever an event says about a command is something that can be told. */

#define EVENT_MAX 4096
#define ALL_MAX   (64 * KiB)

struct reading {
        struct framing f;
        struct buf all; /* the events, one behind the other */
        size_t n;
        int result;
};

static void check_outcome(struct str event)
{
        struct json_error e;
        struct command_event o;
        json_t *doc;

        if (json_parse(event, 0, &doc, &e) < 0)
                return;
        if (command_event_read(doc, &o) == 0) {
                ASSERT(o.signal >= 0 && o.signal < 1024);
                ASSERT(o.kind != COMMAND_EVENT_FAILED || o.code.p || o.text.p);
                ASSERT(!(o.is_line && o.is_base64));
        }
        json_decref(doc);
}

static int on_event(void *data, struct str event)
{
        struct reading *r = data;

        ASSERT(event.n > 0 && event.n <= EVENT_MAX);
        r->n++;
        buf_add_str(&r->all, event);
        buf_add_char(&r->all, '\x1e');
        check_outcome(event);
        return 0;
}

static void read_all(struct reading *r, struct str bytes, size_t piece, bool lines)
{
        *r = (struct reading){ .result = 0 };
        buf_init(&r->all, ALL_MAX);
        framing_init(&r->f, EVENT_MAX, lines);
        while (bytes.n > 0 && r->result == 0) {
                struct str now = str_of(bytes.p, MIN_OF(piece, bytes.n));

                r->result = framing_feed(&r->f, now, on_event, r);
                bytes = str_skip(bytes, now.n);
        }
        if (r->result == 0)
                r->result = framing_finish(&r->f, on_event, r);
}

static void reading_done(struct reading *r)
{
        framing_done(&r->f);
        buf_done(&r->all);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str bytes = str_of((const char *) p, n);

        for (int lines = 0; lines < 2; lines++) {
                struct reading complete, pieces;

                read_all(&complete, bytes, SIZE_MAX, lines);
                read_all(&pieces, bytes, 1 + n % 5, lines);
                ASSERT(complete.result == pieces.result);
                ASSERT(complete.n == pieces.n);
                ASSERT(str_eq(buf_str(&complete.all), buf_str(&pieces.all)));
                reading_done(&complete);
                reading_done(&pieces);
        }
        return 0;
}
