/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/socket.h"

/*
 * Theory of operation. The owner switches interest in reading; interest in writing is on only while the
 * socket is full. libuv needs two system calls for a change of interest, so the ordinary exchange (read
 * a request, write its response) changes none: the flush task writes the response, which nearly always
 * fits.
 */

static void poll_cb(uv_poll_t *h, int status, int events);

static void update_interest(struct net_stream *s)
{
        uint8_t want = 0;

        if (s->_closing)
                return;
        if (s->reading && !s->eof && !s->_connecting)
                want |= UV_READABLE;
        if (s->_blocked || s->_connecting)
                want |= UV_WRITABLE;
        if (!s->reading && !s->eof && !s->hung && !s->_connecting && s->ops->hangup)
                want |= UV_DISCONNECT;
        if (want == s->_interest)
                return;
        s->_interest = want;
        if (want)
                (void) uv_poll_start(&s->_poll, want, poll_cb);
        else
                (void) uv_poll_stop(&s->_poll);
}

static void stream_fail(struct net_stream *s, int r)
{
        if (!s->_closing)
                s->ops->error(s, r);
}

/* --- output --- */

/* Sends until the socket is full, the file is complete, or the portion of this iteration is sent:
 * *ret_full distinguishes the first from the last. A short count alone does not mean that the socket is
 * full, it may come from the end of a pipe buffer or a page that had to be read; only EAGAIN does. */
static int send_file(struct net_stream *s, bool *ret_full)
{
        size_t left = (size_t) MIN_OF(s->_file_left, (uint64_t) STREAM_FILE_PORTION);

        while (left > 0) {
                off_t pos = (off_t) s->_file_pos;
                ssize_t n = -1;

                if (!s->_file_copied) {
                        n = sendfile(s->fd, s->_file, &pos, left);
                        s->_file_copied =
                                n < 0
                                && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP);
                }
                /* Some file systems have no sendfile (some FUSE, /proc, overlay on old kernels). The
                 * loop's read buffer is free here: it is filled and consumed within one input
                 * callback, and no flush happens inside of one. Bytes that the socket does not take
                 * are read again. */
                if (s->_file_copied) {
                        n = pread(s->_file, s->loop->read_buf, MIN_OF(left, (size_t) NET_READ_SIZE),
                                  pos);
                        if (n > 0)
                                n = send(s->fd, s->loop->read_buf, (size_t) n,
                                         MSG_NOSIGNAL | MSG_DONTWAIT);
                }
                *ret_full = n < 0 && errno == EAGAIN;
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
                if (n == 0)
                        return -EIO;
                s->bytes_out += (uint64_t) n;
                s->_file_pos += (uint64_t) n;
                s->_file_left -= (uint64_t) n;
                left -= (size_t) n;
        }
        return s->_file_left == 0;
}

/* Everything was sent (r is 1), or the socket has taken a part (0), or it has failed. */
static void end_flush(struct net_stream *s, int r, bool full)
{
        if (r < 0) {
                stream_fail(s, r);
                return;
        }
        if (r == 0 && !full)
                net_task_queue(s->loop, &s->_flush);
        s->_blocked = r == 0 && full;
        update_interest(s);
        if (r == 0) {
                if (s->ops->stalled)
                        s->ops->stalled(s);
                return;
        }

        buf_release(&s->out);
        if (s->_shut)
                (void) shutdown(s->fd, SHUT_WR);
        s->ops->drained(s);
}

/* The task `_flush`; also called when the socket has become writable. */
static void flush(struct net_task *t)
{
        struct net_stream *s = container_of(t, struct net_stream, _flush);
        struct str head = buf_str(&s->out), tail = s->_borrowed;
        struct iovec iov[2] = { { (char *) head.p, head.n }, { (char *) tail.p, tail.n } };
        struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
        /* With a file after it, the kernel joins the head to its first bytes. */
        int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (s->_file_left ? MSG_MORE : 0);
        bool full = true;
        ssize_t n;
        int r = 1;

        if (s->_closing || s->_connecting)
                return;
        if (buf_failed(&s->out)) {
                stream_fail(s, -ENOBUFS);
                return;
        }
        if (stream_pending(s) == 0 && !s->_shut)
                return;

        if (head.n + tail.n > 0) {
                /* Nearly always there is one piece, for which send is cheaper than sendmsg. */
                n = tail.n == 0 ? send(s->fd, head.p, head.n, flags) : sendmsg(s->fd, &msg, flags);
                if (n < 0)
                        return end_flush(s, errno == EAGAIN || errno == EINTR ? 0 : -errno, full);
                s->bytes_out += (uint64_t) n;
                buf_consume(&s->out, MIN_OF((size_t) n, head.n));
                s->_borrowed = str_skip(tail, (size_t) n - MIN_OF((size_t) n, head.n));
                r = (size_t) n == head.n + tail.n;
        }
        if (r == 1 && s->_file_left > 0)
                r = send_file(s, &full);
        end_flush(s, r, full);
}

void stream_queue_flush(struct net_stream *s)
{
        if (!s->_blocked && !s->_closing)
                net_task_queue(s->loop, &s->_flush);
}

void stream_queue(struct net_stream *s, struct str bytes)
{
        ASSERT(s->_borrowed.n == 0 && s->_file_left == 0);
        buf_add_str(&s->out, bytes);
        stream_queue_flush(s);
}

void stream_queue_borrowed(struct net_stream *s, struct str bytes)
{
        ASSERT(s->_borrowed.n == 0 && s->_file_left == 0);
        s->_borrowed = bytes;
        stream_queue_flush(s);
}

void stream_queue_file(struct net_stream *s, int fd, uint64_t pos, uint64_t n)
{
        ASSERT(s->_borrowed.n == 0 && s->_file_left == 0);
        s->_file = fd;
        s->_file_pos = pos;
        s->_file_left = n;
        s->_file_copied = false;
        stream_queue_flush(s);
}

void stream_shutdown(struct net_stream *s)
{
        s->_shut = true;
        stream_queue_flush(s);
}

void stream_drop_output(struct net_stream *s)
{
        net_task_cancel(&s->_flush);
        buf_done(&s->out);
        s->_borrowed = STR_NULL;
        s->_file_left = 0;
        s->_shut = s->_blocked = false;
        update_interest(s);
}

/* --- input --- */

void stream_set_reading(struct net_stream *s, bool reading)
{
        s->reading = reading;
        update_interest(s);
}

/* --- events --- */

static void finish_connect(struct net_stream *s)
{
        int r = sock_error(s->fd);

        if (r < 0) {
                stream_fail(s, r);
                return;
        }
        s->_connecting = false;
        update_interest(s);
        if (s->ops->connected)
                s->ops->connected(s);
        flush(&s->_flush);
}

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct net_stream *s = container_of(h, struct net_stream, _poll);
        ssize_t n;

        if (status < 0) {
                /* libuv stops the handle on EPOLLERR and passes no reason. */
                int r = sock_error(s->fd);

                s->_interest = 0;
                stream_fail(s, r < 0 ? r : -ECONNRESET);
                return;
        }
        if (s->_connecting) {
                finish_connect(s);
                return;
        }
        if (events & UV_WRITABLE)
                flush(&s->_flush);
        if (s->_closing)
                return; /* by the flush, which may have stopped the input, too */
        if ((events & UV_DISCONNECT) && !s->reading) {
                s->hung = true; /* otherwise the event is repeated for ever */
                update_interest(s);
                s->ops->hangup(s);
                return;
        }
        if (!(events & UV_READABLE) || !s->reading)
                return;
        n = recv(s->fd, s->loop->read_buf, NET_READ_SIZE, MSG_DONTWAIT);
        if (n > 0) {
                s->bytes_in += (uint64_t) n;
                s->ops->data(s, s->loop->read_buf, (size_t) n);
        } else if (n == 0) {
                s->eof = true;
                update_interest(s);
                s->ops->eof(s);
        } else if (errno != EAGAIN && errno != EINTR) {
                stream_fail(s, -errno);
        }
}

/* --- life cycle --- */

int stream_open(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                const struct net_stream_ops *ops)
{
        int r;

        *s = (struct net_stream){ .ops = ops, .loop = l, .fd = fd, ._file = -EBADF };
        buf_init(&s->out, out_max);
        net_task_init(&s->_flush, flush);
        r = uv_poll_init(&l->uv, &s->_poll, fd);
        if (r < 0) {
                s->fd = fd_close(s->fd);
                s->_closing = true;
        }
        return r;
}

int stream_open_connecting(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                           const struct net_stream_ops *ops)
{
        int r = stream_open(s, l, fd, out_max, ops);

        if (r < 0)
                return r;
        s->_connecting = true;
        update_interest(s);
        return 0;
}

static void poll_closed(uv_handle_t *h)
{
        struct net_stream *s = container_of((uv_poll_t *) h, struct net_stream, _poll);

        s->loop = NULL;
        s->ops->closed(s);
}

void stream_close(struct net_stream *s)
{
        if (s->_closing)
                return;
        s->_closing = true;
        net_task_cancel(&s->_flush);
        /* libuv removes the descriptor from its epoll set here, so it may be closed right after. */
        uv_close((uv_handle_t *) &s->_poll, poll_closed);
        s->fd = fd_close(s->fd);
        buf_done(&s->out);
        s->_borrowed = STR_NULL;
        s->_file_left = 0;
}

void stream_reset(struct net_stream *s)
{
        const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

        if (!s->_closing)
                (void) setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        stream_close(s);
}
