/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CONN_H
#define HUTCH_HTTP_CONN_H

/* One HTTP/1.1 connection of the server; conn.c explains how it works. Internal to src/http. */

#include "http/message.h"
#include "http/req.h"
#include "http/route.h"
#include "http/server_impl.h"
#include "http/tunnel.h"
#include "net/stream.h"

enum conn_state {
        /* IDLE – between requests. Leaves by: a byte -> HEAD; FIN, drain -> LINGER, CLOSED. */
        CONN_IDLE,
        /* HEAD – a part of a head was read. Leaves by: blank line -> BODY, malformed -> REFUSED. */
        CONN_HEAD,
        /* BODY – the head is complete, the handler may run; the body is parsed as it arrives.
         *   Leaves by: end of message -> RESPONSE. caveat: the response may end first. */
        CONN_BODY,
        /* RESPONSE – the request is complete; input waits.
         *   Leaves by: response sent -> IDLE, LINGER; 101 -> TUNNEL. */
        CONN_RESPONSE,
        /* REFUSED – the input is malformed and discarded; the error response is being sent.
         *   Leaves by: response sent -> LINGER. */
        CONN_REFUSED,
        /* LINGER – FIN follows the output; input is discarded until the client's FIN, so that
         *   closing does not reset the connection before the client has read the response. */
        CONN_LINGER,
        /* TUNNEL – the protocol was switched. */
        CONN_TUNNEL,
        /* CLOSED – the stream is closing. */
        CONN_CLOSED,
};

/* With this much unsent output, no more is produced and no further request begins. */
#define CONN_OUT_LOW (64 * KiB)
#define CONN_OUT_MAX (CONN_OUT_LOW + HTTP_WRITE_MAX + 64 * KiB)

/* An unread body is discarded up to this size to keep the connection; a longer one closes it. */
#define CONN_DISCARD_MAX (256 * KiB)

/* The part of a connection in a share; see http/share.h. */
struct conn_share {
        struct http_share *share; /* NULL: none */
        struct http_conn *conn;
        struct list
                node; /* in share->waiting, while the connection may be closed for another one */
};

struct http_conn {
        struct net_stream stream;
        struct http_server *server;
        struct list node; /* in server->conns */
        enum conn_state state;

        struct http_message message;
        struct buf pending;

        struct http_req *req;
        bool responded;  /* the handler has sent the whole response */
        bool failed;     /* the handler aborted the response */
        bool keep_alive; /* after this response */
        bool chunked;    /* this response */
        bool until_eof;  /* this response ends with the connection */
        bool continued;  /* 100 Continue was sent, or is not needed */
        uint64_t discarded;
        uint64_t timeout_bytes; /* bytes seen at the last conn__update_timeout */

        struct http_tunnel *tunnel;
        struct timeout timeout;
        struct net_task task; /* advance, from the loop */
        char peer[64];
        int64_t peer_uid;
        struct conn_share
                shares[2];    /* of its address; or of its tenant and, if it has one, its key */
        struct list stranger; /* in server->strangers */
};

/* A connection to the server of this http_listener; takes the descriptor. */
void http_conn_accepted(struct net_listener *l, int fd, const struct sock_addr *peer);

/* Closes the connection; a running request is aborted with `reason`. */
void http_conn_close(struct http_conn *c, int reason);

/* For draining: closes if idle, else makes the current response the last. */
void http_conn_retire(struct http_conn *c);

/* The one place where the state changes. */
void conn__set_state(struct http_conn *c, enum conn_state state);

/* Sets the timeout of the present state. */
void conn__update_timeout(struct http_conn *c);
void conn__timed_out(struct timeout *t);

/* --- conn_parse.c --- */

/* The head was parsed: checks it and hands the request to the router, or refuses it. */
void conn__head_complete(struct http_conn *c);

/* Responds with the problem and rejects all further input. */
void conn__refuse(struct http_conn *c, const struct http_problem *p);

/* Refuses what http_message_feed has rejected with r; `seen` are the bytes it was given. */
void conn__refuse_message(struct http_conn *c, int r, struct str seen);

/* --- share.c --- */

/* Charges a new connection to its address. 1: another one of that address was closed for it, 0: that was not
 * needed, -EBUSY: the address has too many. */
int conn__join_address(struct http_conn *c, const struct sock_addr *peer);

/* The state has changed: may the connection be closed when another one needs its place? */
void conn__queue_in_shares(struct http_conn *c);

void conn__leave_shares(struct http_conn *c);

/* Of all connections that belong to addresses, the one that waits longest; or NULL. */
struct http_conn *conn__oldest_stranger(const struct http_server *s);

/* The last reference to the request was dropped. */
void req__discharge(struct http_req *req);

/* --- req.c --- */

/* A new request with one reference, which belongs to the connection: it drops it when the response is
 * sent and the body read, or after http_req_abort when the client is gone. */
struct http_req *http_req_new(struct http_conn *c);

/* Sets id (from X-Request-ID, or generated) and log context, once the headers are known. */
void http_req_identify(struct http_req *req);

/* Pieces of the body go to the handler or are collected; what no one wants is counted as discarded. A
 * body that is too large is refused. */
extern const struct http_message_ops req__message_ops;

/* The body is complete: calls hooks->body_end of a streaming route; decodes the body of another one and
 * runs its exec. */
void http_req_deliver_end(struct http_req *req);

/* Rejects the request: calls hooks->abort with `reason` and responds in the handler's place. A response
 * that has begun is aborted. */
void http_req_refuse(struct http_req *req, int reason, const struct http_problem *p);

/* Calls hooks->abort and detaches the request from the connection, which still drops its reference. */
void http_req_abort(struct http_req *req, int reason);

/* Updates counters and the access log, when the response is complete or aborted. */
void http_req_account(struct http_req *req);

#endif
