/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_FILE_H
#define HUTCH_HTTP_FILE_H

/*
 * A regular file as the answer: sent by the kernel (sendfile) a portion per turn of the loop, so
 * neither its size nor the client's speed costs memory.
 *
 * The answer carries Content-Length, Accept-Ranges, Last-Modified and, if wanted, an ETag. Served
 * are conditional requests (304), one Range with If-Range (206, 416) and HEAD; http/range.h has the
 * rules. The size is taken once. What is appended to the file meanwhile is not sent; if it shrinks,
 * the promised length can't be kept and the connection is broken off, so that the client does not
 * take the next answer for the rest of this one.
 *
 *         r = http_reply_file(req, TAKE_FD(fd), &(struct http_file_options){ .name = base_name });
 *         if (r < 0)
 *                 http_reply_error(req, …);
 */

#include "http/req.h"

enum http_file_flags {
        /* A tag of modification time, size and inode. As strong as the filesystem's clock is fine:
         * two writes of equal length within one of its ticks look the same. */
        HTTP_FILE_ETAG = 1 << 0,
        /* A Range that can't be understood is 416, where RFC 9110 wants the whole file. */
        HTTP_FILE_STRICT_RANGE = 1 << 1,
};

struct http_file_options {
        unsigned flags;
        struct str type;        /* null view: application/octet-stream */
        struct str name;        /* to be saved under this name; null view: shown, not saved */
        const char *range_code; /* the API's word for 416; NULL: RANGE_NOT_SATISFIABLE */
};

/* Takes fd, whatever it returns; it is closed with the request. options may be NULL. 0: answered.
 * Negative: nothing was said and the answer is the caller's: -EISDIR, -EINVAL for what else is not
 * a regular file, or fstat's error. */
int http_reply_file(struct http_req *req, int fd, const struct http_file_options *options)
        must_check;

/* Adds "Content-Disposition: attachment" for a file of that name, before the answer begins. The
 * name may hold any bytes: what is not printable ASCII, and quotes, backslashes and percent signs,
 * is percent-encoded in filename; if anything was, the name follows as filename* (RFC 8187). Only
 * what is behind the last slash counts. -ENOMEM if the arena is full. */
int http_res_attachment(struct http_req *req, struct str name);

#endif
