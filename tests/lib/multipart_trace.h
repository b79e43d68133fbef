/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_MULTIPART_TRACE_H
#define HUTCH_TESTS_LIB_MULTIPART_TRACE_H

/*
 * Runs the multipart parser and writes down what it said, as text that does not depend on how the
 * data was cut:
 *
 *         part "name" null "text/plain"
 *         the data
 *         end
 *         EINVAL part 2: no name
 */

#include "base/base.h"
#include "http/multipart.h"
#include "tests/lib/pieces.h"

struct multipart_trace {
        struct multipart mp;
        struct buf log;
        bool in_part;
};

static inline void multipart_trace_view(struct buf *b, struct str s)
{
        buf_add_char(b, ' ');
        if (s.p)
                buf_add_quoted(b, s);
        else
                buf_add_str(b, STR("null"));
}

static inline int multipart_trace_part(struct multipart *mp, const struct multipart_part *part)
{
        struct multipart_trace *t = container_of(mp, struct multipart_trace, mp);

        ASSERT(!t->in_part);
        t->in_part = true;
        buf_add_str(&t->log, STR("part"));
        multipart_trace_view(&t->log, part->name);
        multipart_trace_view(&t->log, part->filename);
        multipart_trace_view(&t->log, part->content_type);
        buf_add_char(&t->log, '\n');
        ASSERT(part->name.p && !memchr(part->name.p, 0, part->name.n));
        ASSERT(!part->filename.p || !memchr(part->filename.p, 0, part->filename.n));
        return 0;
}

static inline int multipart_trace_data(struct multipart *mp, const char *p, size_t n)
{
        struct multipart_trace *t = container_of(mp, struct multipart_trace, mp);

        ASSERT(t->in_part && n > 0);
        buf_add(&t->log, p, n);
        return 0;
}

static inline int multipart_trace_part_end(struct multipart *mp)
{
        struct multipart_trace *t = container_of(mp, struct multipart_trace, mp);

        ASSERT(t->in_part);
        t->in_part = false;
        buf_add_str(&t->log, STR("\nend\n"));
        return 0;
}

static const struct multipart_ops multipart_trace_ops = {
        .part = multipart_trace_part,
        .data = multipart_trace_data,
        .part_end = multipart_trace_part_end,
};

static inline int multipart_trace_feed(void *arg, char *p, size_t n)
{
        struct multipart_trace *t = arg;

        return multipart_feed(&t->mp, p, n);
}

/* The caller frees *ret_log (buf_done). */
static inline void multipart_trace_run(struct str boundary, struct str input, struct cut cut,
                                       const struct multipart_limits *limits, struct buf *ret_log)
{
        struct multipart_trace t = { 0 };
        int r, again;

        buf_init(&t.log, 64 * MiB);
        multipart_init(&t.mp, boundary, &multipart_trace_ops, limits);
        r = pieces_feed(input, cut, multipart_trace_feed, &t);
        again = multipart_finish(&t.mp);
        ASSERT(r == 0 || again == r);
        buf_addf(&t.log, "%s%s%s\n", again == 0 ? "ok" : strerrorname_np(-again),
                 t.mp.reason ? " " : "", t.mp.reason ? t.mp.reason : "");
        ASSERT(!buf_failed(&t.log));
        multipart_done(&t.mp);
        *ret_log = t.log;
}

#endif
