/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_TRANSPORT_H
#define HUTCH_HTTP_TRANSPORT_H

/*
 * What carries requests in and responses out: a connection (conn.c), or the loopback of the tests.
 * For writers of a transport; handlers use http/req.h.
 *
 * The transport fills a request, calls http_router_head when its head is complete, delivers the
 * body with http_req_deliver and http_req_deliver_end, and drops its reference when both the
 * answer is out and the body read, or with http_req_abort when the client is gone.
 */

#include "http/req.h"

struct http_problem;

struct http_transport_ops {
        /* req->res.status, .headers and .length are final. */
        void (*head)(struct http_req *req);
        void (*data)(struct http_req *req, struct str bytes);   /* copied */
        void (*borrow)(struct http_req *req, struct str bytes); /* lives until the answer is out */
        void (*file)(struct http_req *req, uint64_t pos, uint64_t n); /* of res.file */
        void (*end)(struct http_req *req);
        void (*fail)(struct http_req *req); /* break off */
        bool (*writable)(const struct http_req *req);
        void (*body_flow)(struct http_req *req); /* _body_* or _abort_on_eof changed */
        int (*upgrade)(struct http_req *req, struct http_tunnel *t);
};

/* A fresh request with one reference, the transport's; from the server's store of spare ones. */
struct http_req *http_req_new(struct http_server *s, const struct http_transport_ops *ops,
                              void *conn);

/* Sets id (taken from X-Request-ID or made) and log context, once the headers are known. */
void http_req_identify(struct http_req *req);

/* A fragment of the body: counts, checks the limit, collects or passes on. Returns false when the
 * body became too large; the request is answered then. */
bool http_req_deliver(struct http_req *req, const char *p, size_t n);
void http_req_deliver_end(struct http_req *req);

/* Takes the request out of its handler's hands: tells it `reason` (see hooks->abort) and answers in
 * its place; an answer that has begun is broken off. */
void http_req_refuse(struct http_req *req, int reason, const struct http_problem *p);

/* Tells the handler, cuts the request off from the transport. The transport's reference stays the
 * transport's to drop. */
void http_req_abort(struct http_req *req, int reason);

/* Reserved for the server's own counters and access log; called by the transport when the answer
 * is complete or broken off. */
void http_req_account(struct http_req *req);

#endif
