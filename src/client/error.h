/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_ERROR_H
#define HUTCH_CLIENT_ERROR_H

/* Fills struct hutch_error. Text from outside is made printable. */

#include <stdarg.h>

#include "base/str.h"
#include "client/api.h"

/* Copies as many complete characters as fit and adds a NUL. Control characters and invalid UTF-8 become
 * '?'. */
void error_copy_text(char *ret, size_t size, struct str text);

/* Sets code and message only. Returns the code. */
int error_set(struct hutch_error *e, int code, const char *fmt, ...) printf_like(3, 4);
int error_vset(struct hutch_error *e, int code, const char *fmt, va_list ap) printf_like(3, 0);

/* Prefixes the message: "get the sandbox: no response". */
void error_prefix(struct hutch_error *e, const char *doing);

/* The code of an HTTP status that is not 2xx. */
int error_code_of_status(int status);

/* Reads the body of an error response: {"code","message"}, {"detail":[{"loc","msg"}]}, {"detail":"…"},
 * {"error":"…"} or plain text. Sets e->server_code and writes the text to `ret`, which may stay empty. */
void error_read_problem(struct str body, struct hutch_error *e, char *ret, size_t size);

#endif
