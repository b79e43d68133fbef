/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_TRANSPORT_H
#define HUTCH_HTTP_TRANSPORT_H

/*
 * What carries requests in and responses out: a connection (conn.c), or the loopback of the tests.
 * For writers of a transport; handlers use http/req.h.
 *
 * The transport fills a request, calls http_router_head when its head is complete, and delivers the
 * body with http_req_deliver and http_req_deliver_end. It drops its reference when the response is sent
 * and the body read, or after http_req_abort when the client is gone.
 */

#include "http/req.h"

struct http_problem;

struct http_transport_ops {
        /* req->res.status, .headers and .length are final. */
        void (*head)(struct http_req *req);
        void (*data)(struct http_req *req, struct str bytes); /* copied */
        void (*borrow)(struct http_req *req,
                       struct str bytes); /* valid until the response is sent */
        void (*file)(struct http_req *req, uint64_t pos, uint64_t n); /* of res.file */
        void (*end)(struct http_req *req);
        void (*fail)(struct http_req *req); /* abort */
        bool (*writable)(const struct http_req *req);
        void (*body_flow)(struct http_req *req); /* _body_* or _abort_on_eof changed */
        int (*upgrade)(struct http_req *req, struct http_tunnel *t);
};

/* A new request with one reference, which belongs to the transport. */
struct http_req *http_req_new(struct http_server *s, const struct http_transport_ops *ops,
                              void *conn);

/* Sets id (from X-Request-ID, or generated) and log context, once the headers are known. */
void http_req_identify(struct http_req *req);

/* Delivers a piece of the body to the handler or collects it. Returns false when the body is too
 * large; the response has begun then. */
bool http_req_deliver(struct http_req *req, const char *p, size_t n);

/* The body is complete: calls hooks->body_end of a streaming route; decodes the body of another one and
 * runs its exec. */
void http_req_deliver_end(struct http_req *req);

/* Rejects the request: calls hooks->abort with `reason` and responds in the handler's place. A response
 * that has begun is aborted. */
void http_req_refuse(struct http_req *req, int reason, const struct http_problem *p);

/* Calls hooks->abort and detaches the request from the transport, which still drops its reference. */
void http_req_abort(struct http_req *req, int reason);

/* Updates counters and the access log; the transport calls it when the response is complete or
 * aborted. */
void http_req_account(struct http_req *req);

#endif
