/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SERVER_IMPL_H
#define HUTCH_HTTP_SERVER_IMPL_H

/* The server's state, for its connections and requests. Internal to src/http. */

#include "base/id.h"
#include "base/map.h"
#include "http/anonymous.h"
#include "http/server.h"

/* Spare requests kept for reuse, each with one arena block: about as many as are in progress at one
 * time on a busy loop. */
#define HTTP_SPARE_REQS 64

struct http_conn;

struct http_listener {
        struct net_listener net;
        struct http_server *server;
        struct list node; /* in server->listeners */
};

struct http_server {
        struct net_loop *loop;
        struct http_server_config config;
        struct log_ctx log;
        struct http_router *router;
        void *data;
        http_request_done_fn *ended;

        struct list listeners;
        struct list conns;
        struct map shares;     /* of struct http_share, while they are in use */
        struct list strangers; /* connections of addresses that wait for a request, oldest first */
        struct timeout_kind head_timeout, idle_timeout, body_timeout, write_timeout, linger_timeout;
        struct http_anonymous anonymous; /* in the access log */
        uint64_t body_window;            /* bytes that restart body_timeout */
        uv_timer_t drain_timer;

        struct list spare_reqs;
        unsigned n_spare;
        unsigned live_reqs; /* the server outlives its requests */
        struct ids ids;

        char date[TIME_HTTP_MAX]; /* the Date header, updated once a second */
        size_t date_n;
        usec_t date_at;

        bool draining, freeing;
        unsigned open_handles; /* listeners, until they are closed */
        struct net_task end;   /* continues draining or freeing */
        http_server_freed_fn *drained, *freed;
        void *drained_data, *freed_data;
        struct http_server_stats stats;
};

/* A connection, a request or a listener has ended: continues draining or freeing, from the loop. */
void http_server__check_end(struct http_server *s);

/* The line of the access log about requests that have none. */
void http_server__log_omitted(struct http_anonymous *a, const struct http_anonymous_summary *s);

#endif
