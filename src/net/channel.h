/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_CHANNEL_H
#define HUTCH_NET_CHANNEL_H

/*
 * Frames over a connected unix socket, in both directions, on the loop. A frame may carry one
 * descriptor.
 *
 * On a stream socket a frame is its length as four bytes, little-endian, and its bytes. A stream is
 * needed where frames can be larger than the socket's buffer. Descriptors travel with the first byte
 * of their frame, so they have arrived when the frame is complete; only the decoded frame says
 * whether it has one, so they are taken in order (channel_take_fd).
 *
 * On a packet socket (SOCK_SEQPACKET, `packets`) a frame is a packet. Descriptors that the receiver
 * does not take from a packet are closed. If the process is out of descriptors, the kernel drops
 * some: the frame arrives with fewer (channel_n_fds).
 *
 * Queued output is bounded by `out_max`; beyond it the channel fails. Memory that has held frames is
 * wiped before it is freed: frames carry secrets.
 *
 * `ended` means that the peer is gone or broke the protocol; the owner then calls channel_close. After
 * channel_close only `closed` is called, from the loop; the memory may be freed then.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"
#include "net/loop.h"

#define CHANNEL_OUT_MAX (256 * MiB)
#define CHANNEL_FDS_MAX 64 /* received and not taken yet */

struct channel;

struct channel_ops {
        /* A complete frame; valid during the call. On a stream it is NUL-terminated. */
        void (*frame)(struct channel *c, struct str bytes);
        void (*drained)(struct channel *c);      /* all output is sent; may be NULL */
        void (*ended)(struct channel *c, int r); /* 0: the peer closed the connection */
        void (*closed)(struct channel *c);
};

struct channel {
        /* --- set by the owner --- */
        size_t frame_max;
        size_t out_max; /* 0: CHANNEL_OUT_MAX */
        bool packets;
        bool may_receive_fds;

        const struct channel_ops *ops;
        struct net_loop *loop;
        int fd;

        uv_poll_t _poll;
        bool _closing, _over, _too_much;
        unsigned _interest;
        struct buf _in;
        struct list _out; /* frames */
        size_t _out_size;
        int _fds[CHANNEL_FDS_MAX];
        size_t _n_fds;
        struct net_task _flush;
};

/* Takes fd, even if it fails. */
int channel_open(struct channel *c, struct net_loop *l, int fd, const struct channel_ops *ops)
        must_check;
void channel_close(struct channel *c);

/* Copies the bytes and takes the descriptor (or -EBADF). Nothing is written from inside. */
void channel_send(struct channel *c, struct str bytes, int fd);

/* Whether a frame of n bytes may be queued without failing the channel. On a packet socket: whether
 * nothing is queued. */
bool channel_has_room(const struct channel *c, size_t n);

/* Discards queued output. For packets only: half a frame cannot be discarded. */
void channel_drop_output(struct channel *c);

/* Reads and delivers everything that has arrived. For a peer that has exited. */
void channel_drain(struct channel *c);

/* From inside `frame`: the next descriptor, or -EBADF if there is none. */
int channel_take_fd(struct channel *c);

static inline size_t channel_n_fds(const struct channel *c)
{
        return c->_n_fds;
}

#endif
