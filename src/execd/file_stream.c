/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_stream.h"

#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/problem.h"
#include "http/file.h"
#include "os/fd.h"

#define PORTION (64 * KiB)
#define SLICE   (2 * USEC_PER_MSEC)

struct file_stream {
        struct http_req *req;
        struct net_task task;
        struct str path;
        int fd;
        bool ended; /* nothing more is wanted of the file */

        /* --- lines --- */
        bool by_lines;
        uint64_t line;  /* the one we are in, from 1 on */
        uint64_t first; /* wanted, both included */
        uint64_t last;
        bool started; /* the line has a byte already */
        bool any;     /* a line was put out before this one */
        bool held_cr; /* a carriage return that may be at the end of its line */
};

/* --- which bytes of a portion go out --- */

static void add_line_part(struct file_stream *s, struct str part, bool ends, struct buf *out)
{
        bool cr = part.n > 0 && part.p[part.n - 1] == '\r';

        if (!s->started && s->any)
                buf_add_char(out, '\n');
        s->any = true;
        if (part.n > 0 && s->held_cr)
                buf_add_char(out, '\r');
        if (part.n > 0)
                s->held_cr = cr;
        buf_add(out, part.p, part.n - cr);
        if (ends)
                s->held_cr = false;
}

/* Takes lines off the portion. A line is there when it has a byte or an end. */
static void add_lines(struct file_stream *s, struct str bytes, struct buf *out)
{
        while (bytes.n > 0 && s->line <= s->last) {
                ssize_t lf = str_find(bytes, '\n');
                size_t n = lf < 0 ? bytes.n : (size_t) lf;

                if (s->line >= s->first)
                        add_line_part(s, str_of(bytes.p, n), lf >= 0, out);
                s->started = lf < 0;
                s->line += lf >= 0;
                bytes = str_skip(bytes, n + (lf >= 0));
        }
        s->ended = s->line > s->last;
}

/* --- the flow --- */

static void stream_free(struct file_stream *s)
{
        struct http_req *req = s->req;

        net_task_cancel(&s->task);
        http_req_set_hooks(req, NULL, NULL);
        s->fd = fd_close(s->fd);
        free(s);
        http_req_unref(req);
}

static void begin(struct file_stream *s, uint64_t length)
{
        if (s->by_lines) {
                http_res_header_const(s->req, STR("Content-Type"),
                                      STR("text/plain; charset=utf-8"));
        } else {
                http_res_header_const(s->req, STR("Content-Type"), STR("application/octet-stream"));
                (void) http_res_attachment(s->req, s->path);
        }
        http_stream_begin(s->req, 200, length);
}

/* Reads a portion and writes what is wanted of it; a negative errno of the reading. */
static int pass_on(struct file_stream *s)
{
        scoped(buf_done) struct buf out;
        char portion[PORTION];
        ssize_t n = read(s->fd, portion, sizeof(portion));

        buf_init(&out, 2 * PORTION);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n == 0) {
                s->ended = true;
                return 0;
        }
        if (s->req->res.state == HTTP_RES_NONE)
                begin(s, HTTP_LENGTH_UNKNOWN);
        if (!s->by_lines) {
                http_stream_write(s->req, str_of(portion, (size_t) n));
                return 0;
        }
        add_lines(s, str_of(portion, (size_t) n), &out);
        if (out.n > 0)
                http_stream_write(s->req, buf_str(&out));
        return 0;
}

static void give_up(struct file_stream *s, int r)
{
        if (s->req->res.state == HTTP_RES_NONE)
                problem_reply_file(s->req, r, "read", s->path);
        else
                http_stream_fail(s->req);
        stream_free(s);
}

static void run_slice(struct file_stream *s)
{
        const struct clock *clock = agent_of(s->req)->clock;
        usec_t end = usec_add(clock_mono(clock), SLICE);
        int r = 0;

        while (r == 0 && !s->ended) {
                if (s->req->res.state == HTTP_RES_STREAM && !http_stream_writable(s->req))
                        return; /* drain goes on */
                if (clock_mono(clock) >= end) {
                        net_task_queue(agent_of(s->req)->loop, &s->task);
                        return;
                }
                r = pass_on(s);
        }
        if (r < 0) {
                give_up(s, r);
                return;
        }
        if (s->req->res.state == HTTP_RES_NONE)
                begin(s, 0);
        http_stream_end(s->req);
        stream_free(s);
}

static void run_task(struct net_task *t)
{
        run_slice(container_of(t, struct file_stream, task));
}

static void stream_drain(struct http_req *req)
{
        run_slice(req->data);
}

static void stream_abort(struct http_req *req, int reason)
{
        (void) reason;
        stream_free(req->data);
}

static struct file_stream *stream_new(struct http_req *req, int fd, struct str path)
{
        static const struct http_hooks hooks = { .drain = stream_drain, .abort = stream_abort };
        struct file_stream *s = xnew(struct file_stream);

        s->req = http_req_ref(req);
        s->path = path;
        s->fd = fd;
        net_task_init(&s->task, run_task);
        http_req_set_hooks(req, &hooks, s);
        return s;
}

void file_stream_lines(struct http_req *req, int fd, struct str path,
                       const struct file_lines *lines)
{
        struct file_stream *s = stream_new(req, fd, path);

        s->by_lines = true;
        s->line = 1;
        s->first = lines->first;
        s->last = lines->count > UINT64_MAX - lines->first ? UINT64_MAX
                                                           : lines->first + (lines->count - 1);
        run_slice(s);
}

void file_stream_bytes(struct http_req *req, int fd, struct str path)
{
        run_slice(stream_new(req, fd, path));
}
