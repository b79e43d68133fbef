/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_RANGE_H
#define HUTCH_HTTP_RANGE_H

/*
 * Range, If-Range, If-None-Match and If-Modified-Since (RFC 9110, sections 13 and 14), for a resource of
 * known size.
 *
 * One range is served. If a client requests several, it gets the first that can be satisfied, so that no
 * request can make the response larger than the resource. A server may ignore a Range; we ignore units
 * other than bytes, bad syntax, and more than RANGE_SPECS_MAX ranges. Numbers beyond 2^63-1 are larger
 * than any size, not bad syntax.
 *
 * Nothing is allocated. An absent field is the null view.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/str.h"

#define RANGE_SPECS_MAX 16

enum range_result {
        RANGE_FULL,          /* no Range, or an ignored one: 200 and everything */
        RANGE_PARTIAL,       /* 206 and [start, end] */
        RANGE_UNSATISFIABLE, /* 416 */
};

struct range {
        uint64_t start;
        uint64_t end; /* the last byte, inclusive as in Content-Range: start <= end < size */
};

/* *ret is written for RANGE_PARTIAL only. An empty resource has no byte that a Content-Range could name;
 * a suffix of it ("-5") is RANGE_FULL. */
enum range_result range_parse(struct str field, uint64_t size, struct range *ret);

/* --- conditions --- */

/* The present state of the resource. */
struct validators {
        struct str etag; /* with quotes and, if weak, W/; the null view: none */
        usec_t modified; /* wall clock; USEC_INFINITY if unknown */
};

/* Whether If-Range permits the range; true if it is absent. A date must equal the Last-Modified that we
 * would send, a tag must be equal and strong. */
bool range_if_range(struct str if_range, const struct validators *v);

/* Whether a GET or HEAD gets 304. If-None-Match, if present, decides alone (weak comparison, "*" matches
 * anything that exists). A malformed field matches nothing. */
bool http_not_modified(struct str if_none_match, struct str if_modified_since,
                       const struct validators *v);

#endif
