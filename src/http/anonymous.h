/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_ANONYMOUS_H
#define HUTCH_HTTP_ANONYMOUS_H

/*
 * Requests of unidentified callers, in logs: without a key, with a wrong one, malformed, or for a public route. Anyone can
 * send any number of them, so a log has a line for the first LOG_BURST of an interval only. The others are counted, and at
 * the end of the interval one line has their number, by reason and by peer:
 *
 *         if (req->principal || http_anonymous_admit(&log->anonymous, req))
 *                 write a line
 *
 * An interval begins with the first such request and lasts LOG_INTERVAL_USEC. A summary is of constant size: names beyond
 * the first HTTP_TALLY_NAMES are counted together. If the process is killed, the counts of that interval are lost.
 */

#include "base/buf.h"
#include "net/timeout.h"

struct http_req;
struct http_anonymous;

#define HTTP_TALLY_NAMES    8
#define HTTP_TALLY_NAME_MAX 64 /* longer names are cut */

struct http_tally {
        struct {
                char name[HTTP_TALLY_NAME_MAX + 1];
                uint64_t n;
        } names[HTTP_TALLY_NAMES];
        uint64_t other;
};

/* "MISSING_API_KEY:120 INVALID_API_KEY:7 other:1" */
void http_tally_print(const struct http_tally *t, struct buf *b);

/* {"MISSING_API_KEY":120,"INVALID_API_KEY":7,"other":1} */
void http_tally_encode(const struct http_tally *t, struct buf *b);

struct http_anonymous_summary {
        uint64_t omitted;
        struct http_tally reasons; /* the code of an error, else the status */
        struct http_tally peers;
};

typedef void http_anonymous_fn(struct http_anonymous *a, const struct http_anonymous_summary *s);

struct http_anonymous {
        struct timeout_kind _intervals;
        struct timeout _interval;
        unsigned _admitted;
        struct http_anonymous_summary _summary;
        http_anonymous_fn *_summarise;
};

/* `summarise` writes the line, from the loop; it is not called if nothing was omitted. */
void http_anonymous_init(struct http_anonymous *a, struct net_loop *l,
                         http_anonymous_fn *summarise);

/* Writes the summary of the current interval. The memory must stay valid until the loop has run once more. */
void http_anonymous_close(struct http_anonymous *a);

/* Whether the request, which has ended, gets a line of its own; otherwise it is counted. */
bool http_anonymous_admit(struct http_anonymous *a, const struct http_req *req);

#endif
