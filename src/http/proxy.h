/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_PROXY_H
#define HUTCH_HTTP_PROXY_H

/*
 * The reverse proxy: passes a request on to another server and streams its answer back.
 *
 * Nothing is copied through: request and answer are parsed, judged and written anew, so a message
 * that two parsers would read differently does not get across. Bodies stream in both directions
 * and are never held whole; whoever is slow slows the other. What is removed, added and answered
 * when something fails is told in docs/internals/proxy.md.
 *
 * To be called before the body of the request is asked for, as from the exec of a route with HTTP_BODY_STREAM:
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
        HTTP_PROXY_KEEP_HOST = 1 << 3, /* the client's Host goes on; else it becomes `host` */
};

/* Answers for a server behind that did not; a status of 5xx or, if the request is to blame, 4xx. What
 * they mean is told in docs/internals/proxy.md. */
typedef void http_proxy_failed_fn(struct http_req *req, const struct http_problem *p);

/* Asked for each header of the server's answer that would be passed on, that of a protocol switch too.
 * 1: it goes, with the value that is in *h now (which lives in the request's arena); 0: it does not;
 * negative: the answer is refused. Headers of our own are added to the answer before http_proxy is
 * called: they are part of whatever becomes of it, failures too. */
typedef int http_proxy_filter_fn(struct http_req *req, struct http_header *h);

/* Views and lists live in the request's arena or are constants, except for `strip`, which is only
 * looked at during the call of http_proxy. */
struct http_proxy_target {
        struct http_client *client;
        const struct sock_addr *addr; /* NULL: `fd` is a connected socket, and is taken */
        int fd;
        const struct sock_addr *fallback; /* or NULL: tried when `addr` refuses the connection */

        /* The target is prefix, rest, and the request's own query, byte for byte. */
        struct str prefix;
        struct str path;

        struct str host; /* null view: "localhost" */
        unsigned flags;
        const struct http_header *add; /* replace those of the same name */
        size_t n_add;
        const struct str *strip; /* names that must not reach the server */
        size_t n_strip;

        struct buf *body; /* sent instead of the request's, and emptied; NULL: that streams */

        http_proxy_filter_fn *filter; /* NULL: all headers pass */
        http_proxy_failed_fn *failed; /* NULL: in the error shape of the API */
};

/* The answer, whatever it will be, is the proxy's business from now on. */
void http_proxy(struct http_req *req, const struct http_proxy_target *t);

#endif
