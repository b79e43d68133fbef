/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_PIPE_H
#define HUTCH_NET_PIPE_H

/*
 * The reading end of a pipe, on the loop.
 *
 * `data` gets the bytes of one read, in the loop's read buffer; pausing blocks the writers. `ended` is
 * called once, when the last writer is gone or reading failed. After net_pipe_close only `closed` is
 * called, from the loop; then the memory may be freed.
 */

#include "net/loop.h"

struct net_pipe;

struct net_pipe_ops {
        void (*data)(struct net_pipe *p, char *bytes, size_t n);
        void (*ended)(struct net_pipe *p, int r); /* 0 or a negative errno */
        void (*closed)(struct net_pipe *p);
};

struct net_pipe {
        const struct net_pipe_ops *ops;
        struct net_loop *loop;
        int fd;
        bool reading; /* wanted by the owner */
        bool ended;
        bool _polling;
        bool _closing;
        uint64_t bytes_in;
        uv_poll_t _poll;
};

/* Takes fd, whatever it returns, and makes it non-blocking. Starts paused. */
int net_pipe_open(struct net_pipe *p, struct net_loop *l, int fd, const struct net_pipe_ops *ops)
        must_check;
void net_pipe_close(struct net_pipe *p);

void net_pipe_resume(struct net_pipe *p);
void net_pipe_pause(struct net_pipe *p);

/* Bytes in the pipe now. */
size_t net_pipe_pending(const struct net_pipe *p);

/* Reads once without waiting for an event; `data` and `ended` are called from inside this call. Does
 * nothing while paused. Returns whether there was data. */
bool net_pipe_read_now(struct net_pipe *p);

#endif
