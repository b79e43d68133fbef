/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SERVER_H
#define HUTCH_HTTP_SERVER_H

/*
 * The HTTP/1.1 server: listeners, connections, limits.
 *
 * A connection has exactly one timeout while the server waits for the client: for the head of a
 * request, for its body, for space to write, or for the next request. It has none while a handler
 * works; handlers have their own deadlines.
 *
 * When the maximum number of connections is reached, the server closes the one that has been idle
 * longest, else the one that has been sending a head longest, else the one whose body has stalled
 * longest. If there is none of these, the new connection gets 503. Connections that no request was
 * authenticated on come before all others. Single parties have caps besides (http/share.h).
 */

#include "http/route.h"
#include "http/share.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/timeout.h"

struct http_server_config {
        size_t head_max;   /* bytes of request line and headers */
        size_t target_max; /* bytes of the target */
        unsigned conns_max;
        struct http_caps caps;  /* of addresses, tenants and keys */
        usec_t head_timeout;    /* first byte of a request to the end of its head */
        usec_t idle_timeout;    /* between requests, and before the first */
        usec_t body_timeout;    /* less of a requested body arrives than body_rate_min asks for */
        uint64_t body_rate_min; /* bytes in a second, over body_timeout; 0: one byte in that time */
        usec_t body_deadline;   /* head to end of a body that is collected, not streamed; 0: none */
        usec_t write_timeout;   /* the client accepts no byte of the response */
        usec_t linger_timeout;  /* after the last response */
        usec_t drain_timeout;   /* from http_server_drain to the forced end of what still runs */
        const struct log_sink *access_log; /* NULL: none. Outlives the server */
        bool log_anonymous;                /* in full; otherwise as http/anonymous.h says */
        struct str server_name;            /* Server header; null view: none */
};

extern const struct http_server_config http_server_defaults;

struct http_server_stats {
        uint64_t accepted, refused, evicted, timeouts;
        uint64_t requests, bad_requests;
        uint64_t responses[6]; /* by the first digit of the status */
        uint64_t bytes_in, bytes_out;
        unsigned connections;    /* now */
        unsigned idle;           /* of these */
        unsigned in_flight;      /* requests counted by http_req_count */
        struct http_caps capped; /* how often each cap was hit */
};

/* --- life cycle --- */

struct http_server *http_server_new(struct net_loop *l, const struct http_server_config *config,
                                    const struct log_ctx *log);

/* Closes all connections. `freed` is called from the loop when the memory has been freed, which waits
 * for handlers that hold requests. A drain in progress ends without `drained`. Must not be called from
 * a handler or a hook. */
typedef void http_server_freed_fn(void *data);
void http_server_free(struct http_server *s, http_server_freed_fn *freed, void *data);

/* --- set-up --- */

int http_server_add_api(struct http_server *s, const struct http_api *api) must_check;

/* Takes a listening socket. */
int http_server_listen(struct http_server *s, int fd) must_check;

/* Takes a connected socket and serves it as if it had been accepted. */
void http_server_serve(struct http_server *s, int fd);

/* The user's state, for handlers. */
void http_server_set_data(struct http_server *s, void *data);
void *http_server_data(const struct http_server *s);

/* Called once for every request, when its response is complete or aborted: for counters and audit
 * records. res.status is 0 if there was no response. `took` is the time since its first byte. */
typedef void http_request_done_fn(const struct http_req *req, usec_t took);
void http_server_on_request_done(struct http_server *s, http_request_done_fn *ended);

/* --- running --- */

/* Stops accepting, closes idle connections, and lets running requests end, each with Connection:
 * close. After drain_timeout the others are aborted. `drained` is called from the loop when no
 * connection is left. A second call does nothing. */
void http_server_drain(struct http_server *s, http_server_freed_fn *drained, void *data);

struct http_server_stats http_server_stats(const struct http_server *s);
struct net_loop *http_server_loop(const struct http_server *s);

#endif
