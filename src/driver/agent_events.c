/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent_events.h"

#include <stdio.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/json.h"

struct event_error {
        struct str ename, evalue;
        struct json_strs traceback;
};

struct event {
        int type; /* enum event_type */
        struct str text, base64;
        struct event_error *error;
        int64_t exit_code, signal;
        bool has_exit_code, has_signal;
        bool timed_out;
};

enum event_type {
        EVENT_INIT,
        EVENT_PING,
        EVENT_STDOUT,
        EVENT_STDERR,
        EVENT_ERROR,
        EVENT_COMPLETE,
        EVENT_MAX_,
};

static const char *const type_names[] = {
        [EVENT_INIT] = "init",     [EVENT_PING] = "ping",   [EVENT_STDOUT] = "stdout",
        [EVENT_STDERR] = "stderr", [EVENT_ERROR] = "error", [EVENT_COMPLETE] = "execution_complete",
};
static_assert(ARRAY_SIZE(type_names) == EVENT_MAX_, "type_names out of step");

static const struct enum_table type_table = { type_names, EVENT_MAX_ };

static const struct json_field error_fields[] = {
        JSON_STR(struct event_error, ename, "ename", 0),
        JSON_STR(struct event_error, evalue, "evalue", JSON_REQUIRED),
        JSON_STRS(struct event_error, traceback, "traceback", 0, .items_max = 16),
        JSON_END,
};

/* Members we have no use for are ignored, and so may be new ones. */
static const struct json_field event_fields[] = {
        JSON_ENUM(struct event, type, "type", JSON_REQUIRED, &type_table),
        JSON_STR(struct event, text, "text", 0),
        JSON_STR(struct event, base64, "base64", 0),
        JSON_OPT(struct event, error, struct event_error, "error", 0, error_fields),
        JSON_I64(struct event, exit_code, "exitCode", 0, JSON_RANGE(-1, 255),
                 JSON_HAS(struct event, has_exit_code)),
        JSON_I64(struct event, signal, "signal", 0, JSON_RANGE(1, 127),
                 JSON_HAS(struct event, has_signal)),
        JSON_BOOL(struct event, timed_out, "timedOut", 0),
        JSON_END,
};

void agent_events_init(struct agent_events *v, struct buf *out, struct buf *err_out)
{
        *v = (struct agent_events){ .out = out, .err_out = err_out };
        buf_init(&v->_line, AGENT_EVENT_MAX);
        /* Texts and a few views. */
        arena_init(&v->_arena, 4 * AGENT_EVENT_MAX);
}

void agent_events_done(struct agent_events *v)
{
        buf_done(&v->_line);
        arena_done(&v->_arena);
}

printf_like(2, 3) static int refuse(struct agent_events *v, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
        va_end(ap);
        return -EBADMSG;
}

/* --- one event --- */

static int add_output(struct agent_events *v, const struct event *event, struct buf *out)
{
        size_t n = 0, room = buf_room(out);
        char *bytes;

        if (!event->base64.p)
                return refuse(v, "output without its bytes");
        bytes = arena_alloc(&v->_arena, BASE64_DECODED_MAX(event->base64.n));
        if (!bytes)
                return refuse(v, "an event is too large");
        if (base64_decode(event->base64, bytes, &n) < 0)
                return refuse(v, "output that is not base64");
        buf_add(out, bytes, MIN_OF(n, room));
        return n > room || buf_failed(out) ? -ENOBUFS : 0;
}

static int set_exit(struct agent_events *v, enum agent_end end, int64_t exit_code)
{
        v->end = end;
        v->exit_code = (int) exit_code;
        return 0;
}

static int end_with_error(struct agent_events *v, const struct event *event)
{
        uint64_t number;
        struct buf b;

        if (!event->error)
                return refuse(v, "an error without its members");
        if (event->timed_out)
                return set_exit(v, AGENT_END_TIMED_OUT,
                                event->has_signal ? 128 + event->signal : 255);
        if (event->has_signal)
                return set_exit(v, AGENT_END_EXITED, 128 + event->signal);
        if (parse_u64_max(event->error->evalue, 255, &number) < 0) {
                buf_init_fixed(&b, v->reason, sizeof(v->reason));
                (void) buf_add_quoted_cut(&b, event->error->evalue, sizeof(v->reason) - 1);
                return set_exit(v, AGENT_END_NOT_STARTED, 255);
        }
        if (number == 0 || (event->has_exit_code && event->exit_code != (int64_t) number))
                return refuse(v, "an error whose exit codes contradict each other");
        return set_exit(v, AGENT_END_EXITED, (int64_t) number);
}

static int take_line(struct agent_events *v, struct str line)
{
        struct event event = { 0 };
        struct json_error je;

        if (line.n == 0)
                return 0;
        if (v->end != AGENT_END_NONE)
                return refuse(v, "an event behind the last");
        arena_reset(&v->_arena);
        if (json_decode(line, event_fields, 0, &v->_arena, &event, &je) < 0)
                return refuse(v, "an event that cannot be read: %s", je.message);
        switch ((enum event_type) event.type) {
        case EVENT_INIT:
        case EVENT_PING:
                return 0;
        case EVENT_STDOUT:
                return add_output(v, &event, v->out);
        case EVENT_STDERR:
                return add_output(v, &event, v->err_out);
        case EVENT_ERROR:
                return end_with_error(v, &event);
        case EVENT_COMPLETE:
                return set_exit(v, AGENT_END_EXITED, 0);
        case EVENT_MAX_:
        default:
                return refuse(v, "an event of no known type");
        }
}

/* --- the stream --- */

int agent_events_feed(struct agent_events *v, struct str bytes)
{
        int r = 0;

        while (r == 0 && bytes.n > 0) {
                ssize_t end = str_find(bytes, '\n');
                struct str line = str_of(bytes.p, end < 0 ? bytes.n : (size_t) end);
                const bool in_parts = end < 0 || v->_line.n > 0;

                bytes = str_skip(bytes, end < 0 ? line.n : line.n + 1);
                if (in_parts)
                        buf_add_str(&v->_line, line);
                if (in_parts ? buf_failed(&v->_line) : line.n > AGENT_EVENT_MAX)
                        return refuse(v, "an event is too large");
                if (end < 0)
                        return 0;
                r = take_line(v, in_parts ? buf_str(&v->_line) : line);
                buf_reset(&v->_line);
        }
        return r;
}

int agent_events_finish(struct agent_events *v)
{
        if (v->_line.n > 0)
                return refuse(v, "the last event is cut off");
        if (v->end == AGENT_END_NONE)
                return refuse(v, "the events end before the command does");
        return 0;
}
