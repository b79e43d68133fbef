/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_UPLOAD_H
#define HUTCH_HTTP_UPLOAD_H

/*
 * A multipart/form-data request, part by part, as it arrives.
 *
 * For handlers of HTTP_BODY_STREAM routes. http_upload_start checks the Content-Type, requests the body
 * and feeds it to the parser (http/multipart.h); the handler gets the parts. A malformed body is
 * rejected here, with the parser's reason in the API's error format.
 *
 *         up->upload = …;
 *         if (http_upload_start(&up->upload, req, &ops, NULL) < 0)
 *                 free(up);            a response was sent
 *
 * Exactly one of `end` and `abort` is called, from the loop; it is the last call, and the memory may be
 * freed. A callback that returns a negative errno stops the upload, and `abort` follows with it. It may
 * have responded before; otherwise the response is 500. A callback that responds and returns 0 ends the
 * upload too, with -ECANCELED. Only end and abort may free the upload.
 *
 * http_body_pause(upload->req) slows the client. What was read already (NET_READ_SIZE at most) is still
 * delivered.
 */

#include "http/multipart.h"
#include "http/req.h"

struct http_upload;

struct http_upload_ops {
        /* As in http/multipart.h; http_upload_of finds the upload. */
        struct multipart_ops parts;
        /* The body was complete and well-formed: respond, now or later. */
        void (*end)(struct http_upload *u);
        /* It was malformed (-EINVAL, -E2BIG) or too large (-EMSGSIZE), with the response sent; or
         * the client is gone (see hooks->abort), or a callback failed. */
        void (*abort)(struct http_upload *u, int reason);
};

/* 0 selects the default. */
struct http_upload_options {
        uint64_t body_max;        /* of the body; default: no limit */
        int type_status;          /* for another Content-Type: 415 */
        const char *type_code;    /* and its code: UNSUPPORTED_MEDIA_TYPE */
        const char *invalid_code; /* for a malformed body (400): INVALID_MULTIPART */
        struct multipart_limits limits;
};

struct http_upload {
        struct http_req *req; /* NULL when it has ended */
        const struct http_upload_ops *ops;
        const char *_invalid_code;
        struct multipart _mp;
};

static inline struct http_upload *http_upload_of(struct multipart *mp)
{
        return container_of(mp, struct http_upload, _mp);
}

/* Negative: rejected with a response, or the client is gone; no callback is called. The upload owns
 * the request's hooks until it ends. options may be NULL. */
int http_upload_start(struct http_upload *u, struct http_req *req,
                      const struct http_upload_ops *ops, const struct http_upload_options *options)
        must_check;

/* Ends the upload from outside of the callbacks; none is called any more. May also be called after
 * `end`. */
void http_upload_stop(struct http_upload *u);

#endif
