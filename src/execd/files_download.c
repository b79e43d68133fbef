/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /files/download: a file, or some of its lines (?offset=, ?limit=).
 *
 * A file whose size is known goes out by http_reply_file. A selection of lines, and a file of /proc, whose
 * size is not known before it is read, become a response of unknown length. Its first portion is read
 * before the response begins, so that a file that cannot be read is still an ordinary error.
 *
 * Lines are joined by line feeds, without one at the end; a carriage return at the end of a line is
 * dropped.
 */

#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"
#include "execd/response_stream.h"
#include "http/file.h"
#include "os/fd.h"
#include "os/file.h"

#define PORTION (64 * KiB)

struct line_range {
        uint64_t first; /* from 1 */
        uint64_t count;
};

struct download {
        struct response_stream stream;
        int fd;
        char portion[PORTION];
        size_t n; /* bytes of the portion that were read but not produced yet */

        /* --- lines --- */
        bool by_lines;
        uint64_t line;        /* the current one, from 1 */
        uint64_t first, last; /* selected, inclusive */
        bool started;         /* a byte of the current line was seen */
        bool any;             /* a line was produced before */
        bool held_cr;         /* a carriage return that may be the last byte of its line */
};

/* --- the selection of lines --- */

/* A line exists when it has a byte or an end. */
static void add_lines(struct download *d, struct str bytes, struct buf *out)
{
        while (bytes.n > 0 && d->line <= d->last) {
                ssize_t lf = str_find(bytes, '\n');
                size_t n = lf < 0 ? bytes.n : (size_t) lf;
                bool selected = d->line >= d->first, cr = n > 0 && bytes.p[n - 1] == '\r';

                if (selected && !d->started && d->any)
                        buf_add_char(out, '\n');
                if (selected && n > 0 && d->held_cr)
                        buf_add_char(out, '\r');
                if (selected) {
                        buf_add(out, bytes.p, n - cr);
                        d->any = true;
                        d->held_cr = lf < 0 && (n > 0 ? cr : d->held_cr);
                }
                d->started = lf < 0;
                d->line += lf >= 0;
                bytes = str_skip(bytes, n + (lf >= 0));
        }
}

/* --- the stream --- */

/* 1, 0 at the end of the file, or a negative errno. */
static int read_portion(struct download *d)
{
        ssize_t n;

        do
                n = read(d->fd, d->portion, sizeof(d->portion));
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        d->n = (size_t) n;
        return n > 0;
}

static int produce(struct response_stream *s, struct buf *out)
{
        struct download *d = container_of(s, struct download, stream);
        int r = d->n > 0 ? 1 : read_portion(d);

        if (r <= 0)
                return r;
        if (d->by_lines)
                add_lines(d, str_of(d->portion, d->n), out);
        else
                buf_add(out, d->portion, d->n);
        d->n = 0;
        return !d->by_lines || d->line <= d->last;
}

static void release(struct response_stream *s)
{
        struct download *d = container_of(s, struct download, stream);

        (void) fd_close(d->fd);
        free(d);
}

/* Takes fd. lines: NULL for all bytes, to be saved under the last name of the path. */
static void stream_file(struct http_req *req, int fd, struct str path,
                        const struct line_range *lines)
{
        static const struct response_stream_ops ops = { .produce = produce, .release = release };
        struct str type = lines ? STR("text/plain; charset=utf-8")
                                : STR("application/octet-stream");
        struct download *d = xnew(struct download);
        int r;

        d->fd = fd;
        if (lines) {
                d->by_lines = true;
                d->line = 1;
                d->first = lines->first;
                d->last = lines->count > UINT64_MAX - lines->first
                                  ? UINT64_MAX
                                  : lines->first + (lines->count - 1);
        }
        r = read_portion(d);
        if (r < 0)
                problem_reply_file(req, r, "read", path);
        else if (!lines)
                (void) http_res_attachment(req, path);
        if (r == 0)
                http_reply(req, 200, type, STR(""));
        if (r <= 0)
                release(&d->stream);
        else
                response_stream_start(&d->stream, req, type, &ops);
}

/* --- the request --- */

/* 1 if the parameter is there, 0 if not; negative: has replied. */
static int query_number(struct http_req *req, const char *name, uint64_t *ret)
{
        struct str text;
        int r = http_req_query(req, name, &text);

        if (r == 0 || (r > 0 && text.n == 0))
                return 0;
        if (r < 0 || parse_u64(text, ret) < 0 || *ret < 1) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s must be a number from 1 on",
                                 name);
                return -EINVAL;
        }
        return 1;
}

/* 1: these lines; 0: all bytes; negative: has replied. */
static int query_lines(struct http_req *req, struct line_range *ret)
{
        int offset, limit;

        *ret = (struct line_range){ .first = 1, .count = UINT64_MAX };
        offset = query_number(req, "offset", &ret->first);
        limit = offset < 0 ? offset : query_number(req, "limit", &ret->count);
        if (limit < 0 || (!offset && !limit))
                return limit;
        if (http_req_header(req, STR("Range")).p) {
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "offset and limit count lines and can't go with a Range of bytes");
                return -EINVAL;
        }
        return 1;
}

static void get_download(struct http_req *req)
{
        scoped(fd_closep) int fd = -EBADF;
        struct http_file_options options = { .flags = HTTP_FILE_STRICT_RANGE,
                                             .range_code = CODE_UNKNOWN };
        struct line_range lines;
        struct stat st;
        int by_lines, r;

        if (query_path(req, &options.name) < 0)
                return;
        by_lines = query_lines(req, &lines);
        if (by_lines < 0)
                return;
        r = file_open_read(options.name.p, &st, &fd);
        if (r == -EISDIR || r == -EINVAL) {
                http_reply_error(req, 400, CODE_INVALID_FILE, "'%.*s' is %s",
                                 PROBLEM_PATH(options.name),
                                 r == -EISDIR ? "a directory" : "not a regular file");
                return;
        }
        if (r == 0 && (by_lines || file_size_is_unknown(fd, &st))) {
                stream_file(req, TAKE_FD(fd), options.name, by_lines ? &lines : NULL);
                return;
        }
        if (r == 0)
                r = http_reply_file(req, TAKE_FD(fd), &options);
        if (r < 0)
                problem_reply_file(req, r, "read", options.name);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/download", .scope = SCOPE_TOKEN, .exec = get_download },
};

const struct http_api api_files_download = EXECD_API("files_download", routes);
