/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SSE_H
#define HUTCH_HTTP_SSE_H

/*
 * Event streams: a response that lasts until the producer or the client ends it.
 *
 * There are three framings. The standard one (HTML, 9.2) has event:, id: and data: lines. OpenSandbox
 * clients expect a line of JSON and an empty line for commands, and the same without the empty line
 * for metrics. A group of streams has one framing and one interval of pings, which keep proxies from
 * closing a silent stream; all streams of a group share one timer.
 *
 * Back-pressure. An event is accepted if the stream is writable; otherwise -EAGAIN is returned, and
 * ops->drain is called when the client has caught up. A ping is dropped if the stream is full. So a
 * stream buffers at most one event more than CONN_OUT_LOW bytes.
 *
 * Lifetime. The struct belongs to the producer, usually inside its own state, where ops find it by
 * container_of. It is used from http_sse_begin until the producer calls http_sse_end, or until
 * ops->gone was called. Meanwhile the stream holds a reference to the request and owns its hooks.
 *
 * http_sse_begin sends the head. A producer that may still fail calls it with its first event.
 */

#include "http/req.h"
#include "net/timeout.h"

struct http_sse;

enum http_sse_framing {
        HTTP_SSE_FIELDS, /* event: id: data: */
        HTTP_SSE_BARE,   /* a line of JSON, an empty line */
        HTTP_SSE_LINE,   /* a line of JSON */
};

struct http_sse_ops {
        /* The client has received everything: send more now. May be NULL. */
        void (*drain)(struct http_sse *s);
        /* Send a keep-alive now. NULL: a comment in the standard framing, nothing in the others. May
         * end the stream. */
        void (*ping)(struct http_sse *s);
        /* The client is gone (see hooks->abort for reasons). Last call; the memory may be freed. */
        void (*gone)(struct http_sse *s, int reason);
};

struct http_sse_group {
        enum http_sse_framing framing;
        struct timeout_kind _pings;
};

struct http_sse {
        const struct http_sse_ops *ops;
        struct http_req *req;
        struct http_sse_group *_group;
        struct timeout _ping;
};

/* A null view omits its line. */
struct http_sse_event {
        struct str event;
        struct str id;
        struct str data;
};

/* --- groups --- */

/* ping_interval: 0 for none. */
void http_sse_group_init(struct http_sse_group *g, struct net_loop *l,
                         enum http_sse_framing framing, usec_t ping_interval);

/* Running streams lose their pings. The memory must stay valid until the loop has run once more. */
void http_sse_group_close(struct http_sse_group *g);

/* --- life cycle --- */

/* Sends the head; no response may have begun. -ECONNRESET if the client is gone, -ENODATA for a HEAD
 * request, whose response is complete: there is no stream then, and no callback is called. */
int http_sse_begin(struct http_sse *s, struct http_req *req, struct http_sse_group *g,
                   const struct http_sse_ops *ops) must_check;

/* Ends the stream. No callback is called any more; the memory may be freed. */
void http_sse_end(struct http_sse *s);

/* --- events --- */

/* Whether the next event will be accepted. */
bool http_sse_writable(const struct http_sse *s);

/* Sends an event in the standard framing. Line ends in data start a new data: line, which the client
 * joins again; they are not allowed in event and id. 0, -EAGAIN when the client does not keep up,
 * -EMSGSIZE above HTTP_WRITE_MAX bytes, -EINVAL. Nothing is sent on failure. */
int http_sse_event(struct http_sse *s, const struct http_sse_event *event) must_check;

/* Sends a JSON document in the group's framing. Line ends between its tokens become spaces. Otherwise
 * as http_sse_event. */
int http_sse_json(struct http_sse *s, struct str json) must_check;

#endif
