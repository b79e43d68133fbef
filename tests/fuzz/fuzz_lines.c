/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output cut into lines: the same lines however it arrives, none longer than the maximum, none with
 * an end in it, no character cut in two that could be left complete, and no byte lost but the ends. And
 * what is made of them: events that are one line of valid JSON each, whatever the bytes. The first
 * byte chooses the maximum, the second the size of the pieces.
 */

#include "tests/fuzz/fuzz.h"

#include <jansson.h>

#include "execd/event.h"
#include "execd/lines.h"
#include "tests/lib/pieces.h"

struct story {
        struct lines lines;
        struct buf log; /* each line behind its length */
        size_t bytes;
};

static void check_event(struct str line)
{
        scoped(buf_done) struct buf b;
        struct str text;
        json_t *doc, *value;

        buf_init(&b, MiB);
        event_add_text(&b, EVENT_STDERR, line, 1700000000000000);
        text = buf_str(&b);
        ASSERT(!buf_failed(&b) && text.n <= EVENT_SIZE_MAX(line.n));
        ASSERT(str_ends_with(text, STR("}\n\n")) && str_find(text, '\n') == (ssize_t) text.n - 2);
        doc = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
        value = json_object_get(doc, "text");
        ASSERT(json_is_string(value));
        if (str_is_utf8(line))
                ASSERT(str_eq(str_of(json_string_value(value), json_string_length(value)), line));
        json_decref(doc);
}

static void note(struct story *s, struct str line)
{
        ASSERT(line.n <= s->lines._partial.max);
        ASSERT(!memchr(line.p, '\n', line.n) && !memchr(line.p, '\r', line.n));
        s->bytes += line.n;
        buf_addf(&s->log, "%zu:", line.n);
        buf_add_str(&s->log, line);
        check_event(line);
}

static int feed(void *arg, char *p, size_t n)
{
        struct story *s = arg;
        struct str input = str_of(p, n), line;

        while (lines_next(&s->lines, &input, &line))
                note(s, line);
        ASSERT(input.n == 0);
        return 0;
}

static void notify(struct story *s, struct str in, struct cut cut, size_t max)
{
        struct str line;

        *s = (struct story){ 0 };
        buf_init(&s->log, 64 * MiB);
        lines_init(&s->lines, max);
        ASSERT(pieces_feed(in, cut, feed, s) == 0);
        if (lines_remainder(&s->lines, &line))
                note(s, line);
        ASSERT(!lines_remainder(&s->lines, &line));
        lines_done(&s->lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct story complete, other;
        size_t max, content = 0;
        struct str in;

        if (n < 2)
                return 0;
        max = LINES_MIN + (size_t) p[0];
        in = str_of((const char *) p + 2, n - 2);
        notify(&complete, in, CUT_NONE, max);
        for (size_t i = 0; i < in.n; i++)
                content += in.p[i] != '\n' && in.p[i] != '\r';
        ASSERT(complete.bytes == content);
        const struct cut cuts[] = { CUT_BYTES, CUT_EVERY((size_t) p[1] + 1),
                                    CUT_AT((size_t) p[1]) };

        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
                notify(&other, in, cuts[i], max);
                ASSERT(str_eq(buf_str(&complete.log), buf_str(&other.log)));
                buf_done(&other.log);
        }
        buf_done(&complete.log);
        return 0;
}
