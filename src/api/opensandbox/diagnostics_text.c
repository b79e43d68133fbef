/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/diagnostics_text.h"

#include "base/base.h"

static void add_line(struct buf *b, const char *name, struct str value)
{
        if (!value.p)
                return;
        buf_addf(b, "%-12s ", name);
        buf_add_str(b, value);
        buf_add_char(b, '\n');
}

/* For texts that clients wrote: on one line, whatever they hold. */
static void add_quoted(struct buf *b, const char *name, struct str value)
{
        buf_addf(b, "%-12s ", name);
        buf_add_quoted(b, value);
        buf_add_char(b, '\n');
}

static void add_time(struct buf *b, const char *name, int64_t wall_ms)
{
        char text[TIME_RFC3339_MAX];

        add_line(b, name, str_of(text, time_to_rfc3339((usec_t) wall_ms * USEC_PER_MSEC, text)));
}

static void add_map(struct buf *b, const char *name, const struct json_map *m)
{
        for (size_t i = 0; i < m->n; i++) {
                buf_addf(b, "%-12s ", name);
                buf_add_quoted(b, m->items[i].key);
                buf_add_str(b, STR(" = "));
                buf_add_quoted(b, m->items[i].value);
                buf_add_char(b, '\n');
        }
}

void diagnostics_add_inspect(struct buf *b, const struct sandbox *s)
{
        add_line(b, "id", s->id);
        add_line(b, "state", str_from(state_to_string(s->status.state)));
        add_line(b, "reason", s->status.reason);
        add_line(b, "message", s->status.message);
        add_time(b, "changed", s->status.changed_ms);
        add_time(b, "created", s->created_ms);
        if (s->expiry)
                add_time(b, "expires", s->expiry->wall_ms);
        else
                add_line(b, "expires", STR("never"));
        add_line(b, "driver", s->driver);
        add_line(b, "node", s->node);
        add_line(b, "image", s->image);
        add_line(b, "snapshot", s->snapshot_id);
        for (size_t i = 0; i < s->entrypoint.n; i++)
                add_quoted(b, "argument", s->entrypoint.items[i]);
        for (size_t i = 0; i < s->env_names.n; i++)
                add_line(b, "variable", s->env_names.items[i]);
        add_map(b, "limit", &s->limits.texts);
        add_map(b, "label", &s->metadata);
}

static void add_event(struct buf *b, const struct service_history_entry *n)
{
        char time[TIME_RFC3339_MAX];

        (void) time_to_rfc3339(n->at, time);
        buf_addf(b, "%s runtime %s %s %s", time, n->state == STATE_FAILED ? "Warning" : "Normal",
                 n->type, state_to_string(n->state) ? state_to_string(n->state) : "-");
        if (n->reason.p)
                buf_addf(b, " %.*s", STR_ARG(n->reason));
        if (n->message.p)
                buf_addf(b, " %.*s", STR_ARG(n->message));
        buf_add_char(b, '\n');
}

bool diagnostics_add_events(struct buf *b, struct http_req *req, size_t limit)
{
        struct service_history_entry notes[SERVICE_HISTORY_MAX];
        size_t n = service_history(api_of(req)->service, api_caller(req), req->params[0], notes);
        size_t first = n > limit ? n - limit : 0;

        for (size_t i = first; i < n; i++)
                add_event(b, &notes[i]);
        return first > 0;
}
