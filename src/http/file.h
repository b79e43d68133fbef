/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_FILE_H
#define HUTCH_HTTP_FILE_H

/*
 * A regular file as the response. The kernel sends it (sendfile), a portion per loop iteration, so
 * neither its size nor the client's speed costs memory.
 *
 * The response has Content-Length, Accept-Ranges, Last-Modified and, optionally, an ETag. Conditional
 * requests (304), one Range with If-Range (206, 416) and HEAD are supported; see http/range.h. The size
 * is read once. Data appended meanwhile is not sent. If the file shrinks, the connection is reset, so
 * that the client does not mistake the next response for the remainder of this one.
 *
 *         r = http_reply_file(req, TAKE_FD(fd), &(struct http_file_options){ .name = base_name });
 *         if (r < 0)
 *                 http_reply_error(req, …);
 */

#include "http/req.h"

enum http_file_flags {
        /* Made of modification time, size and inode. Its resolution is that of the filesystem's
         * clock: two writes of equal length within one tick look the same. */
        HTTP_FILE_ETAG = 1 << 0,
        /* A malformed Range is 416; RFC 9110 would send the complete file. */
        HTTP_FILE_STRICT_RANGE = 1 << 1,
};

struct http_file_options {
        unsigned flags;
        struct str type;        /* null view: application/octet-stream */
        struct str name;        /* save as this name (attachment); null view: inline */
        const char *range_code; /* the API's error code for 416; NULL: RANGE_NOT_SATISFIABLE */
};

/* Takes fd in any case; it is closed with the request. options may be NULL. 0: the response has begun.
 * Negative: nothing was sent, and the caller responds: -EISDIR, -EINVAL for other files that are not
 * regular, or the error of fstat. */
int http_reply_file(struct http_req *req, int fd, const struct http_file_options *options)
        must_check;

/* Adds "Content-Disposition: attachment" before the response begins. Only the last component of the name
 * is used, and it may contain any bytes: everything but printable ASCII, and quotes, backslashes and
 * percent signs, is percent-encoded in filename, and the name follows as filename* (RFC 8187) then.
 * -ENOMEM if the arena is full. */
int http_res_attachment(struct http_req *req, struct str name);

#endif
