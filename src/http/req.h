/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_REQ_H
#define HUTCH_HTTP_REQ_H

/*
 * A request and its response, as handlers see them.
 *
 * A handler gets a request and must produce exactly one response, immediately or later:
 *
 *         http_reply(req, 200, STR("text/plain"), STR("hello\n"));
 *
 * or, in pieces, http_stream_begin, http_stream_write …, http_stream_end. Everything else arrives
 * through its hooks (a const table), which find the handler's state in req->data.
 *
 * Lifetime. The server holds the request until its response is sent and its body read, or until the
 * client is gone. A handler that waits for an operation takes a reference for that time. Once the
 * client is gone, or the server has rejected the request, replies do nothing; http_req_is_gone tells.
 * The arena is freed with the last reference.
 *
 * Bodies. The route decides: no body (it is discarded, up to the limit), the body collected up to a
 * limit, JSON decoded by a field table, or a stream. For a stream the handler runs when the head is
 * complete and gets the body through hooks->body as it arrives. http_body_pause slows the sender;
 * what was read already (NET_READ_SIZE bytes at most) is still delivered. "Expect: 100-continue" is
 * answered when the body is requested, so a handler that rejects the request first never gets it.
 *
 * Hooks:
 *         hooks->body      any number of times, then body_end once, unless abort comes first
 *         hooks->drain     after a write, when the client has received everything: write more now
 *         hooks->abort     at most once, and then nothing else: the client is gone (-ECONNRESET),
 *                          too slow (-ETIMEDOUT), sent a malformed (-EBADMSG) or too large body
 *                          (-EMSGSIZE), or the server stops (-ESHUTDOWN)
 */

#include "base/arena.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "http/headers.h"
#include "http/share.h"

struct http_api;
struct http_conn;
struct http_req;
struct http_route;
struct http_server;
struct http_tunnel;

enum http_method {
        METHOD_DELETE,
        METHOD_GET,
        METHOD_HEAD,
        METHOD_OPTIONS,
        METHOD_PATCH,
        METHOD_POST,
        METHOD_PUT,
        METHOD_OTHER, /* known to the parser only; matches METHOD_ANY */
        METHOD_ANY,   /* in routes only */
        METHOD_MAX_,
        METHOD_INVALID = -EINVAL,
};

ENUM_DECLARE(http_method); /* "DELETE", "GET" … */

#define HTTP_PARAMS_MAX     6
#define HTTP_REQUEST_ID_MAX 128 /* a longer one is replaced */

/* The largest piece that http_stream_write accepts. */
#define HTTP_WRITE_MAX (256 * KiB)

struct http_hooks {
        void (*body)(struct http_req *req, const char *p, size_t n);
        void (*body_end)(struct http_req *req);
        void (*drain)(struct http_req *req);
        void (*abort)(struct http_req *req, int reason);
};

enum http_res_state {
        HTTP_RES_NONE,   /* nothing was sent; leaves by http_reply, http_stream_begin */
        HTTP_RES_STREAM, /* the head was sent; leaves by http_stream_end, http_stream_fail */
        HTTP_RES_ENDED,  /* the handler has sent everything */
};

#define HTTP_LENGTH_UNKNOWN UINT64_MAX

struct http_res {
        enum http_res_state state;
        int status;
        const char *code; /* of an error; lives as long as the request */
        uint64_t length;  /* of the body, or HTTP_LENGTH_UNKNOWN */
        uint64_t sent;    /* body bytes passed to the connection */
        struct http_headers headers;
        int file; /* open until the response is sent, or -EBADF */
};

struct http_req {
        /* --- received --- */
        enum http_method method;
        struct str method_name;
        struct str target; /* unchanged */
        struct str path;   /* of the target, still encoded */
        struct str query;  /* of the target, still encoded, without '?' */
        int minor;         /* HTTP/1.minor */
        struct http_headers headers;
        struct str peer;         /* host of the client, or "unix" */
        int64_t peer_uid;        /* of a client on a unix socket, from the kernel; else -1 */
        uint64_t content_length; /* HTTP_LENGTH_UNKNOWN when chunked */
        bool has_body;
        bool upgrade; /* the client requests a protocol switch */

        /* --- set by the server --- */
        struct http_server *server;
        const struct http_api *api;
        const struct http_route *route;
        struct str params[HTTP_PARAMS_MAX]; /* decoded, in the order of the pattern */
        struct str id;                      /* X-Request-ID */
        struct str body;                    /* collected */
        void *input;                        /* decoded by the route's field table */
        void *principal;                    /* set by authorize; owned by the API */
        struct arena arena;
        struct log_ctx log;

        /* --- of the handler --- */
        const struct http_hooks *hooks;
        void *data;

        /* --- response --- */
        struct http_res res;

        /* --- private --- */
        struct http_conn *_conn; /* NULL once the client is gone */
        bool _given_up;          /* the server has responded in the handler's place, or aborted */
        unsigned _refs;
        bool _counted;                 /* see http_req_count */
        enum http_use _use;            /* of _shares */
        struct http_share *_shares[2]; /* tenant and key, see http_req_charge */
        bool _abort_on_eof;            /* see http_req_abort_on_eof */
        bool _head_only;               /* response to HEAD */
        bool _body_done;               /* the whole body was read */
        bool _body_requested;          /* the handler or the server reads the body */
        bool _body_paused;
        bool _body_streams; /* to the hooks, regardless of the route */
        bool _held;         /* see http_req_hold */
        uint64_t _body_max;
        uint64_t _body_seen;
        struct buf _collected;
        usec_t _started;
        struct list _free; /* in the server's spare_reqs */
};

/* --- life cycle --- */

struct http_req *http_req_ref(struct http_req *req);
void http_req_unref(struct http_req *req);

/* The client is gone or was rejected; replies do nothing from now on. */
static inline bool http_req_is_gone(const struct http_req *req)
{
        return req->_conn == NULL || req->_given_up;
}

static inline void http_req_set_hooks(struct http_req *req, const struct http_hooks *hooks,
                                      void *data)
{
        req->hooks = hooks;
        req->data = data;
}

/* Aborts the request when the client closes its sending side, or has done so already. */
void http_req_abort_on_eof(struct http_req *req);

/* Counts the request as in flight (http_server_stats) until its last reference is dropped. APIs call
 * this after authentication, so that anonymous clients cannot exhaust a limit, and not for requests
 * that last as long as the client likes (http_route.lasting). */
void http_req_count(struct http_req *req);

/* Suspends the request, for an authorization that takes time: body_end is delayed until
 * http_req_release. */
static inline void http_req_hold(struct http_req *req)
{
        req->_held = true;
}

void http_req_release(struct http_req *req);

/* --- the request --- */

/* The null view if there is no such header. */
static inline struct str http_req_header(const struct http_req *req, struct str name)
{
        return http_headers_get(&req->headers, name);
}

/* The decoded value of the first query parameter of that name: 1 found, 0 absent, -EINVAL malformed,
 * -ENOMEM. */
int http_req_query(struct http_req *req, const char *name, struct str *ret) must_check;

/* A path as it may be logged. By convention, what follows a '~' in a segment is an access token; it is
 * hidden, and so are a query and a target that is not a path. A long path is cut and ends in "…". */
#define HTTP_LOG_PATH_MAX ((size_t) 1024)
struct str http_path_for_log(struct arena *a, struct str path);

/* --- the streamed body --- */

/* Requests the body (and answers Expect); the hooks get it. `max` limits its size;
 * HTTP_LENGTH_UNKNOWN: no limit. A longer body leads to 413 and abort(-EMSGSIZE), from inside this
 * call if its Content-Length says so. */
void http_body_start(struct http_req *req, uint64_t max);

/* Streams the body to the hooks, regardless of the route: for code that takes over a request before
 * its body was requested. */
static inline void http_body_stream(struct http_req *req)
{
        req->_body_streams = true;
}

void http_body_pause(struct http_req *req);
void http_body_resume(struct http_req *req);

/* --- the response --- */

/* Adds a header before the response begins. Name and value are copied into the arena. -EINVAL if one
 * of them could split the head (CR, LF, NUL); nothing is added then. */
int http_res_header(struct http_req *req, struct str name, struct str value);

/* The same without copying or checking: for constants. */
void http_res_header_const(struct http_req *req, struct str name, struct str value);

/* Sends a complete response. `body` must live in the arena or be constant, unless it has at most
 * HTTP_COPY_MAX bytes, which are copied. type may be the null view: no Content-Type. */
void http_reply(struct http_req *req, int status, struct str type, struct str body);

#define HTTP_COPY_MAX (16 * KiB)

/* A response without content: 204 and 304 have none by definition, others get Content-Length: 0. */
void http_reply_empty(struct http_req *req, int status);

/* An error in the format of the API that owns the request's path. `code` is the API's error code, the
 * message is for people. */
void http_reply_error(struct http_req *req, int status, const char *code, const char *fmt, ...)
        printf_like(4, 5);

/* Starts a response in pieces. length may be HTTP_LENGTH_UNKNOWN; HTTP/1.1 clients get chunks then. */
void http_stream_begin(struct http_req *req, int status, uint64_t length);

/* Copies at most HTTP_WRITE_MAX bytes. Only while http_stream_writable. */
void http_stream_write(struct http_req *req, struct str bytes);

/* The response is complete. If it is shorter than announced, the connection is reset, so that the client
 * cannot mistake it for complete. */
void http_stream_end(struct http_req *req);

/* Aborts a response that failed half-way: the client sees an incomplete message. */
void http_stream_fail(struct http_req *req);

/* Whether the client keeps up. When false, wait for hooks->drain. */
bool http_stream_writable(const struct http_req *req);

/* Switches protocols: sends 101 with the headers added before, then passes the connection's bytes to
 * the tunnel (http/tunnel.h). -ENOTSUP if the request does not allow it. */
int http_req_upgrade(struct http_req *req, struct http_tunnel *t) must_check;

#endif
