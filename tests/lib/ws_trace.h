/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_WS_TRACE_H
#define HUTCH_TESTS_LIB_WS_TRACE_H

/*
 * Runs the WebSocket parser and writes down what it said, as text that does not depend on how the
 * bytes were cut. A message is one line; a control frame inside it stands where it came:
 *
 *         text(Hel<ping(x)>lo)
 *         close(1000,bye)
 *         EPROTO 1002 unknown opcode
 */

#include "base/base.h"
#include "http/ws_parser.h"
#include "tests/lib/pieces.h"

struct ws_trace {
        struct ws_parser parser;
        struct buf log;
        bool in_message;
};

static inline int ws_trace_data(struct ws_parser *w, enum ws_opcode opcode, unsigned flags, char *p,
                                size_t n)
{
        struct ws_trace *t = container_of(w, struct ws_trace, parser);

        ASSERT(t->in_message == !(flags & WS_FIRST));
        ASSERT(opcode == WS_TEXT || opcode == WS_BINARY);
        ASSERT(n > 0 || (flags & WS_LAST));
        if (flags & WS_FIRST)
                buf_add_str(&t->log, opcode == WS_TEXT ? STR("text(") : STR("binary("));
        buf_add(&t->log, p, n);
        t->in_message = !(flags & WS_LAST);
        if (flags & WS_LAST)
                buf_add_str(&t->log, STR(")\n"));
        return 0;
}

static inline void ws_trace_control(struct ws_parser *w, const char *what, struct str payload)
{
        struct ws_trace *t = container_of(w, struct ws_trace, parser);

        buf_addf(&t->log, "%s%s(", t->in_message ? "<" : "", what);
        buf_add_str(&t->log, payload);
        buf_add_str(&t->log, t->in_message ? STR(")>") : STR(")\n"));
}

static inline int ws_trace_ping(struct ws_parser *w, struct str payload)
{
        ws_trace_control(w, "ping", payload);
        return 0;
}

static inline int ws_trace_pong(struct ws_parser *w, struct str payload)
{
        ws_trace_control(w, "pong", payload);
        return 0;
}

static inline int ws_trace_close(struct ws_parser *w, uint16_t code, struct str reason)
{
        struct ws_trace *t = container_of(w, struct ws_trace, parser);

        ASSERT(str_is_utf8(reason));
        buf_addf(&t->log, "close(%u,", (unsigned) code);
        buf_add_str(&t->log, reason);
        buf_add_str(&t->log, STR(")\n"));
        return 0;
}

static const struct ws_parser_ops ws_trace_ops = {
        .data = ws_trace_data,
        .ping = ws_trace_ping,
        .pong = ws_trace_pong,
        .close = ws_trace_close,
};

static inline int ws_trace_feed(void *arg, char *p, size_t n)
{
        struct ws_trace *t = arg;

        return ws_parser_feed(&t->parser, p, n);
}

/* The caller frees *ret_log (buf_done). */
static inline void ws_trace_run(enum ws_role role, struct str input, struct cut cut,
                                uint64_t message_max, struct buf *ret_log)
{
        struct ws_trace t = { 0 };
        int r;

        buf_init(&t.log, 64 * MiB);
        ws_parser_init(&t.parser, role, message_max, &ws_trace_ops);
        r = pieces_feed(input, cut, ws_trace_feed, &t);
        if (r < 0)
                buf_addf(&t.log, "%s %u %s\n", strerrorname_np(-r), (unsigned) t.parser.close_code,
                         t.parser.reason);
        ASSERT(!buf_failed(&t.log));
        *ret_log = t.log;
}

#endif
