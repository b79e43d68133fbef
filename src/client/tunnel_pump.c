/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "client/op.h"
#include "client/tunnel.h"

/*
 * Copies bytes between a tunnel and a descriptor. Each direction buffers one piece at most: a side that
 * does not accept data stops reading of the other side.
 */

struct pump_op {
        struct op op;
        struct hutch_tunnel *tunnel;
        struct fd_watch remote, local;
        struct buf held; /* from the tunnel, not written to fd yet */
        bool local_ended, remote_ended;
};

static struct pump_op *pump_of(struct op *op)
{
        return container_of(op, struct pump_op, op);
}

/* --- out of the tunnel --- */

/* 0, HUTCH_AGAIN, or a failure. */
static int write_local(struct pump_op *p)
{
        while (p->held.n > 0) {
                struct str s = buf_str(&p->held);
                ssize_t n = send(p->local.fd, s.p, s.n, MSG_NOSIGNAL); /* no SIGPIPE */

                if (n < 0 && errno == ENOTSOCK)
                        n = write(p->local.fd, s.p, s.n);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return HUTCH_AGAIN;
                if (n < 0) {
                        p->op.x.error.os_errno = errno;
                        return HUTCH_LOCAL;
                }
                buf_consume(&p->held, (size_t) n);
        }
        return 0;
}

static int move_out(struct pump_op *p)
{
        for (;;) {
                int r = write_local(p);
                char *room;
                int64_t n;

                if (r < 0 || p->remote_ended)
                        return r;
                room = buf_reserve(&p->held, TUNNEL_PIECE);
                if (!room)
                        return HUTCH_NO_MEMORY;
                n = hutch_tunnel_read(p->tunnel, room, TUNNEL_PIECE);
                if (n < 0)
                        return (int) n;
                p->remote_ended = n == 0;
                buf_advance(&p->held, (size_t) n);
        }
}

/* --- into the tunnel --- */

static int move_in(struct pump_op *p)
{
        char piece[16 * KiB];
        int r = tunnel__flush(p->tunnel);

        while (r == 0 && !p->local_ended && !p->remote_ended) {
                ssize_t n = read(p->local.fd, piece, sizeof(piece));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0) { /* an error is an end, too */
                        p->local_ended = true;
                        return hutch_tunnel_end(p->tunnel);
                }
                /* Everything is accepted, because nothing was buffered. */
                r = (int) MIN_OF(hutch_tunnel_write(p->tunnel, piece, (size_t) n), (int64_t) 0);
                if (r == 0)
                        r = tunnel__flush(p->tunnel);
        }
        return r;
}

/* --- together --- */

static void pump_run(struct op *op)
{
        struct pump_op *p = pump_of(op);
        unsigned local = 0, remote;
        int failure = move_out(p);

        if (failure >= 0 || failure == HUTCH_AGAIN)
                failure = move_in(p);
        if (failure > 0 || failure == HUTCH_AGAIN)
                failure = 0;
        /* The peer replies to our close with its own, or closes the connection. */
        if (failure == HUTCH_BROKEN && p->local_ended && p->tunnel->out.n == 0)
                failure = 0, p->remote_ended = true;
        if (failure < 0) {
                op_fail(op, failure, "%s",
                        failure == HUTCH_LOCAL ? err_text(-op->x.error.os_errno)
                                               : "the connection to the port closed unexpectedly");
                return;
        }
        if (p->remote_ended && p->held.n == 0) {
                (void) shutdown(p->local.fd, SHUT_WR); /* if it is a socket */
                op_succeed(op, NULL);
                return;
        }
        remote = hutch_tunnel_events(p->tunnel);
        if (p->held.n > 0) {
                local |= HUTCH_WRITABLE;
                remote &= ~(unsigned) HUTCH_READABLE;
        }
        if (!p->local_ended && p->tunnel->out.n == 0)
                local |= HUTCH_READABLE;
        loop__watch(op->loop, &p->local, local);
        loop__watch(op->loop, &p->remote, remote);
}

static void pump_stop(struct op *op)
{
        struct pump_op *p = pump_of(op);

        loop__watch(op->loop, &p->local, 0);
        loop__watch(op->loop, &p->remote, 0);
}

static void pump_release(struct op *op)
{
        buf_done(&pump_of(op)->held);
}

int hutch_pump_tunnel(struct hutch_client *client, struct hutch_tunnel *tunnel, int fd,
                      struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "pump the tunnel",
                .begin = pump_run,
                .release = pump_release,
                .stream = true,
                .stop = pump_stop,
        };
        struct op *op = op_new(sizeof(struct pump_op), &kind, client, call);
        struct pump_op *p = op ? pump_of(op) : NULL;

        if (!p)
                return HUTCH_NO_MEMORY;
        if (!tunnel || fd < 0)
                op_refuse(op, HUTCH_INVALID, "a tunnel and a descriptor are required");
        p->local = (struct fd_watch){ .fd = fd, .op = op, .ready = pump_run };
        p->remote = (struct fd_watch){ .fd = tunnel ? tunnel->fd : -EBADF,
                                       .op = op,
                                       .ready = pump_run };
        list_init(&p->local.node);
        list_init(&p->remote.node);
        p->tunnel = tunnel;
        buf_init(&p->held, TUNNEL_PIECE + 1);
        return op_start(op, NULL);
}
