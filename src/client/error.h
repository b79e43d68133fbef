/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_ERROR_H
#define HUTCH_CLIENT_ERROR_H

/*
 * What goes wrong, as struct hutch_error. Whatever comes from outside is made printable on its way in.
 */

#include <stdarg.h>

#include "base/str.h"
#include "client/api.h"

/* Copies as much as fits, whole characters, NUL-terminated; control characters, and what is no UTF-8,
 * become '?'. */
void error_copy_text(char *ret, size_t size, struct str text);

/* Fills code and message; the other members stay. Returns the code. */
int error_set(struct hutch_error *e, int code, const char *fmt, ...) printf_like(3, 4);
int error_vset(struct hutch_error *e, int code, const char *fmt, va_list ap) printf_like(3, 0);

/* Puts what was being done in front of the message: "get the sandbox: no answer". */
void error_prefix(struct hutch_error *e, const char *doing);

/* The code of an HTTP status that is not 2xx. */
int error_code_of_status(int status);

/* Reads the body of an answer that is no success, in whatever shape: {"code","message"},
 * {"detail":[{"loc","msg"}]}, {"detail":"…"}, {"error":"…"} or plain text. Fills e->server_code, and
 * returns the words in `ret`, which may stay empty. */
void error_read_problem(struct str body, struct hutch_error *e, char *ret, size_t size);

#endif
