/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_COOKIE_H
#define HUTCH_API_ACCESS_COOKIE_H

/*
 * The Cookie header (RFC 6265, 4.2): pairs, separated by ';', over all its lines. Names and values are raw.
 */

#include "http/headers.h"

struct cookie {
        struct str
                name; /* empty if there is no '=': browsers take that for a value without a name */
        struct str value;
        struct str text; /* the whole pair */
};

struct cookie_iter {
        const struct http_headers *headers;
        size_t _line;
        struct str _rest;
};

/* The next one; empty pieces are skipped. False at the end. */
bool cookie_next(struct cookie_iter *it, struct cookie *ret);

/* All cookies but those of that name, in one line; the null view if none is left. -ENOMEM. */
int cookie_without(const struct http_headers *h, struct str name, struct arena *a, struct str *ret)
        must_check;

/* A Set-Cookie without its Domain: the cookie then belongs to the host that sets it only. -ENOMEM. */
int cookie_host_only(struct str set_cookie, struct arena *a, struct str *ret) must_check;

#endif
