/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/base64.h"
#include "http/ws_impl.h"

/* --- the server's side --- */

static void reply_version(struct http_req *req)
{
        http_res_header_const(req, STR("Sec-WebSocket-Version"), STR("13"));
        http_res_header_const(req, STR("Upgrade"), STR("websocket"));
        http_reply_error(req, 426, "UPGRADE_REQUIRED", "this path speaks WebSocket, version 13");
}

/* Replies and returns false if this is not a handshake we can accept. */
static bool check_handshake(struct http_req *req, char ret_accept[static WS_ACCEPT_SIZE])
{
        struct str key = http_req_header(req, STR("Sec-WebSocket-Key"));
        const char *wrong = NULL;

        if (!http_headers_has_token(&req->headers, STR("Upgrade"), STR("websocket"))
            || !str_eq(http_req_header(req, STR("Sec-WebSocket-Version")), STR("13"))) {
                reply_version(req);
                return false;
        }
        if (req->method != METHOD_GET || req->minor < 1 || req->has_body)
                wrong = "a WebSocket handshake is a GET of HTTP/1.1 without a body";
        else if (!http_headers_has_token(&req->headers, STR("Connection"), STR("upgrade")))
                wrong = "Connection must name upgrade";
        else if (http_headers_count(&req->headers, STR("Sec-WebSocket-Key")) != 1
                 || ws_accept_key(key, ret_accept) < 0)
                wrong = "Sec-WebSocket-Key must be 16 bytes in base64";
        if (wrong)
                http_reply_error(req, 400, "BAD_REQUEST", "%s", wrong);
        return !wrong;
}

/* The first of ours that the client offers too. None: the answer names none, and the client decides
 * whether it goes on (RFC 6455, 4.2.2). */
static void choose_protocol(struct http_req *req, struct str ours)
{
        struct str name;

        while (str_split(&ours, ',', &name)) {
                name = str_trim(name);
                if (name.n == 0
                    || !http_headers_has_token(&req->headers, STR("Sec-WebSocket-Protocol"), name))
                        continue;
                (void) http_res_header(req, STR("Sec-WebSocket-Protocol"), name);
                return;
        }
}

int http_ws_accept(struct http_ws *ws, struct http_req *req, struct http_ws_group *g,
                   const struct http_ws_ops *ops, const struct http_ws_options *options)
{
        char accept[WS_ACCEPT_SIZE];
        int r;

        if (http_req_is_gone(req))
                return -ECONNRESET;
        if (!check_handshake(req, accept))
                return -EBADMSG;
        ws__init(ws, WS_SERVER, g, ops, options);
        http_res_header_const(req, STR("Upgrade"), STR("websocket"));
        http_res_header_const(req, STR("Connection"), STR("Upgrade"));
        (void) http_res_header(req, STR("Sec-WebSocket-Accept"), str_of(accept, sizeof(accept)));
        if (options && options->protocols.p)
                choose_protocol(req, options->protocols);
        r = http_req_upgrade(req, &ws->tunnel);
        if (r < 0) {
                http_reply_error(req, 400, "BAD_REQUEST", "the connection can't be switched");
                return r;
        }
        ws__start(ws);
        return 0;
}

/* --- the client's side --- */

void http_ws_make_key(struct http_ws_group *g, char ret[static HTTP_WS_KEY_SIZE])
{
        uint8_t nonce[16];

        ids_random(&g->_ids, nonce, sizeof(nonce));
        (void) base64_encode(nonce, sizeof(nonce), ret);
}

bool http_ws_accept_is_valid(struct str key, struct str accept)
{
        char want[WS_ACCEPT_SIZE];

        return ws_accept_key(key, want) == 0 && str_eq(accept, str_of(want, sizeof(want)));
}

/* --- collecting messages --- */

void http_ws_collector_init(struct http_ws_collector *c, size_t max)
{
        buf_init(&c->buf, max);
}

void http_ws_collector_done(struct http_ws_collector *c)
{
        buf_done(&c->buf);
}

int http_ws_collect(struct http_ws_collector *c, unsigned flags, const char *p, size_t n,
                    struct str *ret_message)
{
        if (flags & WS_FIRST)
                buf_done(&c->buf); /* the last message was read; an idle connection keeps none */
        if ((flags & WS_FIRST) && (flags & WS_LAST)) {
                *ret_message = str_of(p ? p : "", n);
                return 1;
        }
        buf_add(&c->buf, p, n);
        if (buf_failed(&c->buf))
                return -ENOBUFS;
        if (!(flags & WS_LAST))
                return 0;
        *ret_message = buf_str(&c->buf);
        return 1;
}
