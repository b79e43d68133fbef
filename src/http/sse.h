/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SSE_H
#define HUTCH_HTTP_SSE_H

/*
 * Event streams: an answer that lasts, one event after the other, until the producer or the client
 * has had enough.
 *
 * Three framings are in use. The standard one (HTML, 9.2) has event:, id: and data: lines; the one
 * OpenSandbox clients expect of commands is a bare line of JSON and an empty line, of metrics the
 * same without the empty line. Which of them a stream speaks is a property of its group, as is how
 * often it says something when there is nothing to say, so that proxies do not take it for dead. All
 * streams of a group share one timer.
 *
 * Back-pressure. An event is taken if the stream is writable and refused with -EAGAIN if the
 * client does not keep up; ops->drain tells when it has caught up. A ping that finds the stream
 * full is left out. So a stream holds at most one event more than CONN_OUT_LOW bytes.
 *
 * Life. The struct is the producer's, usually inside its own state, where ops find it by
 * container_of. It is used from http_sse_begin until the producer calls http_sse_end or
 * http_sse_fail, or until ops->gone was called; the stream holds a reference to the request
 * meanwhile. The request's hooks are the stream's from begin on.
 *
 * The head is sent by http_sse_begin: who may still fail with a plain answer calls it with the
 * first event.
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
        /* The client has taken everything: send more now. May be NULL. */
        void (*drain)(struct http_sse *s);
        /* Time for a sign of life. NULL: a comment, or nothing in the bare framings, which have no
         * comments. May end the stream. */
        void (*ping)(struct http_sse *s);
        /* The client is gone (see hooks->abort for reasons). Last call; the memory may go. */
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

/* The views may be null: then there is no such line. */
struct http_sse_event {
        struct str event;
        struct str id;
        struct str data;
};

/* --- groups --- */

/* ping_interval: 0 for none. */
void http_sse_group_init(struct http_sse_group *g, struct net_loop *l,
                         enum http_sse_framing framing, usec_t ping_interval);

/* Streams still running lose their pings. The memory must stay until the loop ran once more. */
void http_sse_group_close(struct http_sse_group *g);

/* --- life cycle --- */

/* Sends the head. The request must not have been answered. -ECONNRESET if its client is gone,
 * -ENODATA if it asked by HEAD and has got all of the answer; then there is no stream and nothing
 * will be called. */
int http_sse_begin(struct http_sse *s, struct http_req *req, struct http_sse_group *g,
                   const struct http_sse_ops *ops) must_check;

/* The stream is complete. Nothing is called any more, the memory may go. */
void http_sse_end(struct http_sse *s);

/* The same, but the client sees that the stream was cut off. */
void http_sse_fail(struct http_sse *s);

/* --- events --- */

/* Whether the next event will be taken. */
bool http_sse_writable(const struct http_sse *s);

/* In the standard framing. Line ends within data make several data: lines, which the client joins
 * by LF again; within event and id they are not allowed. 0, -EAGAIN when the client does not keep
 * up, -EMSGSIZE above HTTP_WRITE_MAX bytes, -EINVAL. Nothing was sent if it is not 0. */
int http_sse_event(struct http_sse *s, const struct http_sse_event *event) must_check;

/* A JSON document: bare, or as the data of an event without a name, as the group's framing says.
 * Line ends between its tokens become spaces. Otherwise as http_sse_event. */
int http_sse_json(struct http_sse *s, struct str json) must_check;

#endif
