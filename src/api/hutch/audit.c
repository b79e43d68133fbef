/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/audit.h"

#include "api/api.h"
#include "base/base.h"

/* Texts of clients (ids in paths) are cut to this, so that a line always fits. */
#define TEXT_MAX       ((size_t) 256)
#define AUDIT_LINE_MAX (16 * KiB)
#define TALLY_MAX      (4 * KiB) /* names of HTTP_TALLY_NAME_MAX bytes, escaped: 6 times as long */

struct audit {
        struct log_file *file;
        const struct clock *clock;
        uint64_t too_long;
};

struct audit *audit_new(struct log_file *file, const struct clock *clock)
{
        struct audit *a = xnew(struct audit);

        *a = (struct audit){ .file = file, .clock = clock };
        return a;
}

void audit_free(struct audit *a)
{
        if (!a)
                return;
        log_file_close(a->file);
        free(a);
}

void audit_reopen(struct audit *a, struct log_file *file)
{
        log_file_replace(a->file, file);
}

uint64_t audit_lost(const struct audit *a)
{
        return a ? log_file_lost(a->file) + a->too_long : 0;
}

/* --- lines --- */

struct line {
        struct str time;
        struct audit_entry entry;
        bool has_status;
        int64_t omitted; /* of a summary: with reasons and peers, as JSON */
        struct str reasons, peers;
};

#define L struct line

static const struct json_field line_fields[] = {
        JSON_STR(L, time, "time", JSON_REQUIRED),
        JSON_STR(L, entry.request, "request", 0),
        JSON_STR(L, entry.tenant, "tenant", 0),
        JSON_STR(L, entry.principal, "principal", 0),
        JSON_STR(L, entry.key, "key", 0),
        JSON_STR(L, entry.method, "method", 0),
        JSON_STR(L, entry.operation, "operation", 0),
        JSON_STR(L, entry.sandbox, "sandbox", 0),
        JSON_STR(L, entry.target_key, "targetKey", 0),
        JSON_I64(L, entry.status, "status", 0, JSON_HAS(L, has_status)),
        JSON_STR(L, entry.peer, "peer", 0),
        JSON_I64(L, omitted, "omitted", JSON_OMIT_EMPTY),
        JSON_RAW(L, reasons, "reasons", JSON_OMIT_EMPTY),
        JSON_RAW(L, peers, "peers", JSON_OMIT_EMPTY),
        JSON_END,
};

static void write_line(struct audit *a, struct line *line)
{
        char text[AUDIT_LINE_MAX], time[TIME_RFC3339_MAX];
        struct buf b;

        line->time = str_of(time, time_to_rfc3339(clock_wall(a->clock), time));
        buf_init_fixed(&b, text, sizeof(text));
        json_encode(&b, line_fields, line);
        buf_add_char(&b, '\n');
        if (buf_failed(&b))
                a->too_long++;
        else
                log_file_write(a->file, buf_str(&b));
}

void audit_write(struct audit *a, const struct audit_entry *e)
{
        struct line line = { .entry = *e, .has_status = e->status != 0 };

        write_line(a, &line);
}

void audit_write_omitted(struct audit *a, const struct http_anonymous_summary *s)
{
        char reasons_text[TALLY_MAX], peers_text[TALLY_MAX];
        struct buf reasons, peers;
        struct line line = { .omitted = (int64_t) s->omitted };

        buf_init_fixed(&reasons, reasons_text, sizeof(reasons_text));
        http_tally_encode(&s->reasons, &reasons);
        buf_init_fixed(&peers, peers_text, sizeof(peers_text));
        http_tally_encode(&s->peers, &peers);
        line.reasons = buf_str(&reasons);
        line.peers = buf_str(&peers);
        write_line(a, &line);
}

/* --- requests --- */

static struct str cut(struct str s)
{
        return s.p ? str_utf8_cut(s, TEXT_MAX) : s;
}

/* From the log context of the request, to which handlers add what they create and remove. */
static struct str log_field(const struct http_req *req, const char *key)
{
        for (size_t i = 0; i < req->log.n_fields; i++)
                if (strcmp(req->log.fields[i].key, key) == 0)
                        return req->log.fields[i].s;
        return STR_NULL;
}

void audit_request(struct audit *a, const struct http_req *req, struct http_anonymous *anonymous)
{
        bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD
                     || req->method == METHOD_OPTIONS;
        const struct caller *caller = api_caller(req);
        const struct http_route *route = req->route;
        struct str sandbox = log_field(req, "sandbox");

        if (!a || reads || !route || !(route->scope & (API_WRITE | API_ADMIN | API_BRIDGE))
            || route->scope & HTTP_SCOPE_PUBLIC)
                return;
        if (!caller && !http_anonymous_admit(anonymous, req))
                return;
        if (!sandbox.p && route->names == ROUTE_SANDBOX)
                sandbox = req->params[0]; /* it may name no sandbox */
        audit_write(a, &(struct audit_entry){
                               .request = cut(req->id),
                               .tenant = caller ? cut(caller->tenant) : STR_NULL,
                               .principal = caller ? cut(caller->principal) : STR_NULL,
                               .key = caller ? caller->key : STR_NULL,
                               .method = req->method_name,
                               .operation = str_from(route->doc ? route->doc->id : route->pattern),
                               .sandbox = cut(sandbox),
                               .target_key = cut(log_field(req, "target_key")),
                               .peer = cut(req->peer),
                               .status = req->res.status,
                       });
}
