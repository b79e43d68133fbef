/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CLIENT_IMPL_H
#define HUTCH_HTTP_CLIENT_IMPL_H

/* The client's inside: the pool and its connections. Internal to src/http. */

#include "http/client.h"
#include "http/message.h"
#include "http/tunnel.h"
#include "net/stream.h"

/* Endpoints are sandboxes: some thousands at most, a handful of them busy. */
#define CLIENT_BUCKETS 256

/* Interim answers (100, 102, 103) that are read over; an honest server sends one or two. */
#define CLIENT_INTERIM_MAX 8

/* Above this much unsent output a call is not writable. */
#define CLIENT_OUT_LOW (64 * KiB)
#define CLIENT_OUT_MAX (CLIENT_OUT_LOW + HTTP_WRITE_MAX + 2 * HTTP_HEAD_MAX)

struct http_endpoint {
        struct list node; /* in a bucket */
        struct list idle; /* used last first */
        unsigned n_idle;
        unsigned n_conns; /* all; the endpoint goes with the last */
        struct sock_addr addr;
};

enum client_state {
        /* IDLE – in the pool. Leaves by: a call -> HEAD; any byte or EOF -> CLOSED.            */
        CLIENT_IDLE,
        /* HEAD – the request is on its way, or the connection still is; the answer's head is
         *   awaited. Leaves by: head -> BODY, 101 -> TUNNEL, trouble -> CLOSED.                */
        CLIENT_HEAD,
        /* BODY – leaves by: end of message -> IDLE or CLOSED.                                  */
        CLIENT_BODY,
        /* TUNNEL – the protocol was switched; the call is over.                                */
        CLIENT_TUNNEL,
        /* CLOSED – the stream is closing; only the memory is left.                             */
        CLIENT_CLOSED,
};

struct http_client_conn {
        struct net_stream stream;
        struct http_client *client;
        struct http_endpoint *endpoint; /* NULL: one call only, over a descriptor we were given */
        struct list node;               /* in client->conns */
        struct list idle_node;          /* in endpoint->idle */
        enum client_state state;

        struct http_call *call;  /* NULL when idle, cancelled, or a tunnel */
        bool reused;             /* the call got it from the pool */
        bool broken;             /* the socket failed; what it still holds is being read */
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

/* client.c: a connection or a call is gone. */
void client__check_end(struct http_client *cl);

/* client_pool.c */

/* Found, or made; it stays while it has connections (endpoint__ref). */
struct http_endpoint *endpoint__find(struct http_client *cl, const struct sock_addr *addr,
                                     bool make);
void endpoint__ref(struct http_endpoint *e);
void endpoint__unref(struct http_endpoint *e);

/* The idle connection used last, out of the pool, or NULL. */
struct http_client_conn *endpoint__take_idle(struct http_endpoint *e);
/* False when the pool is full. */
bool endpoint__give_idle(struct http_endpoint *e, struct http_client_conn *c);

/* client_conn.c */

/* Both return a negative errno, or 0 with *ret set. */
int client_conn__open(struct http_client *cl, struct http_endpoint *e,
                      struct http_client_conn **ret) must_check;
int client_conn__open_fd(struct http_client *cl, int fd, struct http_client_conn **ret) must_check;

/* Lends the connection to a call and queues the request's head. */
void client_conn__begin(struct http_client_conn *c, struct http_call *call, bool reused);

/* Ends the connection now, its call with r; see call__finish. */
void client_conn__fail(struct http_client_conn *c, int r);

/* Takes the call off and closes: the call's end is the caller's business. */
void client_conn__close(struct http_client_conn *c, int reason);

void client_conn__update(struct http_client_conn *c);
void client_conn__timed_out(struct timeout *t);

/* client_parse.c: consumes from (p, n) what belongs to the answer; less than n when it is complete
 * or the connection left the parsing states. Negative errno for an answer to be refused. */
extern const struct http_message_ops client__message_ops;
void client__parse_begin(struct http_client_conn *c);
ssize_t client__parse(struct http_client_conn *c, const char *p, size_t n) must_check;

/* client_call.c */

bool call__may_retry(const struct http_call *call, const struct http_client_conn *c);
/* On a fresh connection; ends the call if there is none to be had. From the loop only. */
void call__retry(struct http_call *call);
/* Whether the call may go to its second address after r, and its going there, as call__retry. */
bool call__may_fall_back(const struct http_call *call, int r);
void call__fall_back(struct http_call *call);
/* The result is known; calls `end` right here, so: from the loop only. */
void call__finish(struct http_call *call, int r);
/* Sends as much of a body in memory as the connection accepts. */
void call__send_bytes(struct http_call *call);
void call__write_head(struct http_call *call, struct buf *out, bool keep_alive);

#endif
