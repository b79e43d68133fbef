/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_HEADERS_H
#define HUTCH_HTTP_HEADERS_H

/*
 * An ordered list of header fields in an arena. Names compare without case; values have no surrounding
 * white space. Both are views into the arena, or constants.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct http_header {
        struct str name;
        struct str value;
};

struct http_headers {
        struct http_header *v;
        size_t n;
        size_t cap;
};

/* -ENOMEM when the arena is full. The views must live as long as the arena. */
int http_headers_add(struct http_headers *h, struct arena *a, struct str name, struct str value)
        must_check;

/* The first of that name; the null view if there is none. */
struct str http_headers_get(const struct http_headers *h, struct str name);

/* How many of that name. */
size_t http_headers_count(const struct http_headers *h, struct str name);

/* Whether `token` is an element of the comma-separated field `name`, in any of its lines. */
bool http_headers_has_token(const struct http_headers *h, struct str name, struct str token);

/* Appends "Name: value" CR LF. Both must have been validated. */
void http_header_write(struct buf *b, struct str name, struct str value);

/* --- parameters of a field --- */

/*
 * The parameters behind a field's main value (RFC 9110, 5.6.6):
 *
 *         form-data; name="file"; filename="a \"b\".txt"
 *
 *         field_param_value(&field, &value);
 *         while ((r = field_param_next(&field, &param)) > 0)
 *                 ...
 *
 * Views point into the field. A quoted value has no quotes but keeps its escapes: senders disagree on
 * what a backslash means, and only the reader of the parameter knows.
 */
struct field_param {
        struct str name; /* a token; compare without case */
        struct str value;
        bool quoted;
};

/* Removes the text before the first ';' from *field and returns it trimmed. */
void field_param_value(struct str *field, struct str *ret);

/* Removes the next parameter from *field. 1, 0 at the end, -EINVAL for bad syntax. Empty parameters
 * ("a; ; b=c") are skipped. */
int field_param_next(struct str *field, struct field_param *ret) must_check;

#endif
