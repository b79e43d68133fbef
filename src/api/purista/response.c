/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"
#include "api/purista/call.h"
#include "base/base.h"
#include "http/status.h"
#include "model/text.h"

#define JSON    STR("application/json")
#define PROBLEM STR("application/problem+json")

#define TRACE_MAX 128

/* --- what the client accepts --- */

/* The client's, if it is fit for a header; else the request's id. */
static struct str trace_of(const struct http_req *req)
{
        struct str given = http_req_header(req, STR("x-trace-id"));

        for (size_t i = 0; i < given.n; i++)
                if (given.p[i] <= ' ' || given.p[i] > '~')
                        return req->id;
        return given.n > 0 && given.n <= TRACE_MAX ? given : req->id;
}

static bool wants_problem(const struct http_req *req)
{
        struct str accept = http_req_header(req, STR("Accept")), one;

        while (str_split(&accept, ',', &one)) {
                struct str type = one;
                ssize_t end = str_find(one, ';');

                if (end >= 0)
                        type = str_of(one.p, (size_t) end);
                if (str_caseeq(str_trim(type), PROBLEM))
                        return true;
        }
        return false;
}

/* --- sending --- */

static void send_more(struct http_req *req)
{
        struct purista_call *c = req->data;
        scoped(buf_done) struct buf part;

        buf_init(&part, HTTP_WRITE_MAX);
        while (http_stream_writable(req)) {
                buf_reset(&part);
                if (!purista_text_next(&c->out, &part)) {
                        http_stream_end(req);
                        purista_call_free(c);
                        return;
                }
                if (buf_failed(&part)) {
                        http_stream_fail(req);
                        purista_call_free(c);
                        return;
                }
                http_stream_write(req, buf_str(&part));
        }
}

static void sending_abort(struct http_req *req, int reason)
{
        (void) reason;
        purista_call_free(req->data);
}

static const struct http_hooks sending_hooks = { .drain = send_more, .abort = sending_abort };

/* Most responses are one short piece, and need no chunks. */
void purista_response_end(struct purista_call *c)
{
        struct http_req *req = c->req;
        bool is_failure = c->status >= 400, is_short, no_memory;
        struct str type = is_failure && !c->bridged && wants_problem(req) ? PROBLEM : JSON;
        int status = c->bridged ? 200 : c->status;

        if (c->bridged) {
                purista_text_add(&c->out, is_failure ? STR("},\"events\":[]}") : STR("}"));
        } else if (is_failure) {
                purista_text_add_member(&c->out, ",", "traceId", trace_of(req));
                purista_text_add(&c->out, STR("}"));
        }
        is_short = c->out.n == 1 && !c->out.pieces[0].raw.p && c->out.plain.n <= HTTP_COPY_MAX;
        no_memory = buf_failed(&c->out.plain);
        if (!http_req_is_gone(req))
                (void) http_res_header(req, STR("x-trace-id"), trace_of(req));
        if (no_memory)
                http_reply_error(req, 500, CODE_INTERNAL, "the response does not fit into memory");
        else if (is_short)
                http_reply(req, status, type, buf_str(&c->out.plain));
        if (http_req_is_gone(req) || no_memory || is_short) {
                purista_call_free(c);
                return;
        }
        http_res_header_const(req, STR("Content-Type"), type);
        http_req_set_hooks(req, &sending_hooks, c);
        http_stream_begin(req, status, HTTP_LENGTH_UNKNOWN);
        send_more(req);
}

/* --- success --- */

void purista_response_begin(struct purista_call *c)
{
        purista_text_reset(&c->out);
        c->status = 200;
        if (c->bridged)
                purista_text_add(&c->out, STR("{\"ok\":true,\"payload\":"));
}

void purista_response_empty(struct purista_call *c)
{
        (void) http_res_header(c->req, STR("x-trace-id"), trace_of(c->req));
        http_reply_empty(c->req, 204);
        purista_call_free(c);
}

/* --- failure --- */

/* {"status", "message", or the same as RFC 9457 names it; without the closing brace. */
static void begin_error(struct purista_text *t, bool problem, int status, struct str message)
{
        if (problem) {
                purista_text_add(t, STR("{\"type\":\"about:blank\""));
                purista_text_add_member(t, ",", "title", http_status_text(status));
        }
        purista_text_addf(t, "%s\"status\":%d", problem ? "," : "{", status);
        purista_text_add_member(t, ",", problem ? "detail" : "message", message);
}

static void fail_head(struct purista_call *c, int status, bool handled, struct str message)
{
        purista_text_reset(&c->out);
        c->status = status;
        if (c->bridged)
                purista_text_add(&c->out, STR("{\"ok\":false,\"error\":"));
        begin_error(&c->out, !c->bridged && wants_problem(c->req), status, message);
        if (c->bridged)
                purista_text_addf(&c->out, ",\"handled\":%s", handled ? "true" : "false");
}

static printf_like(3, 0) void fail_vhead(struct purista_call *c, int status, const char *fmt,
                                         va_list ap)
{
        char message[ERR_MESSAGE_MAX + 256];

        (void) vsnprintf(message, sizeof(message), fmt, ap);
        fail_head(c, status, /* handled= */ true, str_from(message));
}

void purista_fail_begin(struct purista_call *c, int status, const char *fmt, ...)
{
        bool list = status == 400 && !c->bridged && wants_problem(c->req);
        va_list ap;

        va_start(ap, fmt);
        fail_vhead(c, status, fmt, ap);
        va_end(ap);
        purista_text_add(&c->out, list ? STR(",\"errors\":") : STR(",\"data\":"));
}

void purista_fail(struct purista_call *c, int status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        fail_vhead(c, status, fmt, ap);
        va_end(ap);
        purista_response_end(c);
}

void purista_fail_service(struct purista_call *c, const struct service_req *r)
{
        int status = api_status(r->err.code);

        if (status >= 500 && r->err.code != ERR_UNSUPPORTED && r->err.code != ERR_CANCELED)
                log_warn(&c->req->log, "%s", r->err.message);
        if ((status == 503 || status == 429) && !http_req_is_gone(c->req) && !c->bridged)
                api_retry_after(c->req, r->retry_after);
        if (status == 500) /* details are for the log only */
                fail_head(c, status, /* handled= */ false, http_status_text(status));
        else
                fail_head(c, status, /* handled= */ true, str_from(r->err.message));
        purista_response_end(c);
}

/* --- errors of the HTTP server and of access_authorize --- */

struct str purista_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body)
{
        /* PURISTA's words for a caller without a name. A bridge names callers; what it lacks is a key. */
        bool anonymous = strcmp(p->code, CODE_MISSING_KEY) == 0
                         && !(req->route && req->route->scope == API_BRIDGE);
        bool problem = wants_problem(req);
        struct purista_text t;

        purista_text_init(&t);
        begin_error(&t, problem, p->status, str_from(anonymous ? PURISTA_ANONYMOUS : p->message));
        purista_text_add_member(&t, ",", "traceId", trace_of(req));
        purista_text_add(&t, STR("}"));
        buf_add_str(ret_body, buf_str(&t.plain));
        purista_text_done(&t);
        (void) http_res_header(req, STR("x-trace-id"), trace_of(req));
        return problem ? PROBLEM : JSON;
}
