/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"
#include "os/fd.h"

#define PIECE (64 * KiB) /* read and written at once */

struct spool {
        unsigned refs;
        struct net_loop *loop;
        int fd;
        uint64_t max;
        uint64_t start, end;
        bool finished;
        struct list readers;
};

int spool_new(struct net_loop *l, const char *dir, uint64_t max, struct spool **ret)
{
        int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        char path[4096];
        struct spool *s;

        /* Not every filesystem supports O_TMPFILE. */
        if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
                if (snprintf(path, sizeof(path), "%s/.hutch-XXXXXX", dir) >= (int) sizeof(path))
                        return -ENAMETOOLONG;
                fd = mkostemp(path, O_CLOEXEC);
                if (fd >= 0)
                        (void) unlink(path);
        }
        if (fd < 0)
                return -errno;
        s = xnew(struct spool);
        *s = (struct spool){ .refs = 1, .loop = l, .fd = fd, .max = max };
        list_init(&s->readers);
        *ret = s;
        return 0;
}

void spool_unref(struct spool *s)
{
        if (!s || --s->refs > 0)
                return;
        ASSERT(list_empty(&s->readers));
        (void) fd_close(s->fd);
        free(s);
}

static void notify_readers(struct spool *s)
{
        list_for_each (n, &s->readers)
                net_task_queue(s->loop, &container_of(n, struct spool_reader, _node)->task);
}

/* Bytes that cannot be written still advance the offsets, so that a reader never takes old bytes of the
 * ring for them. */
void spool_add(struct spool *s, struct str bytes)
{
        while (bytes.n > 0) {
                uint64_t at = s->end % s->max;
                size_t n = (size_t) MIN_OF((uint64_t) bytes.n, s->max - at);
                ssize_t written = pwrite(s->fd, bytes.p, n, (off_t) at);

                if (written <= 0) {
                        s->start = s->end + n;
                        written = (ssize_t) n;
                }
                s->end += (uint64_t) written;
                bytes = str_skip(bytes, (size_t) written);
        }
        if (s->end - s->start > s->max)
                s->start = s->end - s->max;
        notify_readers(s);
}

void spool_finish(struct spool *s)
{
        s->finished = true;
        notify_readers(s);
}

bool spool_finished(const struct spool *s)
{
        return s->finished;
}

uint64_t spool_start(const struct spool *s)
{
        return s->start;
}

uint64_t spool_end(const struct spool *s)
{
        return s->end;
}

ssize_t spool_read(const struct spool *s, uint64_t at, char *p, size_t n)
{
        uint64_t pos = at % s->max;
        ssize_t got;

        ASSERT(at >= s->start && at < s->end);
        n = (size_t) MIN_OF((uint64_t) n, MIN_OF(s->end - at, s->max - pos));
        got = pread(s->fd, p, n, (off_t) pos);
        return got < 0 ? -errno : got == 0 ? -EIO : got;
}

void spool_wait(struct spool *s, struct spool_reader *r, net_task_fn *more)
{
        r->spool = s;
        net_task_init(&r->task, more);
        list_append(&s->readers, &r->_node);
}

void spool_unwait(struct spool_reader *r)
{
        if (!r->spool)
                return;
        list_remove(&r->_node);
        net_task_cancel(&r->task);
        r->spool = NULL;
}

/* --- as an HTTP response --- */

struct spool_response {
        struct http_req *req;
        struct spool *spool;
        struct spool_reader reader;
        uint64_t at, end;
        bool follow;
};

static void response_free(struct spool_response *a)
{
        struct http_req *req = a->req;

        spool_unwait(&a->reader);
        spool_unref(a->spool);
        http_req_set_hooks(req, NULL, NULL);
        http_req_unref(req); /* `a` is in its arena */
}

/* Sends as much as the client accepts. */
static void send_more(struct http_req *req)
{
        scoped(freep) char *piece = NULL;
        struct spool_response *a = req->data;
        uint64_t start = spool_start(a->spool);

        /* A finished spool may still grow, by what a command left running. Followers of the command
         * do not get that. */
        if (a->follow) {
                a->end = spool_end(a->spool);
                a->follow = !spool_finished(a->spool);
        }
        /* The ring has overtaken the client. */
        if (a->at < start && req->res.length == HTTP_LENGTH_UNKNOWN && http_stream_writable(req)) {
                char text[64];

                start = MIN_OF(start, a->end);
                (void) snprintf(text, sizeof(text), "\n[%llu bytes of output dropped]\n",
                                (unsigned long long) (start - a->at));
                http_stream_write(req, str_from(text));
                a->at = start;
        }
        while (a->at < a->end && http_stream_writable(req)) {
                ssize_t n = -ESTALE;

                if (!piece)
                        piece = xcalloc(1, PIECE);
                if (a->at >= spool_start(a->spool))
                        n = spool_read(a->spool, a->at, piece,
                                       (size_t) MIN_OF(a->end - a->at, (uint64_t) PIECE));
                if (n < 0) {
                        http_stream_fail(req);
                        response_free(a);
                        return;
                }
                http_stream_write(req, str_of(piece, (size_t) n));
                a->at += (uint64_t) n;
        }
        if (a->at == a->end && !a->follow) {
                http_stream_end(req);
                response_free(a);
        }
}

static void response_abort(struct http_req *req, int reason)
{
        (void) reason;
        response_free(req->data);
}

static void response_more(struct net_task *t)
{
        struct spool_response *a = container_of(t, struct spool_response, reader.task);

        if (http_stream_writable(a->req))
                send_more(a->req);
}

static void add_number(struct http_req *req, struct str name, uint64_t v)
{
        char text[24];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) v);
        (void) http_res_header(req, name, str_from(text));
}

void spool_reply(struct http_req *req, struct spool *s)
{
        static const struct http_hooks hooks = { .drain = send_more, .abort = response_abort };
        struct spool_response *a = arena_new(&req->arena, struct spool_response);
        uint64_t cursor = 0;
        struct str text;

        if (!a) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "out of memory");
                return;
        }
        if (http_req_query(req, "cursor", &text) != 1 || parse_u64(text, &cursor) < 0)
                cursor = 0;
        *a = (struct spool_response){ .req = http_req_ref(req),
                                      .spool = s,
                                      .follow = query_is_true(req, "follow") };
        s->refs++;
        a->end = spool_end(s);
        a->at = MIN_OF(MAX_OF(cursor, spool_start(s)), a->end);
        if (a->at > cursor)
                add_number(req, STR("EXECD-COMMANDS-DROPPED"), a->at - cursor);
        if (!a->follow)
                add_number(req, STR("EXECD-COMMANDS-TAIL-CURSOR"), a->end);
        http_res_header_const(req, STR("Content-Type"), STR("text/plain; charset=utf-8"));
        /* An empty response is chunked: old JavaScript clients take "Content-Length: 0" for none. */
        http_stream_begin(req, 200,
                          a->follow || a->at == a->end ? HTTP_LENGTH_UNKNOWN : a->end - a->at);
        if (req->method == METHOD_HEAD) {
                http_stream_end(req);
                response_free(a);
                return;
        }
        http_req_set_hooks(req, &hooks, a);
        if (a->follow)
                spool_wait(s, &a->reader, response_more);
        send_more(req);
}
