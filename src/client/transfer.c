/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "base/base.h"
#include "client/decode.h"
#include "client/op.h"
#include "client/result.h"

/* Downloads, and uploads of archives; upload.c has uploads of files. */

struct get_op {
        struct op op;
        struct hutch_sink sink;
        struct buf memory;
        uint64_t n; /* delivered */
        uint64_t offset, length;
        uint64_t skip; /* bytes before the range, if the server ignores ranges */
        bool ranged;
};

static struct get_op *get_of(struct op *op)
{
        return container_of(op, struct get_op, op);
}

/* --- sinks --- */

/* Waits for a descriptor that is not ready, until the deadline of the call, if it has one: the data cannot
 * be kept anywhere else. */
static int write_fd(struct op *op, int fd, struct str bytes)
{
        bool limited = !list_empty(&op->deadline.node);

        while (bytes.n > 0) {
                struct pollfd p = { .fd = fd, .events = POLLOUT };
                ssize_t n = write(fd, bytes.p, bytes.n);
                usec_t now, left;

                if (n >= 0) {
                        bytes = str_skip(bytes, (size_t) n);
                        continue;
                }
                if (errno == EINTR)
                        continue;
                if (errno != EAGAIN) {
                        op->x.error.os_errno = errno;
                        return exchange_fail(&op->x, HUTCH_LOCAL, "write the data: %s",
                                             err_text(-errno));
                }
                now = loop__now();
                left = limited && op->deadline.at > now ? op->deadline.at - now : 0;
                if (poll(&p, 1, limited ? (int) MIN_OF(left / USEC_PER_MSEC + 1, INT32_MAX) : -1)
                    == 0)
                        return exchange_fail(&op->x, HUTCH_TIMEOUT,
                                             "the data could not be written by the deadline");
        }
        return 0;
}

/* A server without ranges sends everything with 200; the range is cut out of it. */
static void opened(struct op *op)
{
        struct get_op *g = get_of(op);

        g->skip = g->ranged && op->x.status != 206 ? g->offset : 0;
}

static int on_bytes(struct op *op, struct str bytes)
{
        struct get_op *g = get_of(op);
        size_t skip = (size_t) MIN_OF(g->skip, (uint64_t) bytes.n);

        g->skip -= skip;
        bytes = str_skip(bytes, skip);
        if (g->ranged && g->length > 0)
                bytes.n = (size_t) MIN_OF((uint64_t) bytes.n, g->length - g->n);
        if (bytes.n == 0)
                return 0;
        g->n += bytes.n;
        if (g->sink.write) {
                if (g->sink.write(g->sink.ctx, bytes.p, bytes.n) == 0)
                        return 0;
                return exchange_fail(&op->x, HUTCH_CANCELED, "canceled by the callback");
        }
        if (g->sink.fd > 0)
                return write_fd(op, g->sink.fd, bytes);
        if (bytes.n > buf_room(&g->memory))
                return exchange_fail(&op->x, HUTCH_TOO_LARGE, "there are more than %zu bytes",
                                     g->memory.max);
        buf_add_str(&g->memory, bytes);
        return buf_failed(&g->memory) ? exchange_fail(&op->x, HUTCH_NO_MEMORY, "out of memory") : 0;
}

/* --- the call --- */

static void got(struct op *op)
{
        if (op_check_response(op))
                op_finish_data(op, &get_of(op)->memory, get_of(op)->n);
}

static void get_release(struct op *op)
{
        buf_done(&get_of(op)->memory);
}

#define GET(what)                                                                                \
        {                                                                                        \
                .doing = (what), .release = get_release, .stream = true,                         \
                .request = {                                                                     \
                        .method = "GET", .bytes = on_bytes, .opened = opened, .on_response = got \
                },                                                                               \
        }

static struct get_op *new_get(const struct op_kind *kind, struct hutch_client *client,
                              const struct hutch_sink *sink, struct hutch_call *call)
{
        struct op *op = op_new(sizeof(struct get_op), kind, client, call);
        struct get_op *g = op ? get_of(op) : NULL;

        if (!g)
                return NULL;
        if (sink)
                g->sink = *sink;
        buf_init(&g->memory, client ? (size_t) client->o.response_max : 1);
        return g;
}

static void set_range(struct get_op *g, const struct hutch_download *w)
{
        bool bytes = w->offset > 0 || w->length > 0, lines = w->first_line > 0 || w->n_lines > 0;
        char first[24], n[24], range[64];

        if (bytes && lines)
                op_refuse(&g->op, HUTCH_INVALID, "a range is either of bytes or of lines");
        if (w->length > UINT64_MAX - w->offset)
                op_refuse(&g->op, HUTCH_INVALID, "the range is too large");
        if (g->op.failed < 0)
                return;
        (void) snprintf(first, sizeof(first), "%" PRIu64, w->first_line ? w->first_line : 1);
        (void) snprintf(n, sizeof(n), "%" PRIu64, w->n_lines);
        if (lines)
                url_add(&g->op.url, "&offset={}", first);
        if (lines && w->n_lines)
                url_add(&g->op.url, "&limit={}", n);
        if (!bytes)
                return;
        g->ranged = true;
        g->offset = w->offset;
        g->length = w->length;
        if (w->length > 0)
                (void) snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, w->offset,
                                w->offset + w->length - 1);
        else
                (void) snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", w->offset);
        op_header(&g->op, "Range", range);
}

static const struct op_kind download_kind = GET("download the file");

int hutch_download_file(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_download *download, struct hutch_data **ret,
                        struct hutch_call *call)
{
        struct hutch_download w;
        int r = options_copy(&w, sizeof(w), download);
        struct get_op *g = new_get(&download_kind, client, &w.sink, call);

        if (!g)
                return HUTCH_NO_MEMORY;
        if (r < 0)
                op_refuse(&g->op, r, "the options: not initialized, or of a newer version");
        if (op_need(&g->op, w.path, "the path"))
                op_to_agent(&g->op, agent, "/files/download?path={}", w.path);
        set_range(g, &w);
        return op_start(&g->op, ret);
}

int hutch_read_file(struct hutch_client *client, const char *sandbox_id, const char *path,
                    struct hutch_data **ret, struct hutch_call *call)
{
        struct get_op *g = new_get(&download_kind, client, NULL, call);

        if (!g)
                return HUTCH_NO_MEMORY;
        op_to_sandbox(&g->op, sandbox_id, "/files/download?path={}", path);
        (void) op_need(&g->op, path, "the path");
        return op_start(&g->op, ret);
}

/* --- archives --- */

int hutch_download_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_archive_out *archive, struct hutch_data **ret,
                           struct hutch_call *call)
{
        static const struct op_kind kind = GET("download the archive");
        struct hutch_archive_out w;
        int r = options_copy(&w, sizeof(w), archive);
        struct get_op *g = new_get(&kind, client, &w.sink, call);

        if (!g)
                return HUTCH_NO_MEMORY;
        if (r < 0)
                op_refuse(&g->op, r, "the options: not initialized, or of a newer version");
        if (op_need(&g->op, w.path, "the path"))
                op_to_agent(&g->op, agent, "/files/archive?path={}", w.path);
        return op_start(&g->op, ret);
}

static void put_done(struct op *op)
{
        struct hutch_archive_in *archive = (struct hutch_archive_in *) (void *) TAKE_PTR(op->ret);
        struct str text = buf_str(&op->x.response);

        if (!op_check_response(op))
                return;
        archive->entries = (uint64_t) MAX_OF(decode_number(text, "entries"), 0);
        archive->bytes = (uint64_t) MAX_OF(decode_number(text, "bytes"), 0);
        op_succeed(op, NULL);
}

int hutch_upload_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                         struct hutch_archive_in *archive, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "upload the archive",
                .request = { .method = "POST", .has_source = true, .on_response = put_done },
                .stream = true,
        };
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (!archive || archive->size < sizeof(*archive))
                op_refuse(op, HUTCH_INVALID, "the options are not initialized");
        else if (op_need(op, archive->path, "the path")) {
                op->source = archive->source;
                op_to_agent(op, agent, "/files/archive?path={}", archive->path);
                if (op->failed == 0 && archive->keep_owner)
                        url_add(&op->url, "&owner=keep");
        }
        return op_start(op, archive);
}
