/* SPDX-License-Identifier: Apache-2.0 */
#include "http/upload.h"

#include "base/base.h"

/* Detaches the upload from the request; the owner may free it. */
void http_upload_stop(struct http_upload *u)
{
        u->req->hooks = NULL;
        u->req->data = NULL;
        u->req = NULL;
        multipart_done(&u->_mp);
}

static void upload_fail(struct http_upload *u, int r)
{
        struct http_req *req = u->req;

        if (req->res.state == HTTP_RES_NONE) {
                if (u->_mp.reason)
                        http_reply_error(req, 400, u->_invalid_code, "%s", u->_mp.reason);
                else
                        http_reply_error(req, 500, "INTERNAL_ERROR", "the upload failed");
        }
        http_upload_stop(u);
        u->ops->abort(u, r);
}

/* --- hooks of the request --- */

static void upload_body(struct http_req *req, const char *p, size_t n)
{
        struct http_upload *u = req->data;
        int r = multipart_feed(&u->_mp, p, n);

        /* A callback has responded: the remainder of the body is not needed. */
        if (r == 0 && req->res.state == HTTP_RES_ENDED)
                r = -ECANCELED;
        if (r < 0)
                upload_fail(u, r);
}

static void upload_body_end(struct http_req *req)
{
        struct http_upload *u = req->data;
        int r = multipart_finish(&u->_mp);

        if (r < 0) {
                upload_fail(u, r);
                return;
        }
        http_upload_stop(u);
        u->req = req; /* the owner responds */
        u->ops->end(u);
}

static void upload_abort(struct http_req *req, int reason)
{
        struct http_upload *u = req->data;

        http_upload_stop(u);
        u->ops->abort(u, reason);
}

static const struct http_hooks upload_hooks = {
        .body = upload_body,
        .body_end = upload_body_end,
        .abort = upload_abort,
};

/* --- starting --- */

int http_upload_start(struct http_upload *u, struct http_req *req,
                      const struct http_upload_ops *ops, const struct http_upload_options *options)
{
        static const struct http_upload_options none;
        const struct http_upload_options *o = options ? options : &none;
        const char *code = o->invalid_code ? o->invalid_code : "INVALID_MULTIPART";
        struct str boundary;
        int r;

        if (http_req_is_gone(req))
                return -ECONNRESET;
        r = multipart_boundary(http_req_header(req, STR("Content-Type")), &boundary);
        if (r == -ENOMSG)
                http_reply_error(req, o->type_status ? o->type_status : 415,
                                 o->type_code ? o->type_code : "UNSUPPORTED_MEDIA_TYPE",
                                 "the body must be multipart/form-data");
        else if (r < 0)
                http_reply_error(req, 400, code, "the Content-Type must have one valid boundary");
        if (r < 0)
                return r;
        /* Rejects a body that is announced as too large; otherwise nothing is delivered yet. */
        http_body_start(req, o->body_max ? o->body_max : HTTP_LENGTH_UNKNOWN);
        if (req->res.state != HTTP_RES_NONE)
                return -EMSGSIZE;
        *u = (struct http_upload){ .req = req, .ops = ops, ._invalid_code = code };
        multipart_init(&u->_mp, boundary, &ops->parts, &o->limits);
        http_req_set_hooks(req, &upload_hooks, u);
        return 0;
}
