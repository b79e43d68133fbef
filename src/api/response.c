/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"

#include <stdio.h>

#include "base/base.h"

#define JSON STR("application/json")

/* --- JSON --- */

struct str response_format(struct http_req *req, char stack[static HTTP_COPY_MAX],
                           response_fn *write, const void *data)
{
        scoped(buf_done) struct buf heap;
        struct buf b;

        buf_init_fixed(&b, stack, HTTP_COPY_MAX);
        buf_init(&heap, BUF_MAX_JSON);
        write(&b, data);
        if (!buf_failed(&b))
                return buf_str(&b);
        write(&heap, data);
        return buf_failed(&heap) ? STR_NULL : arena_dup_str(&req->arena, buf_str(&heap));
}

void response_send(struct http_req *req, int status, response_fn *write, const void *data)
{
        char stack[HTTP_COPY_MAX];
        struct str text = response_format(req, stack, write, data);

        if (text.p)
                http_reply(req, status, JSON, text);
        else
                api_fail_too_large(req);
}

struct by_table {
        const struct json_field *fields;
        const void *v;
};

static void write_by_table(struct buf *b, const void *data)
{
        const struct by_table *t = data;

        json_encode(b, t->fields, t->v);
}

void response_json(struct http_req *req, int status, const struct json_field *fields, const void *v)
{
        response_send(req, status, write_by_table, &(struct by_table){ fields, v });
}

/* --- errors --- */

#define RETRY_DEFAULT \
        USEC_PER_SEC /* for 429 and 503, if the operation does not say when to retry */

static const struct {
        int status;
        const char *code;
} statuses[] = {
        [ERR_INTERNAL] = { 500, CODE_INTERNAL },
        [ERR_INVALID] = { 400, CODE_INVALID_PARAMETER },
        [ERR_UNAUTHORIZED] = { 401, CODE_INVALID_KEY },
        [ERR_FORBIDDEN] = { 403, CODE_FORBIDDEN },
        [ERR_NOT_FOUND] = { 404, CODE_NOT_FOUND },
        [ERR_CONFLICT] = { 409, CODE_INVALID_STATE },
        [ERR_EXISTS] = { 409, "SANDBOX::ALREADY_EXISTS" },
        [ERR_TOO_LARGE] = { 413, "SANDBOX::TOO_LARGE" },
        [ERR_EXHAUSTED] = { 429, CODE_QUOTA },
        [ERR_UNSUPPORTED] = { 501, CODE_NOT_SUPPORTED },
        [ERR_UNAVAILABLE] = { 503, CODE_UNAVAILABLE },
        [ERR_TIMEOUT] = { 504, "SANDBOX::TIMEOUT" },
        [ERR_CANCELED] = { 503, "SANDBOX::CANCELED" },
};
static_assert(ARRAY_SIZE(statuses) == ERR_CODE_MAX_, "a domain code without a status");

int api_status(enum err_code code)
{
        /* An err that was never set is a bug of ours, and must not become a wild index. */
        return statuses[(unsigned) code < ERR_CODE_MAX_ ? code : ERR_INTERNAL].status;
}

void api_retry_after(struct http_req *req, usec_t after)
{
        char text[24];
        int n = snprintf(text, sizeof(text), "%llu",
                         (unsigned long long) MAX_OF((usec_t) 1, usec_add(after, USEC_PER_SEC - 1)
                                                                         / USEC_PER_SEC));

        (void) http_res_header(req, STR("Retry-After"), str_of(text, (size_t) n));
}

void api_fail(struct http_req *req, const struct err *e, const char *code)
{
        enum err_code c = (unsigned) e->code < ERR_CODE_MAX_ ? e->code : ERR_INTERNAL;
        int status = statuses[c].status;

        if (http_req_is_gone(req))
                return; /* a client that leaves cancels its operation: nothing to log */
        if (status >= 500 && c != ERR_UNSUPPORTED)
                log_warn(&req->log, "%s", e->message);
        http_reply_error(req, status, code ? code : statuses[c].code, "%s", e->message);
}

void api_fail_service(struct http_req *req, const struct service_req *s, const char *code)
{
        if (s->err.code == ERR_EXHAUSTED || s->err.code == ERR_UNAVAILABLE)
                api_retry_after(req, s->retry_after ? s->retry_after : RETRY_DEFAULT);
        api_fail(req, &s->err, code);
}

void api_fail_not_found(struct http_req *req)
{
        http_reply_error(req, 404, CODE_NOT_FOUND, "there is no such sandbox");
}

void api_fail_head(struct http_req *req)
{
        http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request head is too large");
}

void api_fail_too_large(struct http_req *req)
{
        http_reply_error(req, 500, CODE_INTERNAL,
                         "the response is larger than the server can hold");
}

/* --- bodies and queries that do not fit their schema --- */

static void reply_detail(struct http_req *req, const struct problems *p)
{
        const struct by_table detail = { problems_fields, p };
        char stack[HTTP_COPY_MAX];
        struct str text = response_format(req, stack, write_by_table, &detail);

        http_reply(req, 422, JSON, text.p ? text : STR("{\"detail\":[]}"));
}

void api_fail_problems(struct http_req *req, const struct problems *p)
{
        struct str message = problems_message(p);

        if (p->code)
                http_reply_error(req, 400, p->code, "%.*s", STR_ARG(message));
        else
                reply_detail(req, p);
}

int api_fail_query(struct http_req *req, const char *name, const char *type, const char *message)
{
        char *loc = arena_printf(&req->arena, "[\"query\",\"%s\"]", name);
        struct problem one = {
                .type = str_from(type),
                .loc = loc ? str_from(loc) : STR("[\"query\"]"),
                .msg = str_from(message),
        };

        reply_detail(req, &(struct problems){ .detail = { &one, 1 } });
        return -EINVAL;
}

void api_fail_body(struct http_req *req, const struct json_error *e)
{
        struct problems p = { 0 };

        /* An empty body is missing, not malformed. */
        if (req->body.n == 0)
                problems_add(&p, &req->arena, "missing", "", "Field required");
        else
                problems_add_json(&p, &req->arena, e);
        reply_detail(req, &p);
}
