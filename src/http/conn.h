/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CONN_H
#define HUTCH_HTTP_CONN_H

/*
 * One HTTP/1.1 connection of the server. Internal to src/http.
 *
 * Bytes are parsed one request at a time. While a request is being answered, what the client sends
 * ahead (pipelining) waits in `pending`, one read's worth at most, then reading stops. Callbacks of
 * the parser and calls of handlers only set flags; conn_advance looks at them when no foreign code
 * is on the stack, and is the only place where a request ends and the next begins.
 */

#include "http/message.h"
#include "http/server_impl.h"
#include "http/transport.h"
#include "http/tunnel.h"
#include "net/stream.h"

enum conn_state {
        /* IDLE – between requests. Leaves by: a byte arrives -> HEAD.                          */
        CONN_IDLE,
        /* HEAD – part of a head was read. Leaves by: blank line -> BODY, nonsense -> REFUSED.  */
        CONN_HEAD,
        /* BODY – head is complete, the handler may be at work; the body is parsed as it comes.
         *   Leaves by: end of message -> ANSWER. caveat: the answer may end first.             */
        CONN_BODY,
        /* ANSWER – the request is complete; input waits. Leaves by: answer out -> IDLE, LINGER. */
        CONN_RESPONSE,
        /* REFUSED – the input can't be trusted any more and is thrown away; the error answer is
         *   on its way. Leaves by: answer out -> LINGER.                                       */
        CONN_REFUSED,
        /* LINGER – FIN sent; input is thrown away until the client's FIN, so that closing does
         *   not reset the connection before the client has read the answer.                    */
        CONN_LINGER,
        /* TUNNEL – the protocol was switched.                                                  */
        CONN_TUNNEL,
        /* CLOSED – the stream is closing; only the memory is left.                             */
        CONN_CLOSED,
};

/* Above this much unsent output, neither more is produced nor a further request begun. */
#define CONN_OUT_LOW (64 * KiB)
#define CONN_OUT_MAX (CONN_OUT_LOW + HTTP_WRITE_MAX + 64 * KiB)

/* A body that nobody wants is read to keep the connection, up to this; then it is closed. */
#define CONN_DISCARD_MAX (256 * KiB)

struct http_conn {
        struct net_stream stream;
        struct http_server *server;
        struct list node; /* in server->conns */
        enum conn_state state;

        struct http_message message;
        struct buf pending;

        struct http_req *req;
        bool answered;   /* the handler has said everything */
        bool failed;     /* the handler broke off */
        bool keep_alive; /* after this answer */
        bool chunked;    /* this answer */
        bool until_eof;  /* this answer: only the end of the connection ends it */
        bool continued;  /* 100 Continue was sent or is not needed */
        uint64_t discarded;
        uint64_t timeout_bytes; /* bytes seen at the last look, see conn__update_timeout */

        struct http_tunnel *tunnel;
        struct timeout timeout;
        struct net_task task; /* conn_advance, from the loop */
        char peer[64];
        int64_t peer_uid;
};

/* Takes the descriptor. */
void http_conn_open(struct http_server *s, int fd, const struct sock_addr *peer);

/* Ends the connection now; a running request is aborted with `reason`. */
void http_conn_close(struct http_conn *c, int reason);

/* For draining: closes if idle, else makes the current answer the last. */
void http_conn_retire(struct http_conn *c);

/* The one place where the state changes. */
void conn__set_state(struct http_conn *c, enum conn_state state);

/* Sets the timeout that fits the state. */
void conn__update_timeout(struct http_conn *c);
void conn__timed_out(struct timeout *t);

/* conn_parse.c: consumes from (p, n) what it can and returns how much; less than n when the current
 * message is complete or the connection left the parsing states. */
extern const struct http_message_ops conn__message_ops;
size_t conn__parse(struct http_conn *c, const char *p, size_t n);

/* Answers what went wrong in the request's own words and refuses all further input. */
void conn__refuse(struct http_conn *c, const struct http_problem *p);

/* conn_out.c */
extern const struct http_transport_ops conn__transport;

#endif
