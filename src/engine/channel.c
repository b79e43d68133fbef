/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "os/fd.h"
#include "os/fd_pass.h"

#define HEAD 4

/* Read in one go; a frame that is not complete stays, and the rest is read behind it. */
#define PORTION (64 * KiB)

struct frame {
        struct list node;
        size_t n, sent; /* head included */
        int fd;
        char bytes[];
};

static void run_flush(struct net_task *t);
static void on_poll(uv_poll_t *poll, int status, int events);

static void frame_free(struct channel *c, struct frame *f)
{
        list_remove(&f->node);
        c->_out_size -= f->n;
        (void) fd_close(f->fd);
        wipe(f->bytes, f->n);
        free(f);
}

/* A side that goes while something is on its way to it shows as one of these. EBADF is libuv's word for a
 * socket that has nothing but an error to tell. */
static bool is_gone(int r)
{
        return r == -EPIPE || r == -ECONNRESET || r == -EBADF;
}

static void fail(struct channel *c, int r)
{
        if (c->_over || c->_closing)
                return;
        c->_over = true;
        c->ops->ended(c, is_gone(r) ? 0 : r);
}

static void watch(struct channel *c)
{
        unsigned want = UV_READABLE | (list_empty(&c->_out) ? 0 : UV_WRITABLE);

        if (c->_closing || c->_over)
                return;
        if (want != c->_interest && uv_poll_start(&c->_poll, (int) want, on_poll) == 0)
                c->_interest = want;
}

/* --- out --- */

static void flush(struct channel *c)
{
        if (c->_over || c->_closing)
                return;
        if (c->_too_much)
                return fail(c, -ENOBUFS);
        list_for_each (node, &c->_out) {
                struct frame *f = container_of(node, struct frame, node);
                ssize_t n = fd_pass_send(c->fd, str_of(f->bytes + f->sent, f->n - f->sent), &f->fd,
                                         f->fd >= 0, MSG_DONTWAIT);

                if (n == -EAGAIN)
                        break;
                if (n < 0)
                        return fail(c, (int) n);
                f->fd = fd_close(f->fd);
                f->sent += (size_t) n;
                if (f->sent < f->n)
                        break;
                frame_free(c, f);
        }
        watch(c);
}

static void run_flush(struct net_task *t)
{
        flush(container_of(t, struct channel, _flush));
}

void channel_send(struct channel *c, struct str text, int fd)
{
        struct frame *f;

        if (c->_closing || c->_over) {
                (void) fd_close(fd);
                return;
        }
        ASSERT(text.n <= c->frame_max);
        f = xcalloc(1, sizeof(*f) + HEAD + text.n);
        f->n = HEAD + text.n;
        f->fd = fd;
        for (size_t i = 0; i < HEAD; i++)
                f->bytes[i] = (char) (text.n >> (8 * i) & 0xff);
        memcpy(f->bytes + HEAD, text.p, text.n);
        list_append(&c->_out, &f->node);
        c->_out_size += f->n;
        c->_too_much |= c->_out_size > CHANNEL_OUT_MAX;
        net_task_queue(c->loop, &c->_flush);
}

/* --- in --- */

static int take_fds(struct channel *c, const struct fd_pass_msg *m)
{
        int r = m->cut ? -EPROTO : 0;

        for (size_t i = 0; i < m->n_fds; i++) {
                if (c->may_receive_fds && c->_n_fds < CHANNEL_FDS_MAX)
                        c->_fds[c->_n_fds++] = m->fds[i];
                else
                        r = -EPROTO, (void) fd_close(m->fds[i]);
        }
        return r;
}

static ssize_t receive(struct channel *c)
{
        char *p = buf_reserve(&c->_in, MIN_OF(PORTION, buf_room(&c->_in)));
        int fds[CHANNEL_FDS_MAX];
        struct fd_pass_msg m = { .p = p,
                                 .size = MIN_OF(PORTION, buf_room(&c->_in)),
                                 .fds = fds,
                                 .fds_max = CHANNEL_FDS_MAX };
        ssize_t n;

        if (!p)
                return -ENOMEM;
        n = fd_pass_receive(c->fd, &m, MSG_DONTWAIT);
        if (n < 0)
                return n;
        buf_advance(&c->_in, (size_t) n);
        return take_fds(c, &m) < 0 ? -EPROTO : n;
}

/* The length of the first frame, or 0 if it is not known yet. */
static int frame_size(const struct channel *c, size_t *ret)
{
        const unsigned char *p = (const unsigned char *) buf_str(&c->_in).p;

        *ret = 0;
        if (c->_in.n < HEAD)
                return 0;
        for (size_t i = 0; i < HEAD; i++)
                *ret |= (size_t) p[i] << (8 * i);
        return *ret > c->frame_max || *ret == 0 ? -EPROTO : 0;
}

static void deliver(struct channel *c)
{
        while (!c->_closing && !c->_over) {
                size_t n;
                int r = frame_size(c, &n);

                if (r < 0)
                        return fail(c, r);
                if (n == 0 || c->_in.n < HEAD + n)
                        return;
                c->ops->frame(c, str_of(buf_str(&c->_in).p + HEAD, n));
                if (c->_closing)
                        return;
                wipe(c->_in.p + c->_in.start, HEAD + n);
                buf_consume(&c->_in, HEAD + n);
                buf_release(&c->_in);
        }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct channel *c = container_of(poll, struct channel, _poll);
        ssize_t n;

        if (status < 0)
                return fail(c, status);
        if (events & UV_WRITABLE)
                flush(c);
        if (!(events & UV_READABLE) || c->_closing || c->_over)
                return;
        n = receive(c);
        if (n == -EAGAIN || n == -EINTR)
                return;
        if (n <= 0)
                return fail(c, (int) n);
        deliver(c);
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
        c->_closing = c->_over = c->_too_much = false;
        c->_interest = 0;
        c->_out_size = c->_n_fds = 0;
        list_init(&c->_out);
        net_task_init(&c->_flush, run_flush);
        buf_init(&c->_in, HEAD + c->frame_max);
        buf_mark_secret(&c->_in);
        watch(c);
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
        for (int fd; (fd = channel_take_fd(c)) >= 0;)
                (void) fd_close(fd);
        uv_close((uv_handle_t *) &c->_poll, poll_closed);
}
