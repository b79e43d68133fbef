/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* Connections accepted per iteration, so that requests are served in between. */
#define ACCEPT_BATCH 64

static void take_spare(struct net_listener *l)
{
        l->_spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (l->_spare < 0)
                l->_spare = -EBADF;
}

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct net_listener *l = container_of(h, struct net_listener, _poll);
        const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

        (void) status;
        (void) events;
        for (int i = 0; i < ACCEPT_BATCH && !l->_closing; i++) {
                struct sock_addr peer = { .len = sizeof(peer.ss) };
                int one = 1, fd = accept4(l->fd, (struct sockaddr *) &peer.ss, &peer.len, flags);

                if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
                        l->_spare = fd_close(l->_spare);
                        (void) fd_close(accept4(l->fd, NULL, NULL, flags));
                        take_spare(l);
                        l->refused++;
                        continue;
                }
                if (fd < 0 && errno == EAGAIN)
                        return;
                /* ECONNABORTED and the network errors that Linux passes on here belong to that one
                 * connection, not to the listener. */
                if (fd < 0)
                        continue;
                if (!sock_addr_is_unix(&l->addr))
                        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                l->ops->accepted(l, fd, &peer);
        }
}

/* The file of a unix address, or false. Another process may have put its own there since. */
static bool stat_socket_file(const struct net_listener *l, struct stat *ret)
{
        const struct sockaddr_un *un = (const struct sockaddr_un *) &l->addr.ss;

        return sock_addr_is_unix(&l->addr) && un->sun_path[0] != 0 && lstat(un->sun_path, ret) == 0;
}

int listener_open(struct net_listener *l, struct net_loop *loop, int fd,
                  const struct net_listener_ops *ops)
{
        struct stat st;
        int r;

        *l = (struct net_listener){ .ops = ops, .loop = loop, .fd = fd };
        take_spare(l);
        sock_keep_alive(fd);
        r = sock_local_addr(fd, &l->addr);
        if (r == 0)
                r = uv_poll_init(&loop->uv, &l->_poll, fd);
        if (r < 0) {
                l->fd = fd_close(l->fd);
                l->_spare = fd_close(l->_spare);
                l->_closing = true;
                return r;
        }
        if (stat_socket_file(l, &st)) {
                l->_dev = st.st_dev;
                l->_ino = st.st_ino;
        }
        return uv_poll_start(&l->_poll, UV_READABLE, poll_cb);
}

static void poll_closed(uv_handle_t *h)
{
        struct net_listener *l = container_of((uv_poll_t *) h, struct net_listener, _poll);

        l->ops->closed(l);
}

void listener_close(struct net_listener *l)
{
        struct stat st;

        if (l->_closing)
                return;
        l->_closing = true;
        if (stat_socket_file(l, &st) && st.st_dev == l->_dev && st.st_ino == l->_ino)
                (void) unlink(((const struct sockaddr_un *) &l->addr.ss)->sun_path);
        uv_close((uv_handle_t *) &l->_poll, poll_closed);
        l->fd = fd_close(l->fd);
        l->_spare = fd_close(l->_spare);
}
