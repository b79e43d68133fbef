/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_UPLOAD_H
#define HUTCH_HTTP_UPLOAD_H

/*
 * A multipart/form-data request, part by part, as it arrives.
 *
 * For handlers of HTTP_BODY_STREAM routes. http_upload_start looks at the Content-Type, asks for
 * the body and feeds it to the parser (http/multipart.h, which has the rules); the handler gets the
 * parts. What is wrong with the body is answered here, with the parser's reason and in the shape of
 * the API; the handler only hears that it is over.
 *
 *         up->upload = …;
 *         if (http_upload_start(&up->upload, req, &ops, NULL) < 0)
 *                 free(up);            it has answered
 *
 * Exactly one of `end` and `abort` is called, from the loop, and nothing after it; the memory may
 * go then. A callback that returns a negative errno stops the upload too: `abort` follows with it.
 * It may have answered before; else the answer is 500. One that answers and goes on ends the upload
 * all the same, with -ECANCELED. Callbacks must not free the upload: that is
 * for end and abort.
 *
 * A slow disk or process holds the client back with http_body_pause(upload->req). What was read
 * from the socket already (NET_READ_SIZE at most) still comes.
 */

#include "http/multipart.h"
#include "http/req.h"

struct http_upload;

struct http_upload_ops {
        /* As in http/multipart.h: 0, or a negative errno to stop. */
        int (*part)(struct http_upload *u, const struct multipart_part *part);
        int (*data)(struct http_upload *u, const char *p, size_t n);
        int (*part_end)(struct http_upload *u);
        /* The body was complete and well-formed: answer, now or later. */
        void (*end)(struct http_upload *u);
        /* It was not (-EINVAL, -E2BIG: answered), or was too large (-EMSGSIZE: answered), or the
         * client is gone (see hooks->abort), or a callback gave up. */
        void (*abort)(struct http_upload *u, int reason);
};

/* A member that is 0 stands for its default. */
struct http_upload_options {
        uint64_t body_max;        /* of the whole body: no limit */
        int type_status;          /* for another Content-Type: 415 */
        const char *type_code;    /* and its code: UNSUPPORTED_MEDIA_TYPE */
        const char *invalid_code; /* for a malformed body (400): INVALID_MULTIPART */
        struct multipart_limits limits;
};

struct http_upload {
        struct http_req *req; /* NULL when it is over */
        const struct http_upload_ops *ops;
        const char *_invalid_code;
        struct multipart _mp;
};

/* Negative: answered, or the client is gone; nothing has begun. The request's hooks are the
 * upload's until it is over. options may be NULL. */
int http_upload_start(struct http_upload *u, struct http_req *req,
                      const struct http_upload_ops *ops, const struct http_upload_options *options)
        must_check;

/* The owner answers from outside of the callbacks: it is over, and nothing more is called. May also
 * be called after `end`. */
void http_upload_stop(struct http_upload *u);

#endif
