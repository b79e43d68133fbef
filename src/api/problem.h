/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PROBLEM_H
#define HUTCH_API_PROBLEM_H

/*
 * Failures as answers. Below this layer nobody knows a status: here, and only here, a domain code
 * becomes one.
 *
 * Two shapes are in use, because the clients of this API know both:
 *
 *         {"code":"DOCKER::SANDBOX_NOT_FOUND","message":"…"}         whatever went wrong
 *         {"detail":[{"type":…,"loc":["body",…],"msg":…}]}, 422      the body does not fit
 *
 * The codes are upstream's where upstream has one for the case, whatever driver runs here: clients
 * compare them. A handler passes its own code where the case is more special than the domain code
 * (pause of what does not run), or NULL.
 *
 * Statuses of 500 and above are logged here, once, so a handler that fails this way logs nothing.
 */

#include "api/api.h"
#include "model/problem.h"

/* --- codes that several handlers use --- */

#define CODE_NOT_FOUND          "DOCKER::SANDBOX_NOT_FOUND"
#define CODE_NOT_RUNNING        "DOCKER::SANDBOX_NOT_RUNNING"
#define CODE_NOT_PAUSED         "DOCKER::SANDBOX_NOT_PAUSED"
#define CODE_INVALID_EXPIRATION "DOCKER::INVALID_EXPIRATION"
#define CODE_INVALID_PORT       "DOCKER::INVALID_PORT"
#define CODE_INVALID_PARAMETER  "SANDBOX::INVALID_PARAMETER"
#define CODE_INVALID_LABEL      "SANDBOX::INVALID_METADATA_LABEL"
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

/* The status of a domain code. */
int api_status(enum err_code code);

/* Answers with what went wrong; code may be NULL. */
void api_fail(struct http_req *req, const struct err *e, const char *code);

/* The same for a command of the service: 429 and 503 carry Retry-After. */
void api_fail_service(struct http_req *req, const struct service_req *s, const char *code);

/* What is wrong with a wish: 400 with the code of the broken rule, or 422 with the list. */
void api_fail_problems(struct http_req *req, const struct problems *p);

/* 422 for one parameter of the query: {"loc":["query",name]}. */
void api_fail_query(struct http_req *req, const char *type, const char *name, const char *message);

/* For struct http_api.invalid: the body could not be decoded. */
void api_fail_body(struct http_req *req, const struct json_error *e);

/* Adds Retry-After in whole seconds, at least one. */
void api_retry_after(struct http_req *req, usec_t after);

#endif
