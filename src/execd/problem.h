/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROBLEM_H
#define HUTCH_EXECD_PROBLEM_H

/*
 * From what went wrong to what the client is told.
 *
 * The API knows few words, and clients act on them: what is not there is 404 FILE_NOT_FOUND, wrong
 * input 400 INVALID_REQUEST_BODY, everything else 500 RUNTIME_ERROR. The message has the reason.
 * Handlers whose contract wants other words for one case say them before they come here.
 */

#include "base/err.h"
#include "http/req.h"

/* r is a negative errno; its text is appended to the message, "remove '/a/b': Permission denied".
 * Foreign text in the message is the caller's to cut (PROBLEM_PATH). */
void problem_reply_errno(struct http_req *req, int r, const char *fmt, ...) printf_like(3, 4);

/* The same about one file, "read '/a/b': is a directory"; -EINVAL stands for what is no regular file,
 * as in os/file.h. */
void problem_reply_file(struct http_req *req, int r, const char *verb, struct str path);

/* For what path_resolve and its like have to say. A thing that is not found is only then the file
 * asked for when an errno says so; an unknown variable or user is a 500. */
void problem_reply(struct http_req *req, const struct err *e);

/* A path in a message: "'%.*s'", PROBLEM_PATH(path). */
#define PROBLEM_PATH(s)  (int) MIN_OF((s).n, PROBLEM_PATH_MAX), (s).p
#define PROBLEM_PATH_MAX ((size_t) 200)

#endif
