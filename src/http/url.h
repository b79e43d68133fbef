/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_URL_H
#define HUTCH_HTTP_URL_H

/*
 * Request targets, percent-encoding, query parameters, and the grammar of a few header parts.
 *
 * A target is cut into views first (url_split) and decoded later, piece by piece: a "%2F" inside a
 * path segment is data, not a separator, so decoding before splitting would be a hole. Decoding is
 * strict: a '%' without two hex digits and a NUL, encoded or not, are refused. Dot segments are
 * left alone; who turns a path into files has to forbid them on the decoded text.
 *
 * Views point into the text they came from. Decoded text points there too when nothing had to be
 * decoded, else into the arena. The null view means "absent".
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

/* --- targets --- */

enum url_form {
        URL_ORIGIN,   /* /path?query */
        URL_ABSOLUTE, /* http://host/path?query: as a proxy is asked, and to be taken by servers */
        URL_ASTERISK, /* *, for OPTIONS */
};

struct url_target {
        enum url_form form;
        struct str authority; /* host[:port] of the absolute form, else the null view */
        struct str path;      /* raw, begins with '/'; "*" in the asterisk form */
        struct str query;     /* raw, without '?'; the null view if there was no '?' */
};

/* -EINVAL for anything else, among it: fragments, user names, other schemes than http and https,
 * spaces, control characters and bytes beyond ASCII. */
int url_split(struct str target, struct url_target *ret) must_check;

/* --- percent-encoding --- */

enum url_decode_flags {
        URL_PLUS_IS_SPACE = 1 << 0, /* as in queries and forms */
};

/* -EINVAL if it is malformed, -ENOMEM if the arena is full. */
int url_decode(struct arena *a, struct str s, unsigned flags, struct str *ret) must_check;

/* Within its own memory, where it becomes shorter or stays as it is; no NUL is added. After
 * -EINVAL the memory's content is unspecified. */
int url_decode_in_place(char *p, size_t n, unsigned flags, size_t *ret_n) must_check;

/* Appends s so that it is one path segment, or the key or value of a query: all but letters,
 * digits and "-._~" is encoded. A failure is b's. */
void url_encode(struct buf *b, struct str s);

/* The same, but '/' stays: for a path of several segments. */
void url_encode_path(struct buf *b, struct str s);

/* --- query parameters --- */

/* Takes the next "key=value" off *rest; false at the end. Both are raw; the value is the null view
 * if there was no '='. Empty pairs ("a&&b") are passed over.
 *
 *         for (struct str rest = target.query; url_query_next(&rest, &key, &value);)
 */
bool url_query_next(struct str *rest, struct str *ret_key, struct str *ret_value);

/* Takes pairs off *rest until one has this key (compared decoded); its decoded value is written,
 * empty if there was no '='. For keys that may be repeated: start with the query, call until 0.
 * 1 found, 0 none left, -EINVAL if a key before it or its value is malformed, -ENOMEM. */
int url_query_each(struct arena *a, struct str *rest, const char *name, struct str *ret_value)
        must_check;

/* The first value of a key; otherwise as url_query_each. */
int url_query_get(struct arena *a, struct str query, const char *name, struct str *ret_value)
        must_check;

/* --- grammar of header parts --- */

/* Host: a registered name, an IPv4 address or an [IPv6] address, and perhaps a port. Not empty:
 * we only serve resources that have an authority. */
bool http_host_is_valid(struct str s);

/* A token of RFC 9110, 5.6.2: methods, field names. Not empty. */
bool http_token_is_valid(struct str s);

/* No CR, LF or NUL: may be written as a field's value without forging another field. */
bool http_field_value_is_valid(struct str s);

#endif
