/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_CHANNEL_H
#define HUTCH_ENGINE_CHANNEL_H

/*
 * Frames over a connected unix stream socket, in both directions, on the loop: the length of a text as
 * four bytes, little-endian, and the text; a frame may carry one descriptor.
 *
 * A stream and not packets, because a packet can't be longer than the socket's buffer, and records can.
 * A descriptor travels with the first byte of its frame; so it is there when the frame is complete, and
 * descriptors are taken in the order of the frames that say they have one: which these are, only who
 * reads the text can tell (channel_take_fd).
 *
 * What is queued is bounded by CHANNEL_OUT_MAX: past it the channel fails. Memory that has held frames is
 * wiped before it is freed: they hold secrets.
 *
 * After channel_close only `closed` is called, from the loop; the memory may go then. `ended` means that
 * the other side is gone or has broken the rules; the owner must call channel_close.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"
#include "net/loop.h"

#define CHANNEL_OUT_MAX (256 * MiB)
#define CHANNEL_FDS_MAX 64 /* received and not taken yet */

struct channel;

struct channel_ops {
        /* A complete frame; the text is valid during the call, and NUL-terminated. */
        void (*frame)(struct channel *c, struct str text);
        void (*ended)(struct channel *c, int r); /* 0: closed by the other side */
        void (*closed)(struct channel *c);
};

struct channel {
        const struct channel_ops *ops;
        struct net_loop *loop;
        int fd;
        size_t frame_max;
        bool may_receive_fds;

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

/* Takes fd, whatever it returns. */
int channel_open(struct channel *c, struct net_loop *l, int fd, const struct channel_ops *ops)
        must_check;
void channel_close(struct channel *c);

/* Copies the text and takes the descriptor (or -EBADF). Nothing is written from inside. */
void channel_send(struct channel *c, struct str text, int fd);

/* From inside `frame`: the next descriptor that has come, or -EBADF if there is none. */
int channel_take_fd(struct channel *c);

#endif
