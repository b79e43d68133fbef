/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_STREAM_H
#define HUTCH_EXECD_FILE_STREAM_H

/*
 * A file as an answer of unknown length: read a portion at a time as the client takes it.
 *
 * For what http_reply_file can't do: a choice of lines, and files of /proc, whose size is not known
 * before they are read. The first portion is read before the answer begins, so that a file
 * that can't be read is still an ordinary error.
 */

#include "http/req.h"

struct file_lines {
        uint64_t first; /* from 1 on */
        uint64_t count;
};

/* As text/plain, joined by line feeds without one at the end; a carriage return before a line's end
 * is dropped. Both take fd and answer; path, for the client's eyes, lives in the arena. */
void file_stream_lines(struct http_req *req, int fd, struct str path,
                       const struct file_lines *lines);

/* As it is, to be saved under the path's last name. A file of no length at all is an empty answer
 * with Content-Length 0. */
void file_stream_bytes(struct http_req *req, int fd, struct str path);

#endif
