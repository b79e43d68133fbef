/* SPDX-License-Identifier: Apache-2.0 */
#include "http/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base.h"
#include "http/range.h"
#include "http/conn.h"
#include "http/url.h"
#include "os/fd.h"

/* Below this size posix_fadvise costs more than it gains. */
#define ADVISE_MIN (256 * KiB)

struct file_info {
        uint64_t size;
        struct validators validators;
        char modified[TIME_HTTP_MAX];
        char etag[64];
};

static int stat_file(int fd, unsigned flags, struct file_info *ret)
{
        struct stat st;
        uint64_t nsec;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        ret->size = (uint64_t) st.st_size;
        ret->validators = (struct validators){ .modified = USEC_INFINITY };
        /* usec_t cannot represent a time before 1970. */
        if (st.st_mtim.tv_sec >= 0) {
                ret->validators.modified = (usec_t) st.st_mtim.tv_sec * USEC_PER_SEC;
                (void) time_to_http(ret->validators.modified, ret->modified);
        }
        if (flags & HTTP_FILE_ETAG) {
                nsec = (uint64_t) st.st_mtim.tv_sec * 1000000000U + (uint64_t) st.st_mtim.tv_nsec;
                (void) snprintf(ret->etag, sizeof(ret->etag),
                                "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", nsec, ret->size,
                                (uint64_t) st.st_ino);
                ret->validators.etag = str_from(ret->etag);
        }
        return 0;
}

static void add_validators(struct http_req *req, const struct file_info *f)
{
        http_res_header_const(req, STR("Accept-Ranges"), STR("bytes"));
        if (f->validators.modified != USEC_INFINITY)
                (void) http_res_header(req, STR("Last-Modified"), str_from(f->modified));
        if (f->validators.etag.p)
                (void) http_res_header(req, STR("ETag"), f->validators.etag);
}

/* Range applies to GET only (RFC 9110, 14.2). */
static enum range_result choose_range(const struct http_req *req, const struct file_info *f,
                                      unsigned flags, struct range *ret)
{
        struct str field = http_req_header(req, STR("Range"));
        enum range_result result;

        if (!field.p || req->method != METHOD_GET
            || !range_if_range(http_req_header(req, STR("If-Range")), &f->validators))
                return RANGE_FULL;
        result = range_parse(field, f->size, ret);
        if (result == RANGE_FULL && f->size > 0 && (flags & HTTP_FILE_STRICT_RANGE))
                return RANGE_UNSATISFIABLE;
        return result;
}

static void send_bytes(struct http_req *req, int status, uint64_t pos, uint64_t n)
{
        bool sends = n > 0 && !req->_head_only;

        http_stream_begin(req, status, n);
        if (sends && n >= ADVISE_MIN)
                (void) posix_fadvise(req->res.file, (off_t) pos, (off_t) n, POSIX_FADV_SEQUENTIAL);
        if (sends)
                stream_queue_file(&req->_conn->stream, req->res.file, pos, n);
        req->res.sent = n;
        http_stream_end(req);
}

int http_reply_file(struct http_req *req, int fd, const struct http_file_options *options)
{
        static const struct http_file_options none;
        const struct http_file_options *o = options ? options : &none;
        struct file_info info = { 0 };
        struct range range;
        enum range_result result;
        char text[80];
        int r = stat_file(fd, o->flags, &info);

        if (r < 0 || http_req_is_gone(req)) {
                (void) fd_close(fd);
                return r;
        }
        req->res.file = fd;
        add_validators(req, &info);
        if ((req->method == METHOD_GET || req->method == METHOD_HEAD)
            && http_not_modified(http_req_header(req, STR("If-None-Match")),
                                 http_req_header(req, STR("If-Modified-Since")),
                                 &info.validators)) {
                http_reply_empty(req, 304);
                return 0;
        }
        result = choose_range(req, &info, o->flags, &range);
        if (result == RANGE_UNSATISFIABLE) {
                (void) snprintf(text, sizeof(text), "bytes */%" PRIu64, info.size);
                (void) http_res_header(req, STR("Content-Range"), str_from(text));
                http_reply_error(req, 416, o->range_code ? o->range_code : "RANGE_NOT_SATISFIABLE",
                                 "the range is outside of the file, which has %" PRIu64 " bytes",
                                 info.size);
                return 0;
        }
        (void) http_res_header(req, STR("Content-Type"),
                               o->type.p ? o->type : STR("application/octet-stream"));
        if (o->name.p)
                (void) http_res_attachment(req, o->name);
        if (result == RANGE_FULL) {
                send_bytes(req, 200, 0, info.size);
                return 0;
        }
        (void) snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.start,
                        range.end, info.size);
        (void) http_res_header(req, STR("Content-Range"), str_from(text));
        send_bytes(req, 206, range.start, range.end - range.start + 1);
        return 0;
}

/* --- Content-Disposition --- */

int http_res_attachment(struct http_req *req, struct str name)
{
        scoped(buf_done) struct buf b;
        const char *slash = name.n ? memrchr(name.p, '/', name.n) : NULL;
        bool encoded = false;

        if (slash)
                name = str_skip(name, (size_t) (slash - name.p) + 1);
        buf_init(&b, 16 * KiB);
        buf_add_str(&b, STR("attachment; filename=\""));
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '%') {
                        buf_add_char(&b, c);
                } else {
                        buf_addf(&b, "%%%02X", (unsigned char) c);
                        encoded = true;
                }
        }
        buf_add_char(&b, '"');
        if (encoded) {
                buf_add_str(&b, STR("; filename*=UTF-8''"));
                url_encode(&b, name);
        }
        if (buf_failed(&b))
                return -ENOMEM;
        return http_res_header(req, STR("Content-Disposition"), buf_str(&b));
}
