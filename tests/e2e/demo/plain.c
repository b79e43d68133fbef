/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "base/base.h"
#include "http/file.h"
#include "http/proxy.h"
#include "http/upload.h"
#include "tests/e2e/demo/demo.h"

void demo_hello(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("{\"hello\":\"world\"}"));
}

void demo_echo(struct http_req *req)
{
        http_reply(req, 200, STR("application/octet-stream"), req->body);
}

/* --- a body that flows through --- */

static void echo_body(struct http_req *req, const char *p, size_t n)
{
        http_stream_write(req, str_of(p, n));
        if (!http_stream_writable(req))
                http_body_pause(req);
}

static void echo_end(struct http_req *req)
{
        http_stream_end(req);
}

static void echo_drain(struct http_req *req)
{
        http_body_resume(req);
}

static const struct http_hooks echo_hooks = { echo_body, echo_end, echo_drain, NULL };

void demo_echo_stream(struct http_req *req)
{
        http_req_set_hooks(req, &echo_hooks, NULL);
        http_body_start(req, HTTP_LENGTH_UNKNOWN);
        http_stream_begin(req, 200, req->content_length);
}

/* --- a body by table --- */

const struct json_field demo_greeting_fields[] = {
        JSON_STR(struct demo_greeting, name, "name", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_I64(struct demo_greeting, times, "times", 0, JSON_RANGE(1, 10)),
        JSON_END,
};

void demo_greet(struct http_req *req)
{
        const struct demo_greeting *in = req->input;
        scoped(buf_done) struct buf b;

        buf_init(&b, 64 * KiB);
        json_encode(&b, demo_greeting_fields, in);
        http_reply(req, 200, STR("application/json"), arena_dup_str(&req->arena, buf_str(&b)));
}

/* --- files --- */

void demo_file(struct http_req *req)
{
        char path[4096];
        int fd, r;

        if (memchr(req->params[0].p, '/', req->params[0].n)) {
                http_reply_error(req, 400, "BAD_NAME", "a name has no slash");
                return;
        }
        (void) snprintf(path, sizeof(path), "%s/%.*s", demo_of(req)->directory,
                        STR_ARG(req->params[0]));
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) {
                http_reply_error(req, 404, "NO_FILE", "no such file");
                return;
        }
        r = http_reply_file(req, fd,
                            &(struct http_file_options){ .flags = HTTP_FILE_ETAG,
                                                         .name = req->params[0] });
        if (r < 0)
                http_reply_error(req, 400, "NO_FILE", "not a file");
}

/* --- uploads: tells the name, size and a checksum of each part --- */

struct upload {
        struct http_upload upload;
        struct buf report;
        uint64_t size;
        uint32_t sum; /* FNV-1a */
};

static int upload_part(struct multipart *mp, const struct multipart_part *part)
{
        struct upload *up = container_of(http_upload_of(mp), struct upload, upload);

        buf_add_str(&up->report, up->report.n > 1 ? STR(",{\"name\":") : STR("{\"name\":"));
        buf_add_quoted(&up->report, part->name);
        if (part->filename.p) {
                buf_add_str(&up->report, STR(",\"filename\":"));
                buf_add_quoted(&up->report, part->filename);
        }
        up->size = 0;
        up->sum = 2166136261u;
        return 0;
}

static int upload_data(struct multipart *mp, const char *p, size_t n)
{
        struct upload *up = container_of(http_upload_of(mp), struct upload, upload);

        up->size += n;
        for (size_t i = 0; i < n; i++)
                up->sum = (up->sum ^ (uint8_t) p[i]) * 16777619u;
        return 0;
}

static int upload_part_end(struct multipart *mp)
{
        struct upload *up = container_of(http_upload_of(mp), struct upload, upload);

        buf_addf(&up->report, ",\"size\":%llu,\"sum\":%u}", (unsigned long long) up->size, up->sum);
        return buf_failed(&up->report) ? -E2BIG : 0;
}

static void upload_free(struct upload *up)
{
        buf_done(&up->report);
        free(up);
}

static void upload_end(struct http_upload *u)
{
        struct upload *up = container_of(u, struct upload, upload);
        struct http_req *req = u->req;

        buf_add_char(&up->report, ']');
        http_reply(req, 200, STR("application/json"),
                   arena_dup_str(&req->arena, buf_str(&up->report)));
        upload_free(up);
}

static void upload_abort(struct http_upload *u, int reason)
{
        (void) reason;
        upload_free(container_of(u, struct upload, upload));
}

static const struct http_upload_ops upload_ops = {
        .parts = { .part = upload_part, .data = upload_data, .part_end = upload_part_end },
        .end = upload_end,
        .abort = upload_abort,
};

void demo_upload(struct http_req *req)
{
        struct upload *up = xnew(struct upload);

        buf_init(&up->report, MiB);
        buf_add_char(&up->report, '[');
        if (http_upload_start(&up->upload, req, &upload_ops, NULL) < 0)
                upload_free(up);
}

/* --- the proxy --- */

void demo_proxy(struct http_req *req)
{
        static const struct str secret[] = { STR("X-Api-Key") };
        struct demo *d = demo_of(req);

        if (!d->has_upstream) {
                http_reply_error(req, 503, "NO_UPSTREAM", "start me with an upstream");
                return;
        }
        http_proxy(req, &(struct http_proxy_target){ .client = d->client,
                                                     .addr = &d->upstream,
                                                     .prefix = STR("/"),
                                                     .path = req->params[0],
                                                     .flags = HTTP_PROXY_FORWARDED,
                                                     .strip = secret,
                                                     .n_strip = ARRAY_SIZE(secret) });
}
