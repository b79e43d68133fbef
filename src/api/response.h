/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_RESPONSE_H
#define HUTCH_API_RESPONSE_H

/*
 * Responses: JSON bodies, and errors.
 *
 * A JSON body is written as text straight from the data, without a document in between. Its size is not known before it is
 * written, and is nearly always small: the first attempt goes to a buffer on the stack, from where the HTTP server copies
 * it to the connection. A longer body is written to the heap, up to BUF_MAX_JSON, and lives in the request's arena until it
 * is sent.
 *
 * Domain codes (base/err.h) become HTTP statuses here and nowhere else. Errors have two shapes, because clients of this API
 * know both:
 *
 *         {"code":"DOCKER::SANDBOX_NOT_FOUND","message":"…"}         any error
 *         {"detail":[{"type":…,"loc":["body",…],"msg":…}]}, 422      the body or the query does not fit its schema
 *
 * Codes are upstream's where upstream has one for the case, whatever driver runs here: clients compare them. A handler
 * passes a code of its own where the case is more specific than the domain code (pausing a sandbox that does not run), or
 * NULL. Statuses of 500 and above are logged here, so handlers do not log them.
 */

#include "api/api.h"
#include "base/json.h"
#include "model/create.h"
#include "model/problem.h"

/* --- JSON --- */

/* Appends the complete body; called a second time if the first buffer was too small. */
typedef void response_fn(struct buf *b, const void *data);

/* The body as text, in `stack` or in the request's arena. The null view if it does not fit. */
struct str response_format(struct http_req *req, char stack[static HTTP_COPY_MAX],
                           response_fn *write, const void *data) must_check;

/* A body that does not fit becomes a 500. */
void response_send(struct http_req *req, int status, response_fn *write, const void *data);

/* A wall time for a response: RFC 3339 in UTC. */
static inline struct str response_time(int64_t wall_ms, char ret[static TIME_RFC3339_MAX])
{
        return str_of(ret, time_to_rfc3339((usec_t) wall_ms * USEC_PER_MSEC, ret));
}

/* One struct by its field table. */
void response_json(struct http_req *req, int status, const struct json_field *fields,
                   const void *v);

/* --- error codes --- */

/* Those that several handlers use; model/create.h has more. */
#define CODE_NOT_FOUND          "DOCKER::SANDBOX_NOT_FOUND"
#define CODE_NOT_RUNNING        "DOCKER::SANDBOX_NOT_RUNNING"
#define CODE_NOT_PAUSED         "DOCKER::SANDBOX_NOT_PAUSED"
#define CODE_INVALID_EXPIRATION "DOCKER::INVALID_EXPIRATION"
#define CODE_INVALID_PORT       "DOCKER::INVALID_PORT"
#define CODE_INVALID_STATE      "SANDBOX::INVALID_STATE"
#define CODE_NOT_SUPPORTED      "SANDBOX::API_NOT_SUPPORTED"
#define CODE_SNAPSHOT_NOT_FOUND "SNAPSHOT::NOT_FOUND"
#define CODE_INTERNAL           "SANDBOX::INTERNAL_ERROR"
#define CODE_QUOTA              "SANDBOX::QUOTA_EXCEEDED"
#define CODE_UNAVAILABLE        "SANDBOX::UNAVAILABLE"
#define CODE_UNKNOWN            "GENERAL::UNKNOWN_ERROR"
#define CODE_MISSING_KEY        "MISSING_API_KEY"
#define CODE_INVALID_KEY        "INVALID_API_KEY"
#define CODE_FORBIDDEN          "FORBIDDEN"
#define CODE_TOO_MANY           "TOO_MANY_REQUESTS"

/* --- errors --- */

/* The status of a domain code. */
int api_status(enum err_code code);

/* Replies with an error; code may be NULL. */
void api_fail(struct http_req *req, const struct err *e, const char *code);

/* The same for an operation of the service: 429 and 503 carry Retry-After. */
void api_fail_service(struct http_req *req, const struct service_req *s, const char *code);

/* 404 for a sandbox that does not exist, or that the caller may not see. */
void api_fail_not_found(struct http_req *req);

/* 431: the arena has no memory left for what the head of the request needs. */
void api_fail_head(struct http_req *req);

/* 500: the response does not fit into memory. */
void api_fail_too_large(struct http_req *req);

/* An invalid create request: 400 with the code of the broken rule, or 422 with the list. */
void api_fail_problems(struct http_req *req, const struct problems *p);

/* 422 for one parameter of the query: {"loc":["query",name]}. The type is for programs ("int_parsing"), the message for
 * people. -EINVAL. */
int api_fail_query(struct http_req *req, const char *name, const char *type, const char *message);

/* For struct http_api.invalid: the body could not be decoded. */
void api_fail_body(struct http_req *req, const struct json_error *e);

/* Adds Retry-After in whole seconds, at least one. */
void api_retry_after(struct http_req *req, usec_t after);

#endif
