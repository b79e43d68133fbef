/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Targets, queries, ranges and the head guard. The first byte is the size of the guard's pieces
 * and, times some, of the thing a range is asked of.
 */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "http/head_guard.h"
#include "http/range.h"
#include "http/url.h"
#include "tests/lib/pieces.h"

/* --- url --- */

static void check_decode(struct arena *a, struct str in, unsigned flags)
{
        char *copy = arena_dup(a, in);
        struct str text, again;
        struct buf b;
        size_t n = 0;
        int r;

        if (!copy)
                return;
        r = url_decode_in_place(copy, in.n, flags, &n);
        ASSERT(url_decode(a, in, flags, &text) == r);
        if (r < 0)
                return;
        ASSERT(str_eq(text, str_of(copy, n)));

        buf_init(&b, 3 * in.n + 1);
        url_encode(&b, text);
        ASSERT(!buf_failed(&b));
        ASSERT(url_decode(a, buf_str(&b), flags, &again) == 0 && str_eq(again, text));
        buf_done(&b);
}

static void check_target(struct arena *a, struct str in)
{
        struct str rest, key, value;
        struct url_target t;

        if (url_split(in, &t) < 0)
                return;
        ASSERT(t.path.n > 0 && (t.path.p[0] == '/' || t.form == URL_ASTERISK));
        ASSERT(!t.authority.p == (t.form != URL_ABSOLUTE));
        check_decode(a, t.path, 0);
        for (rest = t.query; url_query_next(&rest, &key, &value);) {
                ASSERT(key.n > 0 || value.p);
                check_decode(a, key, URL_PLUS_IS_SPACE);
        }
        for (rest = t.query; url_query_each(a, &rest, "a", &value) > 0;)
                ASSERT(value.p && !memchr(value.p, 0, value.n));
}

/* --- range --- */

static void check_range(struct str in, uint64_t size)
{
        struct validators v = { .etag = in, .modified = size };
        struct range r;

        if (range_parse(in, size, &r) == RANGE_PARTIAL)
                ASSERT(r.start <= r.end && r.end < size);
        (void) range_if_range(in, &v);
        (void) http_not_modified(in, STR_NULL, &v);
        v.etag = STR("W/\"x\"");
        (void) http_not_modified(in, STR_NULL, &v);
        (void) http_not_modified(STR_NULL, in, &v);
}

/* --- head_guard --- */

struct guarded {
        struct head_guard guard;
        size_t consumed;
        int r;
};

static int feed_guard(void *arg, char *p, size_t n)
{
        struct guarded *g = arg;
        size_t consumed = 0;

        g->r = head_guard_feed(&g->guard, p, n, &consumed);
        g->consumed += consumed;
        return g->r == 1 ? -ECANCELED : g->r;
}

static void check_complete(struct str head, enum head_guard_mode mode)
{
        ASSERT(str_ends_with(head, mode == HEAD_GUARD_MESSAGE ? STR("\r\n\r\n") : STR("\r\n")));
        for (size_t i = 0; i < head.n; i++) {
                if (head.p[i] == '\n')
                        ASSERT(i > 0 && head.p[i - 1] == '\r');
                else if (head.p[i] == '\r')
                        ASSERT(head.p[i + 1] == '\n');
                else
                        ASSERT((unsigned char) head.p[i] >= 0x20 || head.p[i] == '\t');
        }
}

static void check_guard(struct str in, enum head_guard_mode mode, size_t max, size_t piece)
{
        const struct cut cuts[] = { CUT_NONE, CUT_BYTES, CUT_EVERY(piece), CUT_AT(piece) };
        struct guarded first = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
                struct guarded g = { 0 };

                head_guard_init(&g.guard, mode, max);
                (void) pieces_feed(in, cuts[i], feed_guard, &g);
                if (i == 0)
                        first = g;
                ASSERT(g.r == first.r && g.guard.reason == first.guard.reason);
                ASSERT(g.r < 0 || g.consumed == first.consumed);
        }
        if (first.r == 1)
                check_complete(str_of(in.p, first.consumed), mode);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct arena a;
        struct str in;
        size_t piece;

        if (n < 1)
                return 0;
        piece = (size_t) p[0] + 1;
        in = str_of((const char *) p + 1, n - 1);

        arena_init(&a, 1 * MiB);
        check_target(&a, in);
        check_decode(&a, in, URL_PLUS_IS_SPACE);
        arena_done(&a);

        check_range(in, (uint64_t) p[0] * 1000);
        (void) http_host_is_valid(in);
        (void) http_token_is_valid(in);
        (void) http_field_value_is_valid(in);
        check_guard(in, HEAD_GUARD_MESSAGE, 64 * KiB, piece);
        check_guard(in, HEAD_GUARD_TRAILER, 64 * KiB, piece);
        check_guard(in, HEAD_GUARD_MESSAGE, 40, piece);
        return 0;
}
