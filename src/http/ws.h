/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_H
#define HUTCH_HTTP_WS_H

/*
 * A WebSocket connection (RFC 6455): messages in both directions over a tunnel, as server or as
 * client.
 *
 *         static const struct http_ws_ops ops = { .data = term_data, .closed = term_closed };
 *
 *         if (http_ws_accept(&term->ws, req, group, &ops, NULL) < 0)
 *                 free(term);          it has answered with an error
 *
 * Messages are streamed: ops->data gets pieces as they arrive and no message is collected unless
 * the user wants it (struct http_ws_collector). Pings of the other side are answered here; ours
 * are sent every ping_interval, and a peer from which nothing at all came during a whole interval
 * after one is given up. Whoever floods us with pings without reading gets one pong, for the last.
 *
 * Back-pressure. Output goes to the stream's bounded buffer. A sender stops when http_ws_writable
 * turns false and goes on from ops->drain; one that does not is cut off: the connection is closed
 * with 1013 as soon as a message finds no room. Input is held back by http_ws_pause.
 *
 * The end. ops->closed is called exactly once after http_ws_accept (or http_ws_start_client) has
 * succeeded, from the loop or from http_server_free; it is the last call and the memory may go. The code is the
 * one that decided: what the other side sent, or what was sent to it because of an error (1002,
 * 1007, 1009, 1013), or 1006 if the connection was lost. http_ws_close begins the closing
 * handshake: after it ops->data is not called any more; the other side has close_timeout to answer
 * before the connection is cut.
 *
 * Not done: extensions (compression). A connection without messages costs its struct and nothing
 * else.
 */

#include "base/id.h"
#include "http/req.h"
#include "http/tunnel.h"
#include "http/ws_parser.h"
#include "net/timeout.h"

#define WS_CLOSE_ABNORMAL  1006 /* never sent: the connection was lost */
#define WS_CLOSE_TRY_LATER 1013 /* the other side does not read what it asked for */

/* The largest message http_ws_send takes. */
#define HTTP_WS_SEND_MAX (256 * KiB)

/* Of what we receive, unless the options say otherwise. */
#define HTTP_WS_MESSAGE_MAX (1 * MiB)

struct http_ws;

struct http_ws_ops {
        /* A piece of a message; flags are enum ws_data_flags. The bytes are valid during the call
         * and may be changed. */
        void (*data)(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p, size_t n);
        /* All output has left. May be NULL. */
        void (*drain)(struct http_ws *ws);
        void (*closed)(struct http_ws *ws, uint16_t code, struct str reason);
};

/* What connections have in common: their timers, and where masks come from. */
struct http_ws_group {
        struct timeout_kind _pings, _closes;
        struct ids _ids;
};

enum http_ws_state {
        /* OPEN – leaves by: http_ws_close or an error -> CLOSING; the other's close -> CLOSED. */
        HTTP_WS_OPEN,
        /* CLOSING – our close is out, theirs is awaited. Leaves by: it comes -> ENDING. */
        HTTP_WS_CLOSING,
        /* ENDING – nothing more is said or heard; FIN is sent (server) or awaited (client).
         *   Leaves by: ops->closed. */
        HTTP_WS_ENDING,
};

struct http_ws {
        struct http_tunnel tunnel;
        const struct http_ws_ops *ops;
        enum http_ws_state state;
        enum ws_role role;
        struct http_ws_group *_group;
        struct timeout _timeout; /* ping, then close */
        uint64_t _heard;         /* bytes_in when the last ping was sent */
        bool _pinged;            /* and whether one was */
        bool _pong_due;
        uint8_t _payload_n; /* of the pong owed, later of the reason of the end */
        uint16_t _code;     /* 0: not decided */
        char _payload[WS_CONTROL_MAX];
        struct ws_parser _parser;
};

struct http_ws_options {
        uint64_t message_max; /* of one received message; 0: HTTP_WS_MESSAGE_MAX */
        struct str protocols; /* server: subprotocols we speak, "a, b", best first */
};

/* --- groups --- */

/* ping_interval: 0 for none. */
void http_ws_group_init(struct http_ws_group *g, struct net_loop *l, usec_t ping_interval,
                        usec_t close_timeout);

/* No connection may be left. The memory must stay until the loop ran once more. */
void http_ws_group_close(struct http_ws_group *g);

/* --- life cycle --- */

/* Switches the request's connection to WebSocket. Negative: not done, the request has been
 * answered (400, 426) or is gone, and nothing will be called. Headers may have been added to the
 * answer before. options may be NULL. */
int http_ws_accept(struct http_ws *ws, struct http_req *req, struct http_ws_group *g,
                   const struct http_ws_ops *ops, const struct http_ws_options *options) must_check;

/* As client: prepares ws->tunnel, which is what hooks->upgrade of a call (http/client.h) returns. The
 * caller has sent Sec-WebSocket-Version and -Key and checks the answer's -Accept. */
void http_ws_init_client(struct http_ws *ws, struct http_ws_group *g, const struct http_ws_ops *ops,
                         const struct http_ws_options *options);

/* The handshake went well; from hooks->upgrade or later. ops->closed will come from now on. */
void http_ws_start_client(struct http_ws *ws);

/* For the client's handshake: a key to send, and whether the server's answer to it is right. */
#define HTTP_WS_KEY_SIZE 24 /* characters, no NUL */
void http_ws_make_key(struct http_ws_group *g, char ret[static HTTP_WS_KEY_SIZE]);
bool http_ws_accept_is_valid(struct str key, struct str accept);

/* Begins the closing handshake; does nothing if that has happened. The code is one that may be sent
 * or WS_CLOSE_NO_CODE, the reason is cut to what fits. */
void http_ws_close(struct http_ws *ws, uint16_t code, struct str reason);

/* Cuts the connection; ops->closed follows. */
void http_ws_abort(struct http_ws *ws);

/* --- messages --- */

/* A whole message: WS_TEXT (which must be UTF-8) or WS_BINARY; or WS_PING, of at most
 * WS_CONTROL_MAX bytes. 0, -EPIPE when the connection is closing, -EMSGSIZE, or -ENOBUFS when the
 * other side did not read and is cut off for it. */
int http_ws_send(struct http_ws *ws, enum ws_opcode opcode, struct str payload);

/* Whether the other side keeps up. When false, wait for ops->drain. */
bool http_ws_writable(const struct http_ws *ws);

/* Holds the other side back. What was read already (NET_READ_SIZE at most) still comes. Without
 * reading there is no hearing either: a paused connection notices neither a close nor a loss. */
void http_ws_pause(struct http_ws *ws);
void http_ws_resume(struct http_ws *ws);

/* --- collecting messages --- */

struct http_ws_collector {
        struct buf buf;
};

/* max: at least the connection's message_max, so that the collector is never the first to give up. */
void http_ws_collector_init(struct http_ws_collector *c, size_t max);
void http_ws_collector_done(struct http_ws_collector *c);

/* To be called with each piece. 1: *ret_message is complete and valid until the next call (a message
 * in one piece is not copied); 0: more to come; -ENOBUFS: too large. */
int http_ws_collect(struct http_ws_collector *c, unsigned flags, const char *p, size_t n,
                    struct str *ret_message) must_check;

#endif
