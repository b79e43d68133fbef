/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/agent_log.h"
#include "api/opensandbox/opensandbox.h"
#include "api/opensandbox/query.h"
#include "base/base.h"

/*
 * For people who debug a sandbox: the output of its program, its recent events, its record. With a `scope` the response
 * is JSON that holds the text; without one it is the text itself, as older clients expect it, marked as deprecated.
 * Programs should not parse the text: its form may change.
 */

#define LOG_LINES    100 /* by default */
#define EVENTS_LIMIT 50
#define CONTENT_MAX  (512 * KiB) /* six times as much, fully escaped, still fits into a response */
#define TEXT_TYPE    STR("text/plain; charset=utf-8")

/* --- text --- */

static void add_line(struct buf *b, const char *name, struct str value)
{
        if (!value.p)
                return;
        buf_addf(b, "%-12s ", name);
        buf_add_str(b, value);
        buf_add_char(b, '\n');
}

static void add_time(struct buf *b, const char *name, int64_t wall_ms)
{
        char text[TIME_RFC3339_MAX];

        add_line(b, name, response_time(wall_ms, text));
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

static void add_record(struct buf *b, const struct sandbox *s)
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
        for (size_t i = 0; i < s->entrypoint.n; i++) {
                buf_addf(b, "%-12s ", "argument");
                buf_add_quoted(b, s->entrypoint.items[i]); /* escaped: it stays on one line */
                buf_add_char(b, '\n');
        }
        for (size_t i = 0; i < s->env_names.n; i++)
                add_line(b, "variable", s->env_names.items[i]);
        add_map(b, "limit", &s->limits.texts);
        add_map(b, "label", &s->metadata);
}

/* The last events of the sandbox that the path names, oldest first; whether there were more. */
static bool add_events(struct buf *b, struct http_req *req, size_t limit)
{
        struct service_history_entry entries[SERVICE_HISTORY_MAX];
        size_t n = service_history(api_of(req)->service, api_caller(req), req->params[0], entries);
        size_t first = n > limit ? n - limit : 0;

        for (size_t i = first; i < n; i++) {
                const struct service_history_entry *x = &entries[i];
                const char *state = state_to_string(x->state);
                char time[TIME_RFC3339_MAX];

                (void) time_to_rfc3339(x->at, time);
                buf_addf(b, "%s runtime %s %s %s", time,
                         x->state == STATE_FAILED ? "Warning" : "Normal", x->type,
                         state ? state : "-");
                if (x->reason.p)
                        buf_addf(b, " %.*s", STR_ARG(x->reason));
                if (x->message.p)
                        buf_addf(b, " %.*s", STR_ARG(x->message));
                buf_add_char(b, '\n');
        }
        return first > 0;
}

/* --- the JSON form --- */

struct content {
        struct str sandbox_id, kind, scope, delivery, content_type, content;
        int64_t content_length;
        bool truncated;
        struct json_strs warnings;
};

#define C struct content

static const struct json_field content_fields[] = {
        JSON_STR(C, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_STR(C, kind, "kind", JSON_REQUIRED),
        JSON_STR(C, scope, "scope", JSON_REQUIRED),
        JSON_STR(C, delivery, "delivery", JSON_REQUIRED),
        JSON_STR(C, content_type, "contentType", JSON_REQUIRED),
        JSON_STR(C, content, "content", 0),
        JSON_I64(C, content_length, "contentLength", 0),
        JSON_BOOL(C, truncated, "truncated", JSON_REQUIRED),
        JSON_STRS(C, warnings, "warnings", JSON_OMIT_EMPTY),
        JSON_END,
};

static void reply_content(struct http_req *req, struct content *c)
{
        if (c->content.n > CONTENT_MAX) {
                c->content = str_skip(c->content, c->content.n - CONTENT_MAX);
                c->truncated = true;
        }
        c->sandbox_id = req->params[0];
        c->delivery = STR("inline");
        c->content_type = TEXT_TYPE;
        c->content_length = (int64_t) c->content.n;
        response_json(req, 200, content_fields, c);
}

/* --- the text form --- */

static void reply_text(struct http_req *req, struct str text)
{
        text = arena_dup_str(&req->arena, text);
        if (!text.p) {
                api_fail_too_large(req);
                return;
        }
        http_res_header_const(req, STR("Deprecation"), STR("true"));
        http_res_header_const(req, STR("X-Content-Type-Options"), STR("nosniff"));
        http_reply(req, 200, TEXT_TYPE, text);
}

/* --- checks --- */

/* NULL after a 404. */
static const struct sandbox *find_or_reply(struct http_req *req)
{
        const struct sandbox *s =
                service_find(api_of(req)->service, api_caller(req), req->params[0]);

        if (!s)
                api_fail_not_found(req);
        return s;
}

/* 1: `own` or "all"; 0: not given; negative after a reply. */
static int get_scope(struct http_req *req, struct str own, struct str *ret)
{
        int r = query_get(req, "scope", ret);

        if (r <= 0 || str_eq(*ret, own) || str_eq(*ret, STR("all")))
                return r;
        http_reply_error(req, 400, "DIAGNOSTICS_SCOPE_UNSUPPORTED", "scope must be '%.*s' or 'all'",
                         STR_ARG(own));
        return -EINVAL;
}

static const struct query_int tail_param = { "tail", NULL, 1, AGENT_LOG_LINES_MAX };
static const struct query_int limit_param = { "limit", NULL, 1, 500 };
static const struct query_int event_limit_param = { "event_limit", NULL, 1, 500 };

/* --- logs --- */

struct logs_call {
        struct agent_log log;
        struct str scope; /* null view: plain text */
        int64_t event_limit;
        bool summary;
};

static void reply_logs_text(struct logs_call *c)
{
        struct http_req *req = c->log.req;
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        if (c->summary) {
                const struct sandbox *s = find_or_reply(req);

                if (!s)
                        return;
                add_record(&b, s);
                buf_add_str(&b, STR("\n--- events ---\n"));
                (void) add_events(&b, req, (size_t) c->event_limit);
                buf_add_str(&b, STR("\n--- logs ---\n"));
        }
        buf_add_str(&b, c->log.text);
        if (c->log.has_failure)
                buf_addf(&b, "(%s)\n", c->log.failure.message);
        reply_text(req, buf_str(&b));
}

static void logs_done(struct agent_log *l)
{
        struct logs_call *c = container_of(l, struct logs_call, log);
        struct str warning = str_from(l->failure.message);
        struct content out = {
                .kind = STR("logs"),
                .scope = c->scope,
                .content = l->text.p ? l->text : STR(""),
                .truncated = l->truncated,
                .warnings = { &warning, l->has_failure ? 1 : 0 },
        };

        http_req_set_hooks(l->req, NULL, NULL);
        if (http_req_is_gone(l->req))
                return;
        if (c->scope.p)
                reply_content(l->req, &out);
        else
                reply_logs_text(c);
}

static void logs_abort(struct http_req *req, int reason)
{
        struct logs_call *c = req->data;

        (void) reason;
        agent_log_cancel(&c->log);
}

static const struct http_hooks logs_hooks = { .abort = logs_abort };

static void start_logs(struct http_req *req, const struct logs_call *params)
{
        struct logs_call *c;

        if (!find_or_reply(req))
                return;
        c = arena_new(&req->arena, struct logs_call);
        if (!c) {
                api_fail_too_large(req);
                return;
        }
        *c = *params;
        c->log.req = req;
        c->log.done = logs_done;
        http_req_set_hooks(req, &logs_hooks, c);
        agent_log_start(&c->log);
}

static void get_logs(struct http_req *req)
{
        struct logs_call c = { .scope = STR_NULL };
        int64_t lines = LOG_LINES;
        struct str text;
        usec_t since;
        int r = get_scope(req, STR("container"), &c.scope);

        if (r < 0 || (r == 0 && query_get_int(req, &tail_param, &lines) < 0))
                return;
        /* The output carries no times, so `since` is validated and has no effect. */
        r = r == 0 ? query_get(req, "since", &text) : 0;
        if (r > 0 && parse_duration(text, &since) < 0)
                r = api_fail_query(req, "since", "value_error",
                                   "must be a duration such as 10m or 1h");
        if (r < 0)
                return;
        c.log.lines = (size_t) lines;
        start_logs(req, &c);
}

static void get_summary(struct http_req *req)
{
        struct logs_call c = { .event_limit = EVENTS_LIMIT, .summary = true };
        int64_t lines = LOG_LINES;

        if (query_get_int(req, &tail_param, &lines) < 0
            || query_get_int(req, &event_limit_param, &c.event_limit) < 0)
                return;
        c.log.lines = (size_t) lines;
        start_logs(req, &c);
}

/* --- events --- */

static void get_events(struct http_req *req)
{
        struct content out = { .kind = STR("events") };
        scoped(buf_done) struct buf b;
        int64_t limit = EVENTS_LIMIT;
        int r = get_scope(req, STR("runtime"), &out.scope);

        buf_init(&b, BUF_MAX_JSON);
        if (r == 0 && query_get_int(req, &limit_param, &limit) < 0)
                return;
        if (r < 0 || !find_or_reply(req))
                return;
        out.truncated = add_events(&b, req, (size_t) limit);
        out.content = buf_str(&b);
        if (r > 0)
                reply_content(req, &out);
        else
                reply_text(req, out.content);
}

static void get_inspect(struct http_req *req)
{
        const struct sandbox *s = find_or_reply(req);
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        if (!s)
                return;
        add_record(&b, s);
        reply_text(req, buf_str(&b));
}

/* --- routes --- */

#define TAG "Diagnostics"

static const uint16_t errors[] = { 400, 401, 404, 422, 500, 503, 0 };

static const struct http_doc_param logs_params[] = {
        { "scope", .text = "container or all; without it the response is plain text" },
        { "tail", HTTP_DOC_INTEGER,
          .text = "Plain text only: number of lines, 1 to 10000; default 100." },
        { "since", .text = "Plain text only: a duration; without effect, because lines carry no "
                           "times." },
        { 0 },
};
static const struct http_doc_param events_params[] = {
        { "scope", .text = "runtime or all; without it the response is plain text" },
        { "limit", HTTP_DOC_INTEGER,
          .text = "Plain text only: number of events, 1 to 500; default 50." },
        { 0 },
};
static const struct http_doc_param summary_params[] = {
        { "tail", HTTP_DOC_INTEGER, .text = "Lines of the log, 1 to 10000; default 100." },
        { "event_limit", HTTP_DOC_INTEGER, .text = "Events, 1 to 500; default 50." },
        { 0 },
};

API_DOC(logs_doc, "getSandboxDiagnosticLogs", "Get the output of the sandbox's program", TAG, 200,
        "DiagnosticContentResponse", content_fields, .params = logs_params, .errors = errors);
API_DOC(events_doc, "getSandboxDiagnosticEvents", "Get recent events of the sandbox", TAG, 200,
        "DiagnosticContentResponse", content_fields, .params = events_params, .errors = errors);
API_DOC(inspect_doc, "getSandboxDiagnosticInspect", "Describe the sandbox, for people", TAG, 200,
        .response_type = "text/plain", .errors = errors);
API_DOC(summary_doc, "getSandboxDiagnosticSummary", "Get record, events and output in one text",
        TAG, 200, .response_type = "text/plain", .params = summary_params, .errors = errors);

#define AT "/sandboxes/{sandboxId}/diagnostics"

static const struct http_route routes[] = {
        { METHOD_GET, AT "/logs", API_READ, .names = ROUTE_SANDBOX, .doc = &logs_doc,
          .exec = get_logs },
        { METHOD_GET, AT "/events", API_READ, .names = ROUTE_SANDBOX, .doc = &events_doc,
          .exec = get_events },
        { METHOD_GET, AT "/inspect", API_READ, .names = ROUTE_SANDBOX, .doc = &inspect_doc,
          .exec = get_inspect },
        { METHOD_GET, AT "/summary", API_READ, .names = ROUTE_SANDBOX, .doc = &summary_doc,
          .exec = get_summary },
};

OPENSANDBOX_API(opensandbox_diagnostics, "diagnostics", routes);
