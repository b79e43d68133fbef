/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/event.h"

#include "base/base.h"
#include "base/base64.h"

static const char *const type_names[] = {
        [EVENT_INIT] = "init",     [EVENT_PING] = "ping",   [EVENT_STDOUT] = "stdout",
        [EVENT_STDERR] = "stderr", [EVENT_ERROR] = "error", [EVENT_COMPLETE] = "execution_complete",
};

static void begin_event(struct buf *b, enum event_type type)
{
        buf_add_str(b, STR("{\"type\":\""));
        buf_add_str(b, str_from(type_names[type]));
        buf_add_char(b, '"');
}

static void end_event(struct buf *b, usec_t wall)
{
        buf_add_str(b, STR(",\"timestamp\":"));
        buf_add_u64(b, wall / USEC_PER_MSEC);
        buf_add_str(b, STR("}\n\n"));
}

void event_add_text(struct buf *b, enum event_type type, struct str text, usec_t wall)
{
        begin_event(b, type);
        buf_add_str(b, STR(",\"text\":"));
        buf_add_quoted(b, text);
        end_event(b, wall);
}

void event_add_bytes(struct buf *b, enum event_type type, struct str bytes, usec_t wall)
{
        char *p;

        begin_event(b, type);
        buf_add_str(b, STR(",\"base64\":\""));
        p = buf_reserve(b, BASE64_ENCODED(bytes.n));
        if (p)
                buf_advance(b, base64_encode(bytes.p, bytes.n, p));
        buf_add_char(b, '"');
        end_event(b, wall);
}

/* The second spellings are for an early client, which knows no others. */
static void add_outcome(struct buf *b, int exit_code, usec_t took)
{
        uint64_t msec = took / USEC_PER_MSEC;

        if (msec > 0) {
                buf_add_str(b, STR(",\"execution_time\":"));
                buf_add_u64(b, msec);
        }
        buf_addf(b, ",\"exitCode\":%d,\"durationMs\":%llu", exit_code, (unsigned long long) msec);
}

void event_add_complete(struct buf *b, usec_t took, usec_t wall)
{
        begin_event(b, EVENT_COMPLETE);
        add_outcome(b, 0, took);
        end_event(b, wall);
}

void event_add_error(struct buf *b, const struct event_error *e, usec_t took, usec_t wall)
{
        const char *comma = "";

        begin_event(b, EVENT_ERROR);
        buf_add_str(b, STR(",\"error\":{\"ename\":"));
        buf_add_quoted(b, e->name);
        buf_add_str(b, STR(",\"evalue\":"));
        buf_add_quoted(b, e->value);
        buf_add_str(b, STR(",\"traceback\":["));
        for (size_t i = 0; i < ARRAY_SIZE(e->trace); i++) {
                if (!e->trace[i].p)
                        continue;
                buf_add_str(b, str_from(comma));
                buf_add_quoted(b, e->trace[i]);
                comma = ",";
        }
        buf_add_str(b, STR("]}"));
        add_outcome(b, e->exit_code, took);
        if (e->signal)
                buf_addf(b, ",\"signal\":%d", e->signal);
        if (e->timed_out)
                buf_add_str(b, STR(",\"timedOut\":true"));
        end_event(b, wall);
}
