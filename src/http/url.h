/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_URL_H
#define HUTCH_HTTP_URL_H

/*
 * Request targets, percent-encoding, query parameters, and the grammar of a few header parts.
 *
 * A target is split into views first (url_split) and decoded later, piece by piece: a "%2F" in a path
 * segment is data, not a separator, so decoding before splitting would be a vulnerability. Decoding is
 * strict: a '%' without two hex digits, and a NUL, encoded or not, are rejected. Dot segments are kept;
 * code that maps paths to files must reject them in the decoded text.
 *
 * Views point into their source. Decoded text does too if nothing had to be decoded, else into the
 * arena. The null view means "absent".
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

/* --- targets --- */

enum url_form {
        URL_ORIGIN,   /* /path?query */
        URL_ABSOLUTE, /* http://host/path?query: for proxies; servers must accept it, too */
        URL_ASTERISK, /* *, for OPTIONS */
};

struct url_target {
        enum url_form form;
        struct str authority; /* host[:port] of the absolute form, else the null view */
        struct str path;      /* raw, begins with '/'; "*" in the asterisk form */
        struct str query;     /* raw, without '?'; the null view if there was no '?' */
};

/* -EINVAL for anything else, such as fragments, user names, schemes other than http and https, spaces,
 * control characters and non-ASCII bytes. */
int url_split(struct str target, struct url_target *ret) must_check;

/* --- percent-encoding --- */

enum url_decode_flags {
        URL_PLUS_IS_SPACE = 1 << 0, /* as in queries and forms */
};

/* -EINVAL if malformed, -ENOMEM if the arena is full. */
int url_decode(struct arena *a, struct str s, unsigned flags, struct str *ret) must_check;

/* Decodes in place; adds no NUL. After -EINVAL the content is unspecified. */
int url_decode_in_place(char *p, size_t n, unsigned flags, size_t *ret_n) must_check;

/* Appends s as one path segment, or as key or value of a query: everything but letters, digits and
 * "-._~" is encoded. A failure is recorded in b. */
void url_encode(struct buf *b, struct str s);

/* The same, but keeps '/': for a path of several segments. */
void url_encode_path(struct buf *b, struct str s);

/* --- query parameters --- */

/* Removes the next "key=value" from *rest; false at the end. Both are raw; the value is the null view
 * if there was no '='. Empty pairs ("a&&b") are skipped.
 *
 *         for (struct str rest = target.query; url_query_next(&rest, &key, &value);)
 */
bool url_query_next(struct str *rest, struct str *ret_key, struct str *ret_value);

/* Removes pairs from *rest until one has this key (compared decoded), and returns its decoded value,
 * empty if there was no '='. For repeated keys: start with the query, call until 0. 1 found, 0 none
 * left, -EINVAL if its value or a key before it is malformed, -ENOMEM. */
int url_query_each(struct arena *a, struct str *rest, const char *name, struct str *ret_value)
        must_check;

/* --- grammar of header parts --- */

/* Host: a name, an IPv4 or an [IPv6] address, optionally with a port. Not empty: all our resources have
 * an authority. */
bool http_host_is_valid(struct str s);

/* A token of RFC 9110, 5.6.2: methods, field names. Not empty. */
bool http_token_is_valid(struct str s);

/* No CR, LF or NUL, which could forge another field. */
bool http_field_value_is_valid(struct str s);

#endif
