/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_PROXY_H
#define HUTCH_HTTP_PROXY_H

/*
 * The reverse proxy: forwards a request to another server and streams its response back.
 *
 * Request and response are parsed, checked and written anew, so a message that two parsers would read
 * differently does not pass. Bodies stream in both directions and are never buffered completely; the
 * slower side slows the other. docs/internals/proxy.md lists what is removed and added, and the
 * responses to failures.
 *
 * Call it before the body of the request is requested, such as from the exec of a route with
 * HTTP_BODY_STREAM:
 *
 *         http_proxy(req, &(struct http_proxy_target){
 *                                 .client = client, .addr = &addr,
 *                                 .prefix = STR("/"), .path = req->params[1],
 *                                 .flags = HTTP_PROXY_FORWARDED, .strip = secret_headers, … });
 */

#include "http/client.h"
#include "http/req.h"
#include "http/route.h"

enum http_proxy_flags {
        HTTP_PROXY_FORWARDED_FOR = 1 << 0,   /* append the client to X-Forwarded-For */
        HTTP_PROXY_FORWARDED_PROTO = 1 << 1, /* set X-Forwarded-Proto */
        HTTP_PROXY_FORWARDED_HOST = 1 << 2,  /* set X-Forwarded-Host */
        HTTP_PROXY_FORWARDED = (1 << 3) - 1,
        HTTP_PROXY_KEEP_HOST = 1 << 3, /* forward the client's Host; else it becomes `host` */
};

/* Responds when the upstream fails: a status of 5xx or, if the request is at fault, 4xx. See
 * docs/internals/proxy.md. */
typedef void http_proxy_failed_fn(struct http_req *req, const struct http_problem *p);

/* Called for each response header that would be forwarded, those of a protocol switch too. 1: forward it,
 * with the value that is in *h now (which lives in the request's arena); 0: drop it; negative: reject
 * the response. The caller adds its own headers to the response before http_proxy; they are part of it
 * in any case, failures included. */
typedef int http_proxy_filter_fn(struct http_req *req, struct http_header *h);

/* Views and lists live in the request's arena or are constants, except `strip`, which is only read
 * during http_proxy. */
struct http_proxy_target {
        struct http_client *client;
        const struct sock_addr *addr; /* NULL: `fd` is a connected socket, which is taken */
        int fd;
        const struct sock_addr *fallback; /* or NULL: tried when `addr` refuses the connection */

        /* The target is prefix, path, and the query of the request, all unchanged. */
        struct str prefix;
        struct str path;

        struct str host; /* null view: "localhost" */
        unsigned flags;
        const struct http_header *add; /* replace those of the same name */
        size_t n_add;
        const struct str *strip; /* names that are not forwarded */
        size_t n_strip;

        struct buf *body; /* sent instead of the request's, and emptied; NULL: that streams */

        http_proxy_filter_fn *filter; /* NULL: all headers pass */
        http_proxy_failed_fn *failed; /* NULL: an error in the format of the API */
};

/* The proxy sends the response from now on. */
void http_proxy(struct http_req *req, const struct http_proxy_target *t);

#endif
