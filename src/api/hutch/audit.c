/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/audit.h"

#include <unistd.h>

#include "api/api.h"
#include "base/base.h"

/* Texts of clients (ids in paths) are cut to this, so that a line always fits. */
#define TEXT_MAX       ((size_t) 256)
#define AUDIT_LINE_MAX (16 * KiB)
#define TALLY_MAX      (4 * KiB) /* names of HTTP_TALLY_NAME_MAX bytes, escaped: 6 times as long */

struct audit {
        int fd;
        const struct clock *clock;
        const struct log_ctx *log;
        uint64_t lost;
        bool failing; /* the last line was lost, and that was logged */
};

struct audit *audit_new(int fd, const struct clock *clock, const struct log_ctx *log)
{
        struct audit *a = xnew(struct audit);

        *a = (struct audit){ .fd = fd, .clock = clock, .log = log };
        return a;
}

void audit_free(struct audit *a)
{
        if (!a)
                return;
        (void) close(a->fd);
        free(a);
}

void audit_reopen(struct audit *a, int fd)
{
        (void) close(a->fd);
        a->fd = fd;
        a->failing = false;
}

uint64_t audit_lost(const struct audit *a)
{
        return a ? a->lost : 0;
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
        int r = -EMSGSIZE;
        struct buf b;
        ssize_t n;

        line->time = str_of(time, time_to_rfc3339(clock_wall(a->clock), time));
        buf_init_fixed(&b, text, sizeof(text));
        /* What a failed write left of a line can't be taken back: end that line. */
        if (a->failing)
                buf_add_char(&b, '\n');
        json_encode(&b, line_fields, line);
        buf_add_char(&b, '\n');
        if (!buf_failed(&b)) {
                do
                        n = write(a->fd, buf_str(&b).p, b.n);
                while (n < 0 && errno == EINTR);
                r = n < 0 ? -errno : (size_t) n == b.n ? 0 : -ENOSPC;
        }
        if (r < 0)
                a->lost++;
        if (r < 0 && !a->failing)
                (void) log_err(r, a->log, "audit log write failed, lines are lost");
        a->failing = r < 0;
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
