/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_HTTP_LOOPBACK_H
#define HUTCH_TESTS_LIB_HTTP_LOOPBACK_H

/*
 * A request through real routing, authorization and handlers without a socket.
 *
 *         struct http_loopback lb;
 *         http_loopback_init(&lb, server);
 *         http_loopback_header(&lb, STR("X-Request-ID"), STR("a1"));
 *         http_loopback_run(&lb, "GET", "/health", STR_NULL);
 *         assert(lb.status == 200);
 *         http_loopback_done(&lb);
 *
 * The response is collected; streams too, up to LOOPBACK_MAX bytes. Protocol switches are refused.
 */

#include "http/req.h"
#include "http/server.h"

#define LOOPBACK_MAX (16 * MiB)

struct http_loopback {
        /* --- the response --- */
        int status; /* 0 until there is one */
        bool ended;
        bool failed;                 /* the handler broke off */
        struct http_headers headers; /* of the response; valid until http_loopback_done */
        struct buf body;

        struct http_server *_server;
        struct http_conn *_conn; /* without a socket */
        struct http_req *_req;
        struct http_headers _request_headers;
        struct arena _arena;
        struct str _request_body;
        size_t _fed;
        bool _fed_end;
};

void http_loopback_init(struct http_loopback *lb, struct http_server *s);
void http_loopback_done(struct http_loopback *lb);

/* Both views must live until the request is done. */
void http_loopback_header(struct http_loopback *lb, struct str name, struct str value);

/* Delivers the request; the response may already be there when it returns. A null body is none. */
void http_loopback_start(struct http_loopback *lb, const char *method, const char *target,
                         struct str body);

/* The same, and turns the loop until the response has ended. */
void http_loopback_run(struct http_loopback *lb, const char *method, const char *target,
                       struct str body);

/* The client goes away. */
void http_loopback_abort(struct http_loopback *lb, int reason);

#endif
