/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_RANGE_H
#define HUTCH_HTTP_RANGE_H

/*
 * Which bytes of a thing of known size a request wants, and whether it wants them at all: Range,
 * If-Range, If-None-Match and If-Modified-Since (RFC 9110, sections 13 and 14).
 *
 * One range is served. If a client asks for several, it gets the first that can be satisfied, so
 * that no request can make the answer larger than the thing itself. A server may ignore a Range it
 * does not like; we ignore other units than bytes, bad syntax, and more than RANGE_SPECS_MAX
 * ranges. Numbers beyond 2^63-1 are numbers that are larger than any size, not bad syntax.
 *
 * Everything works on views and allocates nothing. An absent field is the null view.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/str.h"

#define RANGE_SPECS_MAX 16

enum range_result {
        RANGE_FULL,          /* no Range, or one to be ignored: 200 and everything */
        RANGE_PARTIAL,       /* 206 and [start, end] */
        RANGE_UNSATISFIABLE, /* 416 */
};

struct range {
        uint64_t start;
        uint64_t end; /* the last byte, inclusive as in Content-Range: start <= end < size */
};

/* *ret is written for RANGE_PARTIAL only. An empty thing has no byte to be named in a
 * Content-Range; a suffix of it ("-5") is RANGE_FULL. */
enum range_result range_parse(struct str field, uint64_t size, struct range *ret);

/* --- conditions --- */

/* What we know of the thing's present state. */
struct validators {
        struct str etag; /* with its quotes and, if weak, W/; the null view if there is none */
        usec_t modified; /* wall clock; USEC_INFINITY if unknown */
};

/* Does If-Range allow the range? True if absent. A date has to be the very second we would send as
 * Last-Modified, a tag has to be equal and strong; everything else means: send the whole thing. */
bool range_if_range(struct str if_range, const struct validators *v);

/* Would a GET or HEAD be answered by 304? If-None-Match, where present, decides alone (weak
 * comparison, "*" matches anything that exists). What can't be parsed matches nothing. */
bool http_not_modified(struct str if_none_match, struct str if_modified_since,
                       const struct validators *v);

#endif
