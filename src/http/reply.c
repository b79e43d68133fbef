/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "http/req.h"
#include "http/route.h"
#include "http/status.h"
#include "http/transport.h"
#include "http/tunnel.h"
#include "http/url.h"

/* Responses of handlers. All functions do nothing once the client is gone. */

int http_res_header(struct http_req *req, struct str name, struct str value)
{
        if (!http_token_is_valid(name) || !http_field_value_is_valid(value))
                return -EINVAL;
        name = arena_dup_str(&req->arena, name);
        value = arena_dup_str(&req->arena, value);
        if (!name.p || !value.p)
                return -ENOMEM;
        return http_headers_add(&req->res.headers, &req->arena, name, value);
}

void http_res_header_const(struct http_req *req, struct str name, struct str value)
{
        /* Without memory the header is missing; the response is still sent. */
        (void) !http_headers_add(&req->res.headers, &req->arena, name, value);
}

void http_reply(struct http_req *req, int status, struct str type, struct str body)
{
        if (http_req_is_gone(req))
                return;
        if (type.p)
                http_res_header_const(req, STR("Content-Type"), type);
        if (!http_status_has_body(status))
                body = STR("");
        http_stream_begin(req, status, body.n);
        req->res.sent = body.n;
        if (body.n > HTTP_COPY_MAX)
                req->_transport->borrow(req, body);
        else if (body.n > 0)
                req->_transport->data(req, body);
        http_stream_end(req);
}

void http_reply_empty(struct http_req *req, int status)
{
        http_reply(req, status, STR_NULL, STR(""));
}

/* --- errors --- */

static struct str default_error_format(struct http_req *req, const struct http_problem *p,
                                       struct buf *ret_body)
{
        (void) req;
        buf_add_str(ret_body, STR("{\"code\":"));
        buf_add_quoted(ret_body, str_from(p->code));
        buf_add_str(ret_body, STR(",\"message\":"));
        buf_add_quoted(ret_body, str_from(p->message));
        buf_add_char(ret_body, '}');
        return STR("application/json");
}

void http_reply_error(struct http_req *req, int status, const char *code, const char *fmt, ...)
{
        char message[ERR_MESSAGE_MAX];
        struct http_problem p = { status, code, message };
        http_shape_fn *shape = req->api && req->api->shape ? req->api->shape : default_error_format;
        scoped(buf_done) struct buf b;
        struct str type;
        va_list ap;

        buf_init(&b, HTTP_COPY_MAX);
        if (http_req_is_gone(req))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        type = shape(req, &p, &b);
        http_reply(req, status, type, buf_str(&b));
}

/* --- streams --- */

void http_stream_begin(struct http_req *req, int status, uint64_t length)
{
        if (http_req_is_gone(req))
                return;
        ASSERT(req->res.state == HTTP_RES_NONE);
        req->res.status = status;
        req->res.length = http_status_has_body(status) ? length : 0;
        req->res.state = HTTP_RES_STREAM;
        req->_transport->head(req);
}

void http_stream_write(struct http_req *req, struct str bytes)
{
        ASSERT(bytes.n <= HTTP_WRITE_MAX);
        if (http_req_is_gone(req) || bytes.n == 0)
                return;
        ASSERT(req->res.state == HTTP_RES_STREAM);
        if (bytes.n > req->res.length - req->res.sent) {
                http_stream_fail(req); /* more than announced */
                return;
        }
        req->res.sent += bytes.n;
        req->_transport->data(req, bytes);
}

void http_stream_end(struct http_req *req)
{
        bool complete = req->res.length == HTTP_LENGTH_UNKNOWN || req->_head_only
                        || req->res.sent == req->res.length;

        if (http_req_is_gone(req))
                return;
        ASSERT(req->res.state == HTTP_RES_STREAM);
        if (!complete) {
                http_stream_fail(req);
                return;
        }
        req->res.state = HTTP_RES_ENDED;
        req->_transport->end(req);
}

void http_stream_fail(struct http_req *req)
{
        if (http_req_is_gone(req))
                return;
        req->res.state = HTTP_RES_ENDED;
        req->_transport->fail(req);
        req->_given_up = true;
}

bool http_stream_writable(const struct http_req *req)
{
        return !http_req_is_gone(req) && req->_transport->writable(req);
}

/* --- upgrades --- */

int http_req_upgrade(struct http_req *req, struct http_tunnel *t)
{
        int r;

        if (http_req_is_gone(req) || req->res.state != HTTP_RES_NONE)
                return -ENOTSUP;
        req->res.status = 101;
        r = req->_transport->upgrade(req, t);
        if (r < 0) {
                req->res.status = 0;
                return r;
        }
        req->res.state = HTTP_RES_ENDED;
        req->hooks = NULL; /* the ops of the tunnel take over */
        return 0;
}
