/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

static void poll_cb(uv_poll_t *h, int status, int events);

static void update(struct net_pipe *p)
{
        bool want = p->reading && !p->ended && !p->_closing;

        if (want == p->_polling || p->_closing)
                return;
        p->_polling = want;
        if (want)
                (void) uv_poll_start(&p->_poll, UV_READABLE, poll_cb);
        else
                (void) uv_poll_stop(&p->_poll);
}

int net_pipe_open(struct net_pipe *p, struct net_loop *l, int fd, const struct net_pipe_ops *ops)
{
        int r;

        *p = (struct net_pipe){ .ops = ops, .loop = l, .fd = fd };
        /* libuv makes it non-blocking. */
        r = uv_poll_init(&l->uv, &p->_poll, fd);
        if (r < 0)
                p->fd = fd_close(p->fd);
        return r;
}

static void handle_closed(uv_handle_t *h)
{
        struct net_pipe *p = container_of((uv_poll_t *) h, struct net_pipe, _poll);

        p->ops->closed(p);
}

void net_pipe_close(struct net_pipe *p)
{
        if (p->_closing)
                return;
        p->_closing = true;
        uv_close((uv_handle_t *) &p->_poll, handle_closed);
        p->fd = fd_close(p->fd);
}

void net_pipe_resume(struct net_pipe *p)
{
        p->reading = true;
        update(p);
}

void net_pipe_pause(struct net_pipe *p)
{
        p->reading = false;
        update(p);
}

size_t net_pipe_pending(const struct net_pipe *p)
{
        int n = 0;

        return !p->ended && ioctl(p->fd, FIONREAD, &n) == 0 && n > 0 ? (size_t) n : 0;
}

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct net_pipe *p = container_of(h, struct net_pipe, _poll);
        ssize_t n;

        (void) status;
        (void) events;
        if (!p->reading || p->ended || p->_closing)
                return;
        n = read(p->fd, p->loop->read_buf, NET_READ_SIZE);
        if (n > 0) {
                p->bytes_in += (uint64_t) n;
                p->ops->data(p, p->loop->read_buf, (size_t) n);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                int r = n < 0 ? -errno : 0;

                p->ended = true;
                update(p);
                p->ops->ended(p, r);
        }
}

bool net_pipe_read_now(struct net_pipe *p)
{
        uint64_t before = p->bytes_in;

        poll_cb(&p->_poll, 0, UV_READABLE);
        return p->bytes_in > before;
}
