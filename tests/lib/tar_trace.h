/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_TAR_TRACE_H
#define HUTCH_TESTS_LIB_TAR_TRACE_H

/*
 * Runs the tar reader and writes down what it said, as text that does not depend on how the input
 * was cut:
 *
 *         file "a" "" size=3 mode=644 uid=0 gid=0 mtime=1.000000000
 *         abc
 *         end
 *         EINVAL a header has …
 */

#include <inttypes.h>

#include "base/base.h"
#include "archive/tar.h"
#include "tests/lib/pieces.h"

struct tar_trace {
        struct tar_reader reader;
        struct buf log;
        uint64_t content;
        bool in_entry;
};

static inline void tar_trace_header(struct tar_trace *t)
{
        static const char *const types[] = { "file",  "hardlink", "symlink", "char",
                                             "block", "dir",      "fifo" };
        const struct tar_entry *e = &t->reader.entry;

        ASSERT(!t->in_entry && e->name.n > 0 && e->name.n <= TAR_NAME_MAX);
        ASSERT(!memchr(e->name.p, '\0', e->name.n) && e->mtime_nsec < 1000000000);
        ASSERT(e->size == 0 || e->type == TAR_FILE);
        t->in_entry = true;
        t->content = 0;
        buf_addf(&t->log, "%s ", types[e->type]);
        buf_add_quoted(&t->log, e->name);
        buf_add_char(&t->log, ' ');
        buf_add_quoted(&t->log, e->link);
        buf_addf(&t->log,
                 " size=%" PRIu64 " mode=%o uid=%" PRIu64 " gid=%" PRIu64 " mtime=%" PRId64
                 ".%09" PRIu32 "\n",
                 e->size, e->mode, e->uid, e->gid, e->mtime, e->mtime_nsec);
}

static inline int tar_trace_feed(void *arg, char *p, size_t n)
{
        struct tar_trace *t = arg;
        struct str input = str_of(p, n), data;
        int r;

        while ((r = tar_reader_next(&t->reader, &input, &data)) > 0) {
                if (r == TAR_HEADER) {
                        tar_trace_header(t);
                } else if (r == TAR_DATA) {
                        ASSERT(t->in_entry && data.n > 0);
                        t->content += data.n;
                        buf_add_str(&t->log, data);
                } else {
                        ASSERT(t->in_entry && t->content == t->reader.entry.size);
                        t->in_entry = false;
                        buf_add_str(&t->log, STR("\nend\n"));
                }
        }
        ASSERT(r < 0 || input.n == 0);
        return r;
}

/* The log is the caller's. */
static inline int tar_trace_run(struct str in, struct cut cut, struct buf *ret_log)
{
        static struct tar_trace t;
        int r;

        tar_reader_init(&t.reader);
        t.in_entry = false;
        buf_init(&t.log, 64 * MiB);
        r = pieces_feed(in, cut, tar_trace_feed, &t);
        if (r == 0)
                r = tar_reader_finish(&t.reader);
        if (r < 0) {
                ASSERT(t.reader.reason);
                ASSERT(tar_reader_finish(&t.reader) == r);
                buf_addf(&t.log, "error %d %s\n", r, t.reader.reason);
        }
        tar_reader_done(&t.reader);
        *ret_log = t.log;
        return r;
}

#endif
