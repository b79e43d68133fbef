/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "execd/file_stream.h"
#include "execd/problem.h"
#include "execd/query.h"
#include "http/file.h"
#include "os/fd.h"
#include "os/file.h"

/* GET /files/download: a file as it is, or some of its lines. */

/* --- what is asked for --- */

/* 1 if there is such a number, 0 if not; negative: answered. */
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

/* 1: these lines; 0: all bytes; negative: answered. */
static int query_lines(struct http_req *req, struct file_lines *ret)
{
        int offset, limit;

        *ret = (struct file_lines){ .first = 1, .count = UINT64_MAX };
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

static int open_file(struct http_req *req, struct str path, struct stat *ret_st, int *ret_fd)
{
        int r = file_open_read(path.p, ret_st, ret_fd);

        if (r == -EISDIR || r == -EINVAL)
                http_reply_error(req, 400, CODE_INVALID_FILE, "'%.*s' is %s", PROBLEM_PATH(path),
                                 r == -EISDIR ? "a directory" : "not a regular file");
        else if (r < 0)
                problem_reply_file(req, r, "read", path);
        return r;
}

/* --- the answer --- */

static void reply_bytes(struct http_req *req, int fd, struct str path)
{
        int r = http_reply_file(req, fd,
                                &(struct http_file_options){
                                        .flags = HTTP_FILE_STRICT_RANGE,
                                        .name = path,
                                        .range_code = CODE_UNKNOWN,
                                });

        if (r < 0)
                problem_reply_file(req, r, "read", path);
}

static void get_download(struct http_req *req)
{
        scoped(fd_closep) int fd = -EBADF;
        struct file_lines lines;
        struct str path;
        struct stat st;
        int wanted;

        if (query_path(req, &path) < 0)
                return;
        wanted = query_lines(req, &lines);
        if (wanted < 0 || open_file(req, path, &st, &fd) < 0)
                return;
        if (wanted)
                file_stream_lines(req, TAKE_FD(fd), path, &lines);
        else if (file_size_is_unknown(fd, &st))
                file_stream_bytes(req, TAKE_FD(fd), path);
        else
                reply_bytes(req, TAKE_FD(fd), path);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/download", .scope = SCOPE_TOKEN, .exec = get_download },
};

const struct http_api api_files_download = EXECD_API("files_download", routes);
