/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CLIENT_H
#define HUTCH_HTTP_CLIENT_H

/*
 * An HTTP/1.1 client on the loop.
 *
 * A client keeps idle connections by endpoint and reuses the most recently used one first. A call is
 * embedded by its caller and follows the rules of operations (net/op.h): `end` is called exactly
 * once, from the loop, never from inside http_call_start. http_call_cancel leads to `end` too, with
 * -ECANCELED. Until then the call, its views and its arena must stay valid.
 *
 *         http_call_init(call, &hooks, &req->arena);
 *         call->method = STR("POST");
 *         call->target = STR("/v1/items?a=%2F");
 *         call->headers = list;
 *         http_call_set_body(call, buf_str(&json));
 *         http_call_start(client, call, &addr);
 *
 * Hooks:
 *         hooks->head      at most once: call->status, ->response, ->length are set
 *         hooks->body      any number of times after head
 *         hooks->drain     while a streamed request body is open: the connection is established and
 *                          has accepted what was written; write more now
 *         hooks->upgrade   instead of head, for a 101 that was requested (call->upgrade)
 *         hooks->end       last: 0, or a negative errno
 *
 * Responses are hostile input: they come from inside a sandbox. They pass the head guard and strict
 * llhttp. A response whose length could be read in two ways ends the call with -EBADMSG, one whose
 * head exceeds the limit with -E2BIG, one that ends early with -ECONNRESET, whatever was received
 * before. A few interim responses (1xx) are dropped. Only the head is stored; a body passes through
 * the loop's read buffer.
 *
 * Retry. A call that fails on a pooled connection before the first byte of a response is sent once
 * more on a fresh connection, because the server may have closed the old one meanwhile. This requires
 * that it may be repeated (its method is idempotent, or nothing of it was written) and that its body is
 * in memory or was not begun.
 *
 * Fallback. A call may have a second address, for servers of which only the port is known: 127.0.0.1,
 * else [::1]. It is tried only if the first address refuses the connection. Nothing of the request was
 * sent by then, so any request may use it.
 */

#include "base/arena.h"
#include "http/headers.h"
#include "http/req.h"
#include "net/loop.h"
#include "os/socket.h"

struct http_call;
struct http_client;
struct http_client_conn;
struct http_endpoint;
struct http_tunnel;

/* USEC_INFINITY disables a timeout. */
struct http_client_config {
        size_t head_max;   /* bytes of a response's status line and headers */
        unsigned idle_max; /* idle connections per endpoint */
        unsigned
                idle_total; /* and in total; above it the one that has been idle longest is closed */
        usec_t idle_timeout;
        usec_t connect_timeout;
        usec_t write_timeout;       /* the server accepts no byte of the request */
        usec_t head_timeout;        /* from the complete request to the complete response head */
        usec_t body_timeout;        /* no byte of a body arrives that is not paused */
        usec_t tunnel_timeout;      /* no byte in either direction after a proxied upgrade */
        usec_t half_closed_timeout; /* the same, once one side has closed */
};

extern const struct http_client_config http_client_defaults;

struct http_client_stats {
        uint64_t calls, connects, reuses, retries, timeouts;
        unsigned connections; /* now */
        unsigned idle;        /* of these */
};

/* --- clients --- */

struct http_client *http_client_new(struct net_loop *l, const struct http_client_config *config);

/* Ends running calls with -ECANCELED and closes tunnels. `freed` is called from the loop when the
 * memory has been freed; it may be NULL. */
typedef void http_client_freed_fn(void *data);
void http_client_free(struct http_client *cl, http_client_freed_fn *freed, void *data);

struct http_client_stats http_client_stats(const struct http_client *cl);

/* --- calls --- */

struct http_call_hooks {
        void (*head)(struct http_call *call);
        void (*body)(struct http_call *call, const char *p, size_t n);
        void (*drain)(struct http_call *call); /* NULL: no streamed body */
        /* Returns the tunnel that gets the connection, with its ops set, or NULL to reject. `end`
         * follows immediately, then the callbacks of the tunnel. NULL: no upgrade is requested. */
        struct http_tunnel *(*upgrade)(struct http_call *call);
        void (*end)(struct http_call *call, int r);
};

enum http_call_body {
        HTTP_CALL_NO_BODY,
        HTTP_CALL_SIZED,
        HTTP_CALL_CHUNKED,
};

struct http_call {
        /* --- request --- */
        const struct http_call_hooks *hooks;
        struct arena *arena; /* for the head of the response */
        struct str method;
        struct str target;           /* sent unchanged */
        struct http_headers headers; /* including Host; the client adds framing and Connection */
        enum http_call_body body;
        uint64_t body_length; /* of a sized body */
        struct str upgrade; /* protocol to switch to, or the null view; its body is sized or none */
        const struct sock_addr *fallback; /* second address, or NULL; not for http_call_start_fd */

        /* --- response --- */
        int status;
        struct http_headers response; /* all headers, hop-by-hop ones too */
        uint64_t length;              /* its Content-Length, or HTTP_LENGTH_UNKNOWN */

        /* --- private --- */
        struct http_client *_client;
        struct http_client_conn *_conn; /* NULL once the result is known */
        struct http_endpoint *_endpoint;
        int _result;
        bool _paused;
        bool _retried;
        struct str _bytes; /* http_call_set_body; the null view: http_call_write */
        bool _body_begun, _body_ended;
        uint64_t _body_left; /* of a sized body */
        struct net_task _task;
};

void http_call_init(struct http_call *call, const struct http_call_hooks *hooks,
                    struct arena *arena);

/* Ends the call with -EINVAL if the method, target or a header is malformed, if the method is
 * CONNECT, or if it sets a header that the client manages. */
void http_call_start(struct http_client *cl, struct http_call *call, const struct sock_addr *to);

/* Uses a connected socket, which the call takes in any case and closes at its end. */
void http_call_start_fd(struct http_client *cl, struct http_call *call, int fd);

/* Only `end` is called from now on. Does nothing once the result is known. */
void http_call_cancel(struct http_call *call);

/* --- request bodies --- */

/* Sends a body from memory, which must stay valid until `end`. Call this before http_call_start.
 * hooks->drain is not called, and the functions below are not used. */
void http_call_set_body(struct http_call *call, struct str bytes);

/* Whether the connection is established and keeps up. When false, wait for hooks->drain. If the server
 * has stopped reading but its response is not complete, this stays true and the bytes are dropped. */
bool http_call_writable(const struct http_call *call);

/* Copies at most HTTP_WRITE_MAX bytes. Only once the connection is established. A sized body is complete
 * with its last byte; more than the announced length ends the call with -EMSGSIZE. */
void http_call_write(struct http_call *call, struct str bytes);

/* The body is complete: for a chunked one its end is sent. If it is shorter than announced, the call ends
 * with -EMSGSIZE. */
void http_call_end_body(struct http_call *call);

/* --- response bodies --- */

/* What was read already, NET_READ_SIZE bytes at most, is still delivered. */
void http_call_set_paused(struct http_call *call, bool paused);

#endif
