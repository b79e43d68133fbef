/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "client/op.h"
#include "client/tunnel.h"

/*
 * Bytes both ways between a tunnel and a descriptor. Each direction holds one piece at most: who does
 * not read is not read for.
 */

struct pump_op {
        struct op op;
        struct hutch_tunnel *tunnel;
        struct watch far, near;
        struct buf held; /* came out of the tunnel, and fd did not take it */
        bool near_ended, far_ended;
};

static struct pump_op *pump_of(struct op *op)
{
        return container_of(op, struct pump_op, op);
}

/* --- out of the tunnel --- */

/* A socket whose other end has gone must not cost the process a signal. */
static ssize_t put(int fd, struct str s)
{
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);

        return n < 0 && errno == ENOTSOCK ? write(fd, s.p, s.n) : n;
}

/* 0, HUTCH_AGAIN, or a failure. */
static int write_local(struct pump_op *p)
{
        while (p->held.n > 0) {
                struct str s = buf_str(&p->held);
                ssize_t n = put(p->near.fd, s);

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

                if (r < 0 || p->far_ended)
                        return r;
                room = buf_reserve(&p->held, TUNNEL_PIECE);
                if (!room)
                        return HUTCH_NO_MEMORY;
                n = hutch_tunnel_read(p->tunnel, room, TUNNEL_PIECE);
                if (n < 0)
                        return (int) n;
                p->far_ended = n == 0;
                buf_advance(&p->held, (size_t) n);
        }
}

/* --- into the tunnel --- */

static int end_local(struct pump_op *p)
{
        int r;

        p->near_ended = true;
        r = hutch_tunnel_end(p->tunnel);
        return r;
}

static int move_in(struct pump_op *p)
{
        char piece[16 * KiB];
        int r = tunnel__flush(p->tunnel);

        while (r == 0 && !p->near_ended && !p->far_ended) {
                ssize_t n = read(p->near.fd, piece, sizeof(piece));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0) /* broken is an end, too: nobody is there who could be told */
                        return end_local(p);
                /* All of it is taken, as nothing was left over. */
                r = (int) MIN_OF(hutch_tunnel_write(p->tunnel, piece, (size_t) n), (int64_t) 0);
                if (r == 0)
                        r = tunnel__flush(p->tunnel);
        }
        return r;
}

/* --- together --- */

static bool is_failure(int r)
{
        return r < 0 && r != HUTCH_AGAIN;
}

static void rewatch(struct pump_op *p)
{
        unsigned near = 0, far = hutch_tunnel_events(p->tunnel);

        if (p->held.n > 0) {
                near |= HUTCH_WRITABLE;
                far &= ~(unsigned) HUTCH_READABLE;
        }
        if (!p->near_ended && p->tunnel->out.n == 0)
                near |= HUTCH_READABLE;
        loop__watch(p->op.loop, &p->near, near);
        loop__watch(p->op.loop, &p->far, far);
}

static void turn(struct pump_op *p)
{
        int out = move_out(p), in = is_failure(out) ? 0 : move_in(p);
        int failure = is_failure(out) ? out : is_failure(in) ? in : 0;

        /* Our own close is on_response by theirs, or by the end of the connection. */
        if (failure == HUTCH_BROKEN && p->near_ended && p->tunnel->out.n == 0)
                failure = 0, p->far_ended = true;
        if (failure < 0) {
                op_fail(&p->op, failure, "%s",
                        failure == HUTCH_LOCAL ? err_text(-p->op.x.error.os_errno)
                                               : "the connection to the port broke");
        } else if (p->far_ended && p->held.n == 0) {
                (void) shutdown(p->near.fd, SHUT_WR); /* if it is a socket */
                op_succeed(&p->op, NULL);
        } else {
                rewatch(p);
        }
}

static void local_ready(struct watch *w)
{
        turn(container_of(w, struct pump_op, near));
}

static void remote_ready(struct watch *w)
{
        turn(container_of(w, struct pump_op, far));
}

static void pump_begin(struct op *op)
{
        turn(pump_of(op));
}

static void pump_stop(struct op *op)
{
        struct pump_op *p = pump_of(op);

        loop__watch(op->loop, &p->near, 0);
        loop__watch(op->loop, &p->far, 0);
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
                .begin = pump_begin,
                .release = pump_release,
                .stream = true,
                .stop = pump_stop,
        };
        struct op *op = op_new(sizeof(struct pump_op), &kind, client, call);
        struct pump_op *p = op ? pump_of(op) : NULL;

        if (!p)
                return op_start(NULL, NULL);
        if (!tunnel || fd < 0)
                op_refuse(op, HUTCH_INVALID, "a tunnel and a descriptor are needed");
        list_init(&p->near.node);
        list_init(&p->far.node);
        p->tunnel = tunnel;
        p->near.fd = fd;
        p->far.fd = tunnel ? tunnel->fd : -EBADF;
        p->near.ready = local_ready;
        p->far.ready = remote_ready;
        buf_init(&p->held, TUNNEL_PIECE + 1);
        return op_start(op, NULL);
}
