/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/command.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "os/fd.h"

/* Has a duplicate of the descriptor: the command may end at any time and close its own. The pipe then has no
 * reader, and writing fails. */
struct feed {
        struct http_req *req;
        struct command *command; /* NULL once it has ended */
        struct command_waiter waiter;
        int fd;
        bool close_after;
        bool body_done;
        bool ended;      /* has replied, or the client is gone */
        struct buf held; /* what the pipe did not accept */
        uv_poll_t poll;
};

static void poll_closed(uv_handle_t *h)
{
        struct feed *f = container_of((uv_poll_t *) h, struct feed, poll);
        struct http_req *req = f->req;

        (void) fd_close(f->fd);
        buf_done(&f->held);
        free(f);
        http_req_unref(req);
}

static void feed_end(struct feed *f)
{
        f->ended = true;
        http_req_set_hooks(f->req, NULL, NULL);
        if (f->command) {
                f->command->stdin_busy = false;
                list_remove(&f->waiter.node);
        }
        uv_close((uv_handle_t *) &f->poll, poll_closed);
}

static void feed_fail(struct feed *f)
{
        http_reply_error(f->req, 409, CODE_RUNTIME_ERROR,
                         "the command does not read its standard input any more");
        feed_end(f);
}

static void feed_succeed(struct feed *f)
{
        if (f->close_after && f->command)
                f->command->stdin_fd = fd_close(f->command->stdin_fd);
        http_reply_empty(f->req, 200);
        feed_end(f);
}

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct feed *f = container_of(h, struct feed, poll);
        struct str all = buf_str(&f->held);
        ssize_t n = write(f->fd, all.p, all.n);

        (void) status;
        (void) events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n < 0) {
                feed_fail(f);
                return;
        }
        buf_consume(&f->held, (size_t) n);
        if (f->held.n > 0)
                return;
        (void) uv_poll_stop(h);
        if (f->body_done)
                feed_succeed(f);
        else
                http_body_resume(f->req);
}

static void feed_body(struct http_req *req, const char *p, size_t n)
{
        struct feed *f = req->data;
        struct str bytes = str_of(p, n);

        /* If something is held, this was read before the pause took effect. */
        while (bytes.n > 0 && f->held.n == 0) {
                ssize_t written = write(f->fd, bytes.p, bytes.n);

                if (written < 0 && errno == EAGAIN)
                        break;
                if (written < 0 && errno != EINTR) {
                        feed_fail(f);
                        return;
                }
                bytes = str_skip(bytes, (size_t) MAX_OF(written, 0));
        }
        if (bytes.n == 0)
                return;
        buf_add_str(&f->held, bytes);
        http_body_pause(req);
        (void) uv_poll_start(&f->poll, UV_WRITABLE, poll_cb);
}

static void feed_body_end(struct http_req *req)
{
        struct feed *f = req->data;

        f->body_done = true;
        if (f->held.n == 0)
                feed_succeed(f);
}

static void feed_abort(struct http_req *req, int reason)
{
        (void) reason;
        feed_end(req->data);
}

static const struct http_hooks feed_hooks = {
        .body = feed_body,
        .body_end = feed_body_end,
        .abort = feed_abort,
};

/* The command has ended; the remainder of the body has no reader. */
static void feed_ended(struct command_waiter *w)
{
        struct feed *f = container_of(w, struct feed, waiter);

        f->command = NULL;
        if (!f->ended)
                feed_fail(f);
}

void command_stdin(struct http_req *req, struct command *c)
{
        struct feed *f;
        int fd;

        if (c->finished || c->stdin_fd < 0 || c->stdin_busy) {
                http_reply_error(req, 409, CODE_RUNTIME_ERROR, "%s",
                                 c->finished     ? "the command has ended"
                                 : c->stdin_busy ? "another request is writing to the command"
                                                 : "the command's standard input is closed; start "
                                                   "it with \"stdin\": true to write to it");
                return;
        }
        fd = fcntl(c->stdin_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
                http_reply_error(req, 503, CODE_UNAVAILABLE, "too many open files; try again");
                return;
        }
        f = xnew(struct feed);
        if (uv_poll_init(&agent_of(req)->loop->uv, &f->poll, fd) < 0) {
                free(f);
                (void) fd_close(fd);
                http_reply_error(req, 503, CODE_UNAVAILABLE,
                                 "too many files are being watched; try again");
                return;
        }
        f->req = http_req_ref(req);
        f->command = c;
        f->fd = fd;
        f->close_after = query_is_true(req, "close");
        buf_init(&f->held, 2 * NET_READ_SIZE);
        f->waiter.ended = feed_ended;
        list_append(&c->waiters, &f->waiter.node);
        c->stdin_busy = true;
        http_req_set_hooks(req, &feed_hooks, f);
        http_body_start(req, HTTP_LENGTH_UNKNOWN);
}
