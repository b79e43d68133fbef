/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SERVER_H
#define HUTCH_HTTP_SERVER_H

/*
 * The HTTP/1.1 server: listeners, connections, limits.
 *
 * Every connection has exactly one timeout running whenever the server waits for the client: for
 * the head of a request, for its body, for room to write, or for the next request. It has none
 * while a handler works: that is the handler's own deadline.
 *
 * When the maximum of connections is reached, the one that has been idle longest makes room, else
 * the one that has been sending a head longest, else the one whose body has stalled longest; if
 * there is none of these, the newcomer gets 503 and is closed.
 */

#include "http/route.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/timeout.h"

struct http_server_config {
        size_t head_max;   /* bytes of request line and headers */
        size_t target_max; /* bytes of the target */
        unsigned conns_max;
        usec_t head_timeout;   /* first byte of a request to the end of its head */
        usec_t idle_timeout;   /* between requests, and before the first */
        usec_t body_timeout;   /* without a byte of a body we wait for */
        usec_t write_timeout;  /* without the client taking a byte of the answer */
        usec_t linger_timeout; /* for an unread body after the answer */
        usec_t drain_timeout;  /* SIGTERM to the forced end of what still runs */
        bool access_log;
        struct str server_name; /* Server header; null view: none */
};

extern const struct http_server_config http_server_defaults;

struct http_server_stats {
        uint64_t accepted, refused, evicted, timeouts;
        uint64_t requests, bad_requests;
        uint64_t responses[6]; /* by the first digit of the status */
        uint64_t bytes_in, bytes_out;
        unsigned connections; /* now */
        unsigned idle;        /* now, of these */
        unsigned in_flight;   /* now: requests that were counted (http_req_count) */
};

/* --- life cycle --- */

struct http_server *http_server_new(struct net_loop *l, const struct http_server_config *config,
                                    const struct log_ctx *log);

/* Every connection is closed; the loop must run before the memory is gone: `freed` is called then,
 * from the loop. Handlers that hold requests are waited for. A draining that is under way ends
 * without `drained`. Not to be called from inside a handler or a hook. */
typedef void http_server_freed_fn(void *data);
void http_server_free(struct http_server *s, http_server_freed_fn *freed, void *data);

/* --- set-up --- */

int http_server_add_api(struct http_server *s, const struct http_api *api) must_check;

/* Takes a listening socket. */
int http_server_listen(struct http_server *s, int fd) must_check;

/* Serves one connected socket, as if it had been accepted, and takes it. */
void http_server_serve(struct http_server *s, int fd);

/* The user's own state for handlers (injected resources). */
void http_server_set_data(struct http_server *s, void *data);
void *http_server_data(const struct http_server *s);

/* Told of every request once, when its answer is complete or broken off and nobody but the caller
 * looks at it any more: for counters and records of what was asked. res.status is 0 if there was no
 * answer. `took` is the time since its first byte. NULL: nobody is told. */
typedef void http_request_done_fn(const struct http_req *req, usec_t took);
void http_server_on_request_done(struct http_server *s, http_request_done_fn *ended);

/* --- running --- */

/* Accepts no more, closes what is idle, lets running requests end, each with Connection: close;
 * after drain_timeout what is left is aborted. `drained` is called from the loop once no
 * connection is left. Calling it twice does nothing. */
void http_server_drain(struct http_server *s, http_server_freed_fn *drained, void *data);

struct http_server_stats http_server_stats(const struct http_server *s);
struct net_loop *http_server_loop(const struct http_server *s);

#endif
