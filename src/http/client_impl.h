/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CLIENT_IMPL_H
#define HUTCH_HTTP_CLIENT_IMPL_H

/* The pool of a client and its connections. Internal to src/http. */

#include "http/client.h"
#include "http/message.h"
#include "http/tunnel.h"
#include "net/stream.h"

/* Endpoints are sandboxes: some thousands at most, a handful of them busy. */
#define CLIENT_BUCKETS 256

/* Interim responses (100, 102, 103) to skip; a correct server sends one or two. */
#define CLIENT_INTERIM_MAX 8

/* With this much unsent output a call is not writable. */
#define CLIENT_OUT_LOW (64 * KiB)
#define CLIENT_OUT_MAX (CLIENT_OUT_LOW + HTTP_WRITE_MAX + 2 * HTTP_HEAD_MAX)

struct http_endpoint {
        struct list node; /* in a bucket */
        struct list idle; /* most recently used first */
        unsigned n_idle;
        unsigned n_conns; /* references; the last one frees the endpoint */
        struct sock_addr addr;
};

enum client_state {
        /* IDLE – in the pool. Leaves by: a call -> HEAD; any byte or EOF -> CLOSED. */
        CLIENT_IDLE,
        /* HEAD – connecting, sending, or waiting for the head of the response.
         *   Leaves by: head -> BODY, 101 -> TUNNEL, failure -> CLOSED. */
        CLIENT_HEAD,
        /* BODY – leaves by: end of message -> IDLE or CLOSED. */
        CLIENT_BODY,
        /* TUNNEL – the protocol was switched; the call has ended. */
        CLIENT_TUNNEL,
        /* CLOSED – the stream is closing. */
        CLIENT_CLOSED,
};

struct http_client_conn {
        struct net_stream stream;
        struct http_client *client;
        struct http_endpoint *endpoint; /* NULL: a socket of http_call_start_fd, for one call */
        struct list node;               /* in client->conns */
        struct list idle_node;          /* in endpoint->idle */
        enum client_state state;

        struct http_call *call;  /* NULL when idle, canceled, or a tunnel */
        bool reused;             /* the call took it from the pool */
        bool broken;             /* writing failed; unread input is still parsed */
        uint64_t bytes_in_start; /* bytes_in and bytes_out when the call began */
        uint64_t bytes_out_start;
        uint64_t timeout_bytes; /* bytes in the direction the timeout watches, at the last look */

        struct http_message message;
        bool head_only; /* the request was HEAD */
        bool keep_alive;
        unsigned interim;

        struct http_tunnel *tunnel;
        struct timeout timeout;
        struct net_task task; /* closes a tunnel, from the loop */
};

struct http_client {
        struct net_loop *loop;
        struct http_client_config config;
        struct list buckets[CLIENT_BUCKETS];
        struct list conns;
        struct timeout_kind idle_timeout, connect_timeout, write_timeout, head_timeout,
                body_timeout, tunnel_timeout, half_closed_timeout;
        struct http_client_stats stats;
        unsigned live_calls;
        bool freeing;
        http_client_freed_fn *freed;
        void *freed_data;
        uv_timer_t last; /* its close callback frees the client */
};

/* client.c */

/* A connection or a call has ended: frees the client if that was the last. */
void client__check_end(struct http_client *cl);

/* Finds or creates an endpoint, which lives as long as it is referenced (n_conns). */
struct http_endpoint *endpoint__get(struct http_client *cl, const struct sock_addr *addr);
void endpoint__unref(struct http_endpoint *e);

/* Puts an idle connection into the pool. False when that is full. */
bool endpoint__give_idle(struct http_endpoint *e, struct http_client_conn *c);

/* client_conn.c */

/* A connection over fd, which it takes. `e` is NULL for a socket that serves one call. */
int client_conn__open(struct http_client *cl, struct http_endpoint *e, int fd, bool connecting,
                      struct http_client_conn **ret) must_check;

/* Assigns the connection to a call and queues the head of the request. */
void client_conn__begin(struct http_client_conn *c, struct http_call *call, bool reused);

/* Closes the connection and ends its call with r, or retries it; see call__finish. */
void client_conn__fail(struct http_client_conn *c, int r);

/* Detaches the call and closes; the caller ends the call. */
void client_conn__close(struct http_client_conn *c, int reason);

void client_conn__update(struct http_client_conn *c);
void client_conn__timed_out(struct timeout *t);

/* client_call.c */

/* Begins the call on a connection to this address: one of the pool, unless it has to be a `fresh` one.
 * If the address refuses the connection, on one to the fallback. */
int call__connect(struct http_call *call, const struct sock_addr *to, bool fresh) must_check;
/* Calls `end` immediately, so: from the loop only. */
void call__finish(struct http_call *call, int r);

#endif
