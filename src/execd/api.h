/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_API_H
#define HUTCH_EXECD_API_H

/*
 * What the handlers of the agent's API share: the list of route tables, error codes and error replies,
 * and the query parameters that several handlers read.
 *
 * The file of a resource ends with its route table:
 *
 *         static const struct http_route routes[] = {
 *                 { METHOD_GET, "/ping", .scope = SCOPE_TOKEN, .exec = get_ping },
 *         };
 *         const struct http_api api_health = EXECD_API("health", routes);
 *
 * The table is declared below and listed once, in api.c. Handlers get the agent from agent_of(req).
 */

#include "base/err.h"
#include "http/route.h"

/* --- route tables --- */

/* The access token is the key to one sandbox and permits everything in it. */
#define SCOPE_TOKEN 1u

int api_authorize(struct http_req *req, uint32_t scope);
struct str api_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body);
void api_invalid(struct http_req *req, const struct json_error *e);

#define EXECD_API(title, table)                                                                  \
        {                                                                                        \
                .name = (title), .prefix = "", .routes = (table), .n_routes = ARRAY_SIZE(table), \
                .authorize = api_authorize, .shape = api_shape, .invalid = api_invalid           \
        }

/* All tables, terminated by NULL. */
extern const struct http_api *const api_tables[];

extern const struct http_api api_archive_download;
extern const struct http_api api_archive_upload;
extern const struct http_api api_commands;
extern const struct http_api api_directories;
extern const struct http_api api_entrypoint;
extern const struct http_api api_files;
extern const struct http_api api_files_download;
extern const struct http_api api_files_replace;
extern const struct http_api api_files_upload;
extern const struct http_api api_git;
extern const struct http_api api_health;
extern const struct http_api api_metrics;
extern const struct http_api api_proxy;
extern const struct http_api api_sessions;
extern const struct http_api api_tunnel;
extern const struct http_api api_unavailable;

/* --- error codes --- */

/* The list is closed: clients know these codes and no others. */
#define CODE_INVALID_BODY      "INVALID_REQUEST_BODY"
#define CODE_MISSING_QUERY     "MISSING_QUERY"
#define CODE_RUNTIME_ERROR     "RUNTIME_ERROR"
#define CODE_INVALID_FILE      "INVALID_FILE"
#define CODE_INVALID_CONTENT   "INVALID_FILE_CONTENT"
#define CODE_INVALID_METADATA  "INVALID_FILE_METADATA"
#define CODE_FILE_NOT_FOUND    "FILE_NOT_FOUND"
#define CODE_UNKNOWN           "UNKNOWN"
#define CODE_CONTEXT_NOT_FOUND "CONTEXT_NOT_FOUND"
#define CODE_NOT_SUPPORTED     "NOT_SUPPORTED"
#define CODE_UNAVAILABLE       "SERVICE_UNAVAILABLE"
#define CODE_SESSION_NOT_FOUND "SESSION_NOT_FOUND"

/* --- error replies ---
 *
 * A missing file is 404 FILE_NOT_FOUND, bad input is 400 INVALID_REQUEST_BODY, everything else is
 * 500 RUNTIME_ERROR. A handler whose contract differs for one case replies to that case itself. */

/* r is a negative errno; its text is appended: "remove '/a/b': Permission denied". The caller truncates
 * client-supplied text in the message (PROBLEM_PATH). */
void problem_reply_errno(struct http_req *req, int r, const char *fmt, ...) printf_like(3, 4);

/* The same for one file: "read '/a/b': Is a directory". -EINVAL stands for "not a regular file", as in
 * os/file.h. */
void problem_reply_file(struct http_req *req, int r, const char *verb, struct str path);

/* For errors of path_resolve and permission_resolve. Without an errno, ERR_NOT_FOUND is an unknown
 * variable or user and not the requested file: it is a 500. */
void problem_reply(struct http_req *req, const struct err *e);

/* A path in a message: "'%.*s'", PROBLEM_PATH(path). */
#define PROBLEM_PATH(s)  (int) MIN_OF((s).n, PROBLEM_PATH_MAX), (s).p
#define PROBLEM_PATH_MAX ((size_t) 200)

/* --- query parameters --- */

/* ?path=, resolved (execd/path.h). Replies and returns a negative errno on failure; a missing or empty
 * parameter is 400 MISSING_QUERY. */
int query_path(struct http_req *req, struct str *ret) must_check;

/* Replies that the query cannot be decoded; returns -EINVAL. */
int query_refuse(struct http_req *req);

/* Whether the parameter is "true" or "1". */
bool query_is_true(struct http_req *req, const char *name);

#endif
