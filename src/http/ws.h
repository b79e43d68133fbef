/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_H
#define HUTCH_HTTP_WS_H

/*
 * The server side of a WebSocket connection (RFC 6455): messages in both directions over a tunnel.
 *
 *         static const struct http_ws_ops ops = { .data = term_data, .closed = term_closed };
 *
 *         if (http_ws_accept(&term->ws, req, group, &ops, NULL) < 0)
 *                 free(term);          an error response was sent
 *
 * Messages are streamed: ops->data gets pieces as they arrive, and no message is collected. Pings of
 * the client are answered here. Ours are sent every ping_interval; a client that sends nothing for a
 * whole interval after a ping is disconnected. A client that floods us with pings without reading gets
 * one pong, for the last ping.
 *
 * Back-pressure. Output goes to the stream's bounded buffer. A sender stops when http_ws_writable
 * turns false and continues from ops->drain. If it does not stop, the connection is closed with 1013
 * as soon as a message does not fit. http_ws_pause stops input.
 *
 * Lifetime. After http_ws_accept has succeeded, ops->closed is called exactly once, from the loop or
 * from http_server_free. It is the last call; the memory may be freed. It gets the code that the
 * client sent, or that was sent to it because of an error (1002, 1007, 1009, 1013), or 1006 if the
 * connection was lost. http_ws_close starts the closing handshake: ops->data is not called from then
 * on, and the connection is closed if the client does not answer within close_timeout.
 *
 * Extensions (compression) are not implemented. An idle connection costs only its struct.
 */

#include "http/req.h"
#include "http/tunnel.h"
#include "http/ws_parser.h"
#include "net/timeout.h"

#define WS_CLOSE_ABNORMAL  1006 /* never sent: the connection was lost */
#define WS_CLOSE_TRY_LATER 1013 /* the client does not read */

/* The largest message http_ws_send accepts. */
#define HTTP_WS_SEND_MAX (256 * KiB)

/* The default limit of received messages. */
#define HTTP_WS_MESSAGE_MAX (1 * MiB)

struct http_ws;

struct http_ws_ops {
        /* A piece of a message; flags are enum ws_data_flags. The bytes are valid during the call
         * and may be modified. */
        void (*data)(struct http_ws *ws, enum ws_opcode opcode, unsigned flags, char *p, size_t n);
        /* All output was sent. May be NULL. */
        void (*drain)(struct http_ws *ws);
        void (*closed)(struct http_ws *ws, uint16_t code, struct str reason);
};

/* The timers that connections share. */
struct http_ws_group {
        struct timeout_kind _pings, _closes;
};

enum http_ws_state {
        /* OPEN – leaves by: http_ws_close or an error -> CLOSING; the client's close -> ENDING. */
        HTTP_WS_OPEN,
        /* CLOSING – our close was sent, the client's is awaited. Leaves by: it arrives -> ENDING. */
        HTTP_WS_CLOSING,
        /* ENDING – both sides have closed; FIN is sent. Leaves by: ops->closed. */
        HTTP_WS_ENDING,
};

struct http_ws {
        struct http_tunnel tunnel;
        const struct http_ws_ops *ops;
        enum http_ws_state state;
        struct http_ws_group *_group;
        struct timeout _timeout; /* ping, then close */
        uint64_t _heard;         /* bytes_in when the last ping was sent */
        bool _pinged;            /* a ping was sent */
        bool _pong_due;
        uint8_t _payload_n; /* of the pong that is due, later of the reason of the close */
        uint16_t _code;     /* 0: not decided */
        char _payload[WS_CONTROL_MAX];
        struct ws_parser _parser;
};

struct http_ws_options {
        uint64_t message_max; /* of one received message; 0: HTTP_WS_MESSAGE_MAX */
        struct str protocols; /* supported subprotocols, "a, b", in order of preference */
};

/* --- groups --- */

/* ping_interval: 0 for none. */
void http_ws_group_init(struct http_ws_group *g, struct net_loop *l, usec_t ping_interval,
                        usec_t close_timeout);

/* No connection may be left. The memory must stay valid until the loop has run once more. */
void http_ws_group_close(struct http_ws_group *g);

/* --- life cycle --- */

/* Switches the request's connection to WebSocket. Negative: it was not switched, the request has been
 * answered (400, 426) or its client is gone, and no callback is called. Headers may have been added
 * to the response before. options may be NULL. */
int http_ws_accept(struct http_ws *ws, struct http_req *req, struct http_ws_group *g,
                   const struct http_ws_ops *ops, const struct http_ws_options *options) must_check;

/* Starts the closing handshake; does nothing if it has started. The code must be one that may be
 * sent, or WS_CLOSE_NO_CODE. The reason is truncated to fit. */
void http_ws_close(struct http_ws *ws, uint16_t code, struct str reason);

/* --- messages --- */

/* Sends a complete message: WS_TEXT (which must be UTF-8) or WS_BINARY; or WS_PING, of at most
 * WS_CONTROL_MAX bytes. -EPIPE when the connection is closing, -EMSGSIZE, or -ENOBUFS when the client
 * does not read and is disconnected for it. */
int http_ws_send(struct http_ws *ws, enum ws_opcode opcode, struct str payload);

/* Whether the client keeps up. When false, wait for ops->drain. */
bool http_ws_writable(const struct http_ws *ws);

/* Stops input. What was read already (NET_READ_SIZE at most) is still delivered. A paused connection
 * notices neither a close nor a lost client. */
void http_ws_pause(struct http_ws *ws);
void http_ws_resume(struct http_ws *ws);

#endif
