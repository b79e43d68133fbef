/* SPDX-License-Identifier: Apache-2.0 */
#include "client/framing.h"

#include "tests/lib/check.h"

/* The events of a stream, with '|' behind each. */
struct got {
        struct buf text;
        int answer; /* what the callback returns */
};

static int on_event(void *data, struct str event)
{
        struct got *g = data;

        buf_add_str(&g->text, event);
        buf_add_char(&g->text, '|');
        return g->answer;
}

static int read_in_pieces(struct got *g, const char *stream, size_t piece, bool lines)
{
        struct str rest = str_from(stream);
        struct framing f;
        int r = 0;

        buf_init(&g->text, 64 * KiB);
        framing_init(&f, 64, lines);
        while (r == 0 && rest.n > 0) {
                struct str now = str_of(rest.p, MIN_OF(piece, rest.n));

                r = framing_feed(&f, now, on_event, g);
                rest = str_skip(rest, now.n);
        }
        if (r == 0)
                r = framing_finish(&f, on_event, g);
        framing_done(&f);
        return r;
}

static void both_framings(void **state)
{
        static const struct {
                const char *name, *stream, *events;
                bool lines;
        } cases[] = {
                { "bare blocks", "{1}\n\n{2}\n\n", "{1}\n|{2}\n|", false },
                { "data: lines", "data: {1}\n\ndata:{2}\n\n", "{1}\n|{2}\n|", false },
                { "both in one stream", "{1}\n\ndata: {2}\n\n", "{1}\n|{2}\n|", false },
                { "CR LF", "{1}\r\n\r\ndata: {2}\r\n\r\n", "{1}\n|{2}\n|", false },
                { "over several lines", "{\n1\n}\n\n", "{\n1\n}\n|", false },
                { "data over several lines", "data: {\ndata: 1}\n\n", "{\n1}\n|", false },
                { "fields and comments", ": hello\nevent: x\nid: 7\nretry: 1\ndata: {1}\n\n",
                  "{1}\n|", false },
                { "comments alone", ": ping\n\n: ping\n\n", "", false },
                { "empty lines", "\n\n\n{1}\n\n\n\n", "{1}\n|", false },
                { "no empty line at the end", "{1}\n\n{2}\n", "{1}\n|{2}\n|", false },
                { "no end at all", "{1}\n\n{2}", "{1}\n|{2}\n|", false },
                { "data without a value", "data\n\ndata:\n\n", "\n|", false },
                { "nothing", "", "", false },
                { "a line each", "{1}\n{2}\n\n{3}", "{1}|{2}|{3}|", true },
                { "a data line each", "data: {1}\n\ndata: {2}\n\n", "{1}|{2}|", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                for (size_t piece = 1; piece <= 64; piece++) {
                        struct got g = { .answer = 0 };

                        check_case(cases[i].name);
                        check_i64_eq(read_in_pieces(&g, cases[i].stream, piece, cases[i].lines), 0);
                        check_str_eq(buf_str(&g.text), cases[i].events);
                        buf_done(&g.text);
                }
        }
}

static void events_are_bounded(void **state)
{
        char line[256];

        memset(line, 'x', sizeof(line));
        line[sizeof(line) - 1] = '\0';
        for (size_t piece = 1; piece <= sizeof(line); piece *= 2) {
                struct got g = { .answer = 0 };

                check_i64_eq(read_in_pieces(&g, line, piece, false), -E2BIG);
                check_u64_eq(g.text.n, 0);
                buf_done(&g.text);
        }
        /* Also if it is made of short lines. */
        for (size_t i = 7; i < sizeof(line) - 1; i += 8)
                line[i] = '\n';
        for (size_t piece = 1; piece <= sizeof(line); piece *= 2) {
                struct got g = { .answer = 0 };

                check_i64_eq(read_in_pieces(&g, line, piece, false), -E2BIG);
                buf_done(&g.text);
        }
}

static void a_callback_ends_the_reading(void **state)
{
        struct got g = { .answer = -7 };

        check_i64_eq(read_in_pieces(&g, "{1}\n\n{2}\n\n", 64, false), -7);
        check_str_eq(buf_str(&g.text), "{1}\n|");
        buf_done(&g.text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(both_framings),
                cmocka_unit_test(events_are_bounded),
                cmocka_unit_test(a_callback_ends_the_reading),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
