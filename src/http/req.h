/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_REQ_H
#define HUTCH_HTTP_REQ_H

/*
 * One request and its answer, as handlers see them.
 *
 * A handler is called with a request and must lead to exactly one answer, at once or later:
 *
 *         http_reply(req, 200, STR("text/plain"), STR("hello\n"));
 *
 * or, in pieces, http_stream_begin, http_stream_write …, http_stream_end. Everything else it needs
 * to hear comes through its hooks (a const table) and finds its own state in req->data.
 *
 * Time of life. The engine holds the request until it is answered and its body read, or until the
 * client is gone. A handler that waits for something (an operation) takes a reference for that
 * time; after the client is gone, or was refused by the engine, replies do nothing and
 * http_req_is_gone tells. The arena dies with the last reference.
 *
 * Bodies. A route says what it wants: nothing (a body is read and thrown away, up to the limit),
 * the whole body collected up to a limit, JSON decoded by a field table, or a stream. For a stream
 * the handler runs as soon as the head is there and gets the body through hooks->body as it
 * arrives; http_body_pause holds the sender back, but what was read from the socket already (at
 * most NET_READ_SIZE bytes) still comes. "Expect: 100-continue" is answered when a handler first
 * wants the body, so one that replies with an error before never receives it.
 *
 * What may be called when:
 *         hooks->body      any number of times, then body_end once, unless abort comes before
 *         hooks->drain     after a write, when the client has taken everything: write more now
 *         hooks->abort     at most once, and then nothing else: the client is gone (-ECONNRESET),
 *                          too slow (-ETIMEDOUT), sent nonsense (-EBADMSG), too much (-EMSGSIZE),
 *                          or the server stops (-ESHUTDOWN)
 */

#include "base/arena.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "http/headers.h"

struct http_api;
struct http_req;
struct http_route;
struct http_server;
struct http_transport_ops;
struct http_tunnel;

enum http_method {
        METHOD_DELETE,
        METHOD_GET,
        METHOD_HEAD,
        METHOD_OPTIONS,
        METHOD_PATCH,
        METHOD_POST,
        METHOD_PUT,
        METHOD_OTHER, /* known to the parser, to no route but those of METHOD_ANY */
        METHOD_ANY,   /* in routes only */
        METHOD_MAX_,
        METHOD_INVALID = -EINVAL,
};

ENUM_DECLARE(http_method); /* "DELETE", "GET" … */

#define HTTP_PARAMS_MAX     6
#define HTTP_REQUEST_ID_MAX 128 /* a longer one is not echoed but replaced */

/* The largest piece http_stream_write takes. */
#define HTTP_WRITE_MAX (256 * KiB)

struct http_hooks {
        void (*body)(struct http_req *req, const char *p, size_t n);
        void (*body_end)(struct http_req *req);
        void (*drain)(struct http_req *req);
        void (*abort)(struct http_req *req, int reason);
};

enum http_res_state {
        HTTP_RES_NONE,   /* nothing said yet; http_reply or http_stream_begin leads out */
        HTTP_RES_STREAM, /* head is out; write, end */
        HTTP_RES_ENDED,  /* answered in full as far as the handler is concerned */
};

#define HTTP_LENGTH_UNKNOWN UINT64_MAX

struct http_res {
        enum http_res_state state;
        int status;
        uint64_t length; /* of the body, or HTTP_LENGTH_UNKNOWN */
        uint64_t sent;   /* body bytes handed to the transport */
        struct http_headers headers;
        int file; /* open until the answer is out, or -EBADF */
};

struct http_req {
        /* --- what came --- */
        enum http_method method;
        struct str method_name;
        struct str target; /* byte for byte */
        struct str path;   /* of the target, still encoded */
        struct str query;  /* of the target, still encoded, without '?' */
        int minor;         /* HTTP/1.minor */
        struct http_headers headers;
        struct str peer;         /* host of the client, or "unix" */
        int64_t peer_uid;        /* of a client on a unix socket, as the kernel knows it; else -1 */
        uint64_t content_length; /* HTTP_LENGTH_UNKNOWN when chunked */
        bool has_body;
        bool upgrade; /* the client asks for another protocol */

        /* --- what the server made of it --- */
        struct http_server *server;
        const struct http_api *api;
        const struct http_route *route;
        struct str params[HTTP_PARAMS_MAX]; /* decoded, in the order of the pattern */
        struct str id;                      /* X-Request-ID */
        struct str body;                    /* collected */
        void *input;                        /* decoded by the route's field table */
        void *principal;                    /* whoever authorize found; the api's */
        struct arena arena;
        struct log_ctx log;

        /* --- the handler's --- */
        const struct http_hooks *hooks;
        void *data;

        /* --- the answer --- */
        struct http_res res;

        /* --- the engine's --- */
        const struct http_transport_ops *_transport;
        void *_conn;    /* of the transport; NULL once the client is gone */
        bool _given_up; /* the engine has answered in the handler's place, or broken off */
        unsigned _refs;
        bool _counted;        /* see http_req_count */
        bool _abort_on_eof;   /* see http_req_abort_on_eof */
        bool _head_only;      /* answer to HEAD */
        bool _body_done;      /* the whole body was read */
        bool _body_requested; /* somebody reads the body */
        bool _body_paused;
        bool _body_streams; /* to the hooks, whatever the route says */
        bool _held;         /* see http_req_hold */
        uint64_t _body_max;
        uint64_t _body_seen;
        struct buf _collected;
        usec_t _started;
        struct list _free; /* in the server's store of spare requests */
};

/* --- life --- */

struct http_req *http_req_ref(struct http_req *req);
void http_req_unref(struct http_req *req);

/* The client is gone, or the engine gave up on it; replies do nothing from now on. */
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

/* A client that closes its sending side, or has done so already, is not waited upon: abort. */
void http_req_abort_on_eof(struct http_req *req);

/* From now on, until the request is gone, it is one of those in flight (http_server_stats). Who may
 * cause work counts, once he is known: so nobody without a name can use up a limit. What lasts as long
 * as a client likes (http_route.lasting) should not. */
void http_req_count(struct http_req *req);

/* Nothing is done about the request until it is released, also if it is complete without a body: for an
 * authorization that takes its time. The end of its body, if that came meanwhile, is told then. */
static inline void http_req_hold(struct http_req *req)
{
        req->_held = true;
}

void http_req_release(struct http_req *req);

/* --- asking --- */

/* The null view if there is no such header. */
static inline struct str http_req_header(const struct http_req *req, struct str name)
{
        return http_headers_get(&req->headers, name);
}

/* The decoded value of the first query parameter of that name: 1 found, 0 absent, -EINVAL badly
 * encoded, -ENOMEM. */
int http_req_query(struct http_req *req, const char *name, struct str *ret) must_check;

/* A path as logs may show it. What follows a '~' in a segment is a secret by agreement (a token that
 * opens what the path names) and is left out, as is a query; so is a target that is no path. */
struct str http_path_for_log(struct arena *a, struct str path);

/* --- the streamed body --- */

/* Asks for the body (and answers Expect); the hooks get it. `max` bounds its size:
 * HTTP_LENGTH_UNKNOWN for none. A longer one is answered with 413 and abort(-EMSGSIZE), from inside
 * this call if its Content-Length tells. */
void http_body_start(struct http_req *req, uint64_t max);

/* From now on it is a stream to the hooks, also if the route says otherwise: for who takes a request out of
 * the hands of its route before the body was asked for. */
static inline void http_body_stream(struct http_req *req)
{
        req->_body_streams = true;
}

void http_body_pause(struct http_req *req);
void http_body_resume(struct http_req *req);

/* --- answering --- */

/* Adds a header to the answer, before it begins. Names and values that could split the head (CR,
 * LF, NUL) are refused: -EINVAL, nothing added. Both are copied into the arena. */
int http_res_header(struct http_req *req, struct str name, struct str value);

/* The same without copying or checking: for constants. */
void http_res_header_const(struct http_req *req, struct str name, struct str value);

/* A whole answer. `body` must live in the arena, be constant, or fit (HTTP_COPY_MAX bytes are
 * copied). type may be the null view: no Content-Type. */
void http_reply(struct http_req *req, int status, struct str type, struct str body);

#define HTTP_COPY_MAX (16 * KiB)

/* An answer without content: 204 and 304 have none by definition, others say Content-Length: 0. */
void http_reply_empty(struct http_req *req, int status);

/* In the error shape of the API that owns the request's path. code is the API's word for it,
 * message a sentence for people. */
void http_reply_error(struct http_req *req, int status, const char *code, const char *fmt, ...)
        printf_like(4, 5);

/* In pieces. length may be HTTP_LENGTH_UNKNOWN; then HTTP/1.1 clients get chunks. */
void http_stream_begin(struct http_req *req, int status, uint64_t length);

/* May be called while http_stream_writable; the bytes are copied. At most HTTP_WRITE_MAX. */
void http_stream_write(struct http_req *req, struct str bytes);

/* Nothing more will come. An answer that promised a length and did not keep it breaks the
 * connection, so that the client can't take it for complete. */
void http_stream_end(struct http_req *req);

/* Breaks off an answer that went wrong half-way: the client sees an incomplete message. */
void http_stream_fail(struct http_req *req);

/* Whether the client keeps up. When false, wait for hooks->drain. */
bool http_stream_writable(const struct http_req *req);

/* Switches protocols: sends 101 with the headers added before, then hands the connection's bytes
 * to the tunnel (http/tunnel.h). -ENOTSUP if the request does not allow it. */
int http_req_upgrade(struct http_req *req, struct http_tunnel *t) must_check;

#endif
