/* SPDX-License-Identifier: Apache-2.0 */

/* POST /upload: the file of a multipart form goes into the directory as it arrives. */

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/http_bench.h"
#include "http/server.h"
#include "http/upload.h"
#include "os/fd.h"

#define NAME "upload"

struct upload {
        struct http_upload base;
        int file;
};

static struct upload *upload_of(struct http_upload *u)
{
        return container_of(u, struct upload, base);
}

static int upload_part(struct multipart *mp, const struct multipart_part *part)
{
        struct http_upload *u = http_upload_of(mp);
        const struct bench *b = http_server_data(u->req->server);

        upload_of(u)->file = openat(b->dir, NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        return upload_of(u)->file < 0 ? -errno : 0;
}

static int upload_data(struct multipart *mp, const char *p, size_t n)
{
        struct upload *up = upload_of(http_upload_of(mp));

        while (n > 0) {
                ssize_t r = write(up->file, p, n);

                if (r < 0)
                        return -errno;
                p += r;
                n -= (size_t) r;
        }
        return 0;
}

static int upload_part_end(struct multipart *mp)
{
        struct upload *up = upload_of(http_upload_of(mp));

        up->file = fd_close(up->file);
        return 0;
}

static void upload_end(struct http_upload *u)
{
        http_reply_empty(u->req, 200);
        free(upload_of(u));
}

static void upload_abort(struct http_upload *u, int reason)
{
        (void) reason;
        (void) fd_close(upload_of(u)->file);
        free(upload_of(u));
}

static const struct http_upload_ops upload_ops = {
        .parts = { .part = upload_part, .data = upload_data, .part_end = upload_part_end },
        .end = upload_end,
        .abort = upload_abort,
};

void bench_post_upload(struct http_req *req)
{
        struct upload *u = xnew(struct upload);

        u->file = -EBADF;
        if (http_upload_start(&u->base, req, &upload_ops, NULL) < 0)
                free(u);
}
