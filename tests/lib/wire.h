/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_WIRE_H
#define HUTCH_TESTS_LIB_WIRE_H

/*
 * The test as the other side of a socket: a peer sends exact bytes and sees exact bytes, in the
 * same process and on the same loop as what is tested. Nothing sleeps: wire_until turns the loop
 * until a condition holds, and fails the test when it never does.
 */

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/socket.h"
#include "tests/lib/check.h"

#define SOCKET_TIMEOUT_MS (20 * USEC_PER_SEC)
#define WIRE_MAX          (80 * MiB)

struct wire_peer {
        int fd;
        bool eof;
        struct buf in;
};

#define wire_until(loop, cond)                                                   \
        do {                                                                     \
                usec_t give_up_ = clock_mono(&clock_system) + SOCKET_TIMEOUT_MS; \
                while (!(cond)) {                                                \
                        net_loop_run_once((loop), /* wait= */ false);            \
                        if (clock_mono(&clock_system) > give_up_)                \
                                CHECK_FAIL_("never happened: %s", #cond);        \
                }                                                                \
        } while (0)

static inline void wire_settle(struct net_loop *loop)
{
        for (int i = 0; i < 20; i++)
                net_loop_run_once(loop, /* wait= */ false);
}

static inline void wire_take(struct wire_peer *p, int fd)
{
        *p = (struct wire_peer){ .fd = fd };
        buf_init(&p->in, WIRE_MAX);
}

static inline void wire_done(struct wire_peer *p)
{
        p->fd = fd_close(p->fd);
        buf_done(&p->in);
}

static inline void wire_connect(struct wire_peer *p, const struct sock_addr *to)
{
        int fd = -EBADF, r = sock_connect(to, &fd);

        check_true(r == 0 || r == -EINPROGRESS);
        wire_take(p, fd);
}

/* Reads what is there, at most max bytes, and returns whether something was. */
static inline bool wire_read(struct wire_peer *p, size_t max)
{
        char *room = buf_reserve(&p->in, max);
        ssize_t n;

        check_true(room != NULL);
        n = recv(p->fd, room, max, MSG_DONTWAIT);
        if (n > 0)
                buf_advance(&p->in, (size_t) n);
        else if (n == 0 || errno == ECONNRESET)
                p->eof = true;
        return n > 0;
}

static inline bool wire_has(struct wire_peer *p, const char *text)
{
        while (!p->eof && wire_read(p, 64 * KiB))
                ;
        return p->in.n > 0 && memmem(buf_str(&p->in).p, p->in.n, text, strlen(text));
}

static inline bool wire_at_end(struct wire_peer *p)
{
        while (!p->eof && wire_read(p, 64 * KiB))
                ;
        return p->eof;
}

static inline void wire_forget(struct wire_peer *p)
{
        buf_reset(&p->in);
}

/* All of it; the loop turns while the socket is full. */
static inline void wire_send(struct net_loop *loop, struct wire_peer *p, struct str bytes)
{
        while (bytes.n > 0) {
                ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno != EAGAIN && errno != ENOTCONN)
                        return;
                if (n > 0)
                        bytes = str_skip(bytes, (size_t) n);
                else
                        net_loop_run_once(loop, /* wait= */ false);
        }
}

/* The same in pieces of n bytes, the loop turning between them. */
static inline void wire_send_cut(struct net_loop *loop, struct wire_peer *p, struct str bytes,
                                 size_t n)
{
        while (bytes.n > 0) {
                wire_send(loop, p, str_of(bytes.p, MIN_OF(n, bytes.n)));
                net_loop_run_once(loop, /* wait= */ false);
                bytes = str_skip(bytes, MIN_OF(n, bytes.n));
        }
}

/* --- a listener of the test's own --- */

struct wire_listener {
        int fd;
        struct sock_addr addr;
        char dir[64];
};

/* On a unix socket in a directory of its own. */
static inline void wire_listen(struct wire_listener *l)
{
        char text[128];

        *l = (struct wire_listener){ .fd = -EBADF };
        (void) snprintf(l->dir, sizeof(l->dir), "%s/hutch-XXXXXX", check_tmp());
        check_true(mkdtemp(l->dir) != NULL);
        (void) snprintf(text, sizeof(text), "unix:%s/s", l->dir);
        check_i64_eq(sock_addr_from_string(str_from(text), &l->addr), 0);
        check_i64_eq(sock_listen(&l->addr, &l->fd), 0);
}

static inline void wire_unlisten(struct wire_listener *l)
{
        char path[80];

        l->fd = fd_close(l->fd);
        (void) snprintf(path, sizeof(path), "%s/s", l->dir);
        (void) unlink(path);
        (void) rmdir(l->dir);
}

static inline bool wire_try_accept(struct wire_listener *l, struct wire_peer *p)
{
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return false;
        wire_take(p, fd);
        return true;
}

static inline void wire_accept(struct net_loop *loop, struct wire_listener *l, struct wire_peer *p)
{
        wire_until(loop, wire_try_accept(l, p));
}

#endif
