/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_CLIENT_H
#define HUTCH_HTTP_CLIENT_H

/*
 * HTTP/1.1 calls to other servers, on the loop.
 *
 * A client keeps idle connections by endpoint and lends them to calls, the one used last first. A
 * call is embedded by its starter and follows the rules of operations (net/op.h): `end` comes
 * exactly once, from the loop, never from inside http_call_start; http_call_cancel leads to it
 * too, with -ECANCELED. Until then the call, its views and its arena must stay.
 *
 *         call->hooks = &hooks;
 *         call->arena = &req->arena;
 *         call->method = STR("GET");
 *         call->target = STR("/v1/items?a=%2F");
 *         call->headers = list;
 *         http_call_start(client, call, &addr);
 *
 * What may be called when:
 *         hooks->head      at most once: call->status, ->response, ->length are set
 *         hooks->body      any number of times after head
 *         hooks->drain     while a request body is open: the connection stands and has taken what
 *                          was written; write more now
 *         hooks->upgrade   instead of head, for a 101 that was asked for (call->upgrade)
 *         hooks->end       last: 0, or what went wrong
 *
 * Answers are hostile: they come out of a sandbox. They pass the head guard and strict llhttp, and
 * are refused with -EBADMSG when their length could be read in two ways, -E2BIG when their head is
 * over the limit. An answer that ends early is -ECONNRESET, whatever was received before. Interim
 * answers (1xx) are dropped, a few of them. Nothing is kept but the head; a body goes through the
 * loop's read buffer.
 *
 * A call that fails on a connection from the pool before the first byte of an answer, and that may
 * be repeated (idempotent method, or nothing of it was written) and whose body is in memory or was
 * not begun, is retried once on a fresh connection: the server may have closed the old one meanwhile.
 *
 * A call may have a second address, for servers of which one knows only the port: 127.0.0.1, else
 * [::1]. It is tried when the first refuses the connection, and only then: nothing of the request
 * was sent by that time, so any request may go on there, with a body or an upgrade too.
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

/* A timeout of USEC_INFINITY is none. */
struct http_client_config {
        size_t head_max;     /* bytes of the answer's status line and headers */
        unsigned idle_max;   /* connections kept for an endpoint */
        unsigned idle_total; /* and for all; past it the one idle longest makes room */
        usec_t idle_timeout; /* of these */
        usec_t connect_timeout;
        usec_t write_timeout;  /* without the server taking a byte of the request */
        usec_t head_timeout;   /* request sent to the end of the answer's head */
        usec_t body_timeout;   /* without a byte of a body that we are ready to read */
        usec_t tunnel_timeout; /* without a byte in either direction, after a proxied upgrade */
        usec_t half_closed_timeout; /* the same, once one side has closed */
};

extern const struct http_client_config http_client_defaults;

struct http_client_stats {
        uint64_t calls, connects, reuses, retries, timeouts;
        unsigned connections; /* now */
        unsigned idle;        /* now, of these */
};

/* --- the client --- */

struct http_client *http_client_new(struct net_loop *l, const struct http_client_config *config);

/* Running calls end with -ECANCELED, tunnels are closed. `freed` is called from the loop when the
 * memory is gone; it may be NULL. */
typedef void http_client_freed_fn(void *data);
void http_client_free(struct http_client *cl, http_client_freed_fn *freed, void *data);

/* Closes the idle connections to an endpoint that is known to be gone. */
void http_client_close_idle(struct http_client *cl, const struct sock_addr *to);

struct http_client_stats http_client_stats(const struct http_client *cl);
struct net_loop *http_client_loop(const struct http_client *cl);

/* --- a call --- */

struct http_call_hooks {
        void (*head)(struct http_call *call);
        void (*body)(struct http_call *call, const char *p, size_t n);
        void (*drain)(struct http_call *call); /* NULL: the call has no body to write */
        /* Returns the tunnel that gets the connection, with its ops set, or NULL to refuse. `end`
         * follows at once, then the tunnel's own callbacks. NULL: never asked for. */
        struct http_tunnel *(*upgrade)(struct http_call *call);
        void (*end)(struct http_call *call, int r);
};

enum http_call_body {
        HTTP_CALL_NO_BODY,
        HTTP_CALL_SIZED,
        HTTP_CALL_CHUNKED,
};

struct http_call {
        /* --- the request --- */
        const struct http_call_hooks *hooks;
        struct arena *arena; /* for the head of the answer */
        struct str method;
        struct str target;           /* goes out byte for byte */
        struct http_headers headers; /* Host among them; framing and Connection are the client's */
        enum http_call_body body;
        uint64_t body_length; /* of a sized one */
        struct str upgrade; /* protocol to switch to, or the null view; its body is sized or none */
        const struct sock_addr *fallback; /* or NULL: see above; not for http_call_start_fd */

        /* --- the answer --- */
        int status;
        struct http_headers response; /* all headers, hop-by-hop ones too */
        uint64_t length;              /* its Content-Length, or HTTP_LENGTH_UNKNOWN */

        /* --- the client's --- */
        struct http_client *_client;
        struct http_client_conn *_conn; /* NULL once the result is known */
        struct http_endpoint *_endpoint;
        int _result;
        bool _paused;
        bool _retried;
        struct str _bytes; /* http_call_set_body; the null view: http_call_write */
        bool _body_begun, _body_ended;
        uint64_t _body_left; /* of a sized one */
        struct net_task _task;
};

/* Gives a call its starting values. */
void http_call_init(struct http_call *call, const struct http_call_hooks *hooks,
                    struct arena *arena);

/* A method, target, name or value that could forge more than it is, CONNECT, or a header that is
 * the client's own business, ends the call with -EINVAL. */
void http_call_start(struct http_client *cl, struct http_call *call, const struct sock_addr *to);

/* Over a connected socket, which is taken whatever happens and closed after the call. */
void http_call_start_fd(struct http_client *cl, struct http_call *call, int fd);

/* Does nothing once the result is known. No hook but `end` is called from now on. */
void http_call_cancel(struct http_call *call);

/* --- the request's body --- */

/* The body is in memory, which must stay valid until `end`; the client sends it. Call this before
 * http_call_start. hooks->drain is not called, and the functions below are not used. */
void http_call_set_body(struct http_call *call, struct str bytes);

/* Whether the connection stands and keeps up. When false, wait for hooks->drain. A server that has
 * stopped reading before its answer is complete keeps up with everything: it is thrown away. */
bool http_call_writable(const struct http_call *call);

/* The bytes are copied; at most HTTP_WRITE_MAX, and not before the connection stands. More than the
 * promised length ends the call with -EMSGSIZE. */
void http_call_write(struct http_call *call, struct str bytes);

/* The body is complete. One shorter than promised ends the call with -EMSGSIZE. */
void http_call_end_body(struct http_call *call);

/* --- the answer's body --- */

/* What was read already, NET_READ_SIZE bytes at most, still comes. */
void http_call_pause(struct http_call *call);
void http_call_resume(struct http_call *call);

#endif
