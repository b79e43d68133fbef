/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What engines say. The first byte chooses the reader: documents of each kind; streams of objects and
 * frames of output, which tell the same however they are cut.
 */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "engine/api.h"
#include "engine/json_stream.h"
#include "engine/relay.h"

static void read_document(unsigned kind, struct str text)
{
        struct engine_container container;
        struct engine_image image;
        struct engine_listed_image listed;
        struct engine_event event;
        struct engine_usage usage;
        struct engine_progress progress;
        struct engine_info info = { 0 };
        struct str id;
        struct arena a;
        struct err e;
        int r = 0;

        arena_init(&a, MiB);
        switch (kind) {
        case 0:
                r = engine_container_decode(text, &a, &container, &e);
                ASSERT(r < 0 || container.state.status >= 0);
                break;
        case 1:
                r = engine_listed_decode(text, &a, &container, &e);
                ASSERT(r < 0 || container.state.status != RUNTIME_GONE);
                break;
        case 2:
                r = engine_image_decode(text, &a, &image, &e);
                break;
        case 3:
                r = engine_event_decode(text, &a, &event, &e);
                break;
        case 4:
                r = engine_stats_decode(text, &a, &usage, &e);
                ASSERT(r < 0 || (usage.cpu_usec >= 0 && usage.processes >= 0));
                break;
        case 5:
                r = engine_progress_decode(text, &a, &progress, &e);
                break;
        case 6:
                r = engine_exec_decode(text, &a, &id, &e);
                break;
        case 7:
                r = engine_version_decode(text, &a, &info, &e);
                break;
        case 8:
                r = engine_info_decode(text, &a, &info, &e);
                break;
        case 12:
                r = engine_listed_image_decode(text, &a, &listed, &e);
                break;
        case 13:
                r = engine_commit_decode(text, &a, &id, &e);
                break;
        default:
                (void) engine_error_message(text, &a);
                break;
        }
        ASSERT(r == 0 || r == ERR_RETURN(ERR_UNAVAILABLE));
        arena_done(&a);
}

static int collect(void *data, struct str object)
{
        buf_add_str(data, object);
        buf_add_char(data, '\n');
        return 0;
}

static int in_pieces(struct str in, size_t step, struct buf *out)
{
        struct json_stream p;
        int r = 0;

        json_stream_init(&p, 256, collect, out);
        for (; in.n > 0 && r == 0; in = str_skip(in, step))
                r = json_stream_feed(&p, str_of(in.p, MIN_OF(step, in.n)));
        if (r == 0)
                r = json_stream_end(&p);
        json_stream_done(&p);
        return r;
}

static int in_frames(struct str in, size_t step, struct buf *out)
{
        struct demux d = { 0 };
        int error = 0;

        for (; in.n > 0 && error == 0; in = str_skip(in, step)) {
                struct str bytes = str_of(in.p, MIN_OF(step, in.n)), piece;

                while (demux_next(&d, &bytes, &piece, &error))
                        buf_add_str(out, piece);
        }
        return error;
}

static void same_however_cut(int (*f)(struct str, size_t, struct buf *), struct str in)
{
        struct buf uncut, cut;
        int r;

        buf_init(&uncut, MiB);
        r = f(in, MAX_OF(in.n, (size_t) 1), &uncut);
        for (size_t step = 1; step < 9; step++) {
                buf_init(&cut, MiB);
                ASSERT(f(in, step, &cut) == r);
                ASSERT(str_eq(buf_str(&cut), buf_str(&uncut)));
                buf_done(&cut);
        }
        buf_done(&uncut);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str in = str_of((const char *) p, n);
        unsigned kind;

        if (n == 0)
                return 0;
        kind = p[0] % 14;
        in = str_skip(in, 1);
        if (kind == 10)
                same_however_cut(in_pieces, in);
        else if (kind == 11)
                same_however_cut(in_frames, in);
        else
                read_document(kind, in);
        return 0;
}
