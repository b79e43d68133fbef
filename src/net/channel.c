/* SPDX-License-Identifier: Apache-2.0 */
#include "net/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "os/fd.h"

/* Read at a time; an incomplete frame stays in the buffer and the remainder is read behind it. */
#define PORTION (64 * KiB)

/* Packets delivered per iteration of the loop. */
#define PACKETS_MAX 32

/* Frames written by one system call. */
#define GATHER_MAX 32

#define HEAD 4 /* the length before a frame on a stream */

struct frame {
        struct list node;
        size_t n, sent; /* head included */
        int fd;
        unsigned char bytes[];
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void frame_free(struct channel *c, struct frame *f)
{
        list_remove(&f->node);
        c->_out_size -= f->n;
        (void) fd_close(f->fd);
        wipe(f->bytes, f->n);
        free(f);
}

static void channel_fail(struct channel *c, int r)
{
        /* A peer that goes while output is on its way shows as one of these. libuv reports EBADF for a
         * socket that has nothing but an error. */
        bool gone = r == -EPIPE || r == -ECONNRESET || r == -EBADF;

        if (c->_over || c->_closing)
                return;
        c->_over = true;
        c->ops->ended(c, gone ? 0 : r);
}

static void update_interest(struct channel *c)
{
        unsigned want = UV_READABLE | (list_empty(&c->_out) ? 0 : UV_WRITABLE);

        if (c->_closing || c->_over)
                return;
        if (want != c->_interest && uv_poll_start(&c->_poll, (int) want, on_poll) == 0)
                c->_interest = want;
}

/* --- output --- */

/* The frames that one system call may write. */
static size_t gather_frames(struct channel *c, struct iovec *iov)
{
        size_t n = 0;

        list_for_each (node, &c->_out) {
                struct frame *f = container_of(node, struct frame, node);

                if (f->fd >= 0 || n == GATHER_MAX)
                        break;
                iov[n++] = (struct iovec){ f->bytes + f->sent, f->n - f->sent };
        }
        return n;
}

static void drop_sent(struct channel *c, size_t n)
{
        list_for_each (node, &c->_out) {
                struct frame *f = container_of(node, struct frame, node);
                size_t part = MIN_OF(n, f->n - f->sent);

                f->sent += part;
                n -= part;
                if (f->sent < f->n)
                        return;
                frame_free(c, f);
        }
}

/* The task `_flush`; also called when the socket has become writable. Frames without descriptors go
 * together in one call. A frame with one is sent alone: the descriptor belongs to its first byte. */
static void flush(struct net_task *t)
{
        struct channel *c = container_of(t, struct channel, _flush);
        struct iovec iov[GATHER_MAX];
        struct msghdr m = { .msg_iov = iov };
        ssize_t n;

        if (c->_over || c->_closing)
                return;
        if (c->_too_much)
                return channel_fail(c, -ENOBUFS);
        while (!list_empty(&c->_out)) {
                struct frame *f = container_of(c->_out.next, struct frame, node);

                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed frame has left the list */
                if (f->fd >= 0 || c->packets) {
                        n = fd_pass_send(c->fd, str_of((char *) f->bytes + f->sent, f->n - f->sent),
                                         &f->fd, f->fd >= 0, MSG_DONTWAIT);
                        if (n >= 0)
                                f->fd = fd_close(f->fd);
                } else {
                        m.msg_iovlen = gather_frames(c, iov);
                        n = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
                        n = n < 0 ? -errno : n;
                }
                if (n == -EAGAIN || n == -EINTR)
                        return update_interest(c);
                if (n < 0)
                        return channel_fail(c, (int) n);
                drop_sent(c, (size_t) n);
        }
        update_interest(c);
        if (c->ops->drained)
                c->ops->drained(c);
}

bool channel_has_room(const struct channel *c, size_t n)
{
        if (c->packets)
                return list_empty(&c->_out);
        return HEAD + n <= c->out_max - MIN_OF(c->_out_size, c->out_max);
}

void channel_send(struct channel *c, struct str bytes, int fd)
{
        size_t head = c->packets ? 0 : HEAD;
        struct frame *f;

        if (c->_closing || c->_over) {
                (void) fd_close(fd);
                return;
        }
        ASSERT(bytes.n > 0 && bytes.n <= c->frame_max);
        f = xcalloc(1, sizeof(*f) + head + bytes.n);
        f->n = head + bytes.n;
        f->fd = fd;
        for (size_t i = 0; i < head; i++)
                f->bytes[i] = (unsigned char) (bytes.n >> (8 * i) & 0xff);
        memcpy(f->bytes + head, bytes.p, bytes.n);
        list_append(&c->_out, &f->node);
        c->_out_size += f->n;
        c->_too_much |= c->_out_size > c->out_max;
        net_task_queue(c->loop, &c->_flush);
}

void channel_drop_output(struct channel *c)
{
        ASSERT(c->packets || list_empty(&c->_out));
        list_for_each (n, &c->_out)
                frame_free(c, container_of(n, struct frame, node));
        c->_too_much = false;
}

/* --- input --- */

static void close_fds(struct channel *c)
{
        for (int fd; (fd = channel_take_fd(c)) >= 0;)
                (void) fd_close(fd);
}

static ssize_t receive(struct channel *c)
{
        size_t size = c->packets ? c->frame_max + 1 : MIN_OF(PORTION, buf_room(&c->_in));
        int fds[CHANNEL_FDS_MAX];
        struct fd_pass_msg m = { .p = buf_reserve(&c->_in, size),
                                 .size = size,
                                 .fds = fds,
                                 .fds_max = CHANNEL_FDS_MAX };
        ssize_t n;

        if (!m.p)
                return -ENOMEM;
        n = fd_pass_receive(c->fd, &m, MSG_DONTWAIT);
        if (n < 0)
                return n;
        buf_advance(&c->_in, (size_t) n);
        /* Too few descriptors are the receiver's problem on a packet socket; on a stream it is unknown
         * which frame lacks one. */
        if (m.cut && !c->packets)
                n = -EPROTO;
        for (size_t i = 0; i < m.n_fds; i++) {
                if (c->may_receive_fds && c->_n_fds < CHANNEL_FDS_MAX) {
                        c->_fds[c->_n_fds++] = fds[i];
                } else {
                        (void) fd_close(fds[i]);
                        n = -EPROTO;
                }
        }
        return n;
}

static void deliver_frames(struct channel *c)
{
        while (!c->_closing && !c->_over && c->_in.n >= HEAD) {
                struct str in = buf_str(&c->_in);
                const unsigned char *h = (const unsigned char *) in.p;
                size_t n = h[0] | (size_t) h[1] << 8 | (size_t) h[2] << 16 | (size_t) h[3] << 24;

                if (n == 0 || n > c->frame_max)
                        return channel_fail(c, -EPROTO);
                if (in.n < HEAD + n)
                        return;
                c->ops->frame(c, str_of(in.p + HEAD, n));
                if (c->_closing)
                        return;
                wipe(c->_in.p + c->_in.start, HEAD + n);
                buf_consume(&c->_in, HEAD + n);
                buf_release(&c->_in);
        }
}

/* False: nothing more can be read now. */
static bool read_once(struct channel *c)
{
        ssize_t n;

        if (c->_closing || c->_over)
                return false;
        n = receive(c);
        if (n == -EAGAIN || n == -EINTR)
                return n == -EINTR;
        if (n <= 0) {
                channel_fail(c, (int) n);
                return false;
        }
        if (!c->packets) {
                deliver_frames(c);
                return true;
        }
        c->ops->frame(c, buf_str(&c->_in));
        if (!c->_closing) {
                close_fds(c);
                wipe(c->_in.p + c->_in.start, c->_in.n);
                buf_reset(&c->_in);
        }
        return true;
}

void channel_drain(struct channel *c)
{
        while (read_once(c))
                ;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct channel *c = container_of(poll, struct channel, _poll);
        unsigned portions = c->packets ? PACKETS_MAX : 1;

        if (status < 0)
                return channel_fail(c, status);
        if (events & UV_WRITABLE)
                flush(&c->_flush);
        if (events & UV_READABLE)
                while (portions-- > 0 && read_once(c))
                        ;
}

int channel_take_fd(struct channel *c)
{
        int fd;

        if (c->_n_fds == 0)
                return -EBADF;
        fd = c->_fds[0];
        c->_n_fds--;
        memmove(c->_fds, c->_fds + 1, c->_n_fds * sizeof(int));
        return fd;
}

/* --- life cycle --- */

static void poll_closed(uv_handle_t *h)
{
        struct channel *c = container_of((uv_poll_t *) (void *) h, struct channel, _poll);

        c->fd = fd_close(c->fd);
        buf_done(&c->_in);
        c->ops->closed(c);
}

int channel_open(struct channel *c, struct net_loop *l, int fd, const struct channel_ops *ops)
{
        int r = uv_poll_init(&l->uv, &c->_poll, fd);

        if (r < 0) {
                (void) fd_close(fd);
                return r;
        }
        c->ops = ops;
        c->loop = l;
        c->fd = fd;
        c->out_max = c->out_max ? c->out_max : CHANNEL_OUT_MAX;
        c->_closing = c->_over = c->_too_much = false;
        c->_interest = 0;
        c->_out_size = c->_n_fds = 0;
        list_init(&c->_out);
        net_task_init(&c->_flush, flush);
        buf_init(&c->_in, c->packets ? c->frame_max + 1 : HEAD + c->frame_max);
        buf_mark_secret(&c->_in);
        update_interest(c);
        return 0;
}

void channel_close(struct channel *c)
{
        if (c->_closing)
                return;
        c->_closing = true;
        net_task_cancel(&c->_flush);
        list_for_each (n, &c->_out)
                frame_free(c, container_of(n, struct frame, node));
        close_fds(c);
        uv_close((uv_handle_t *) &c->_poll, poll_closed);
}
