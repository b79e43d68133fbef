/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_STREAM_H
#define HUTCH_NET_STREAM_H

/*
 * A byte stream in both directions over a connected, non-blocking socket.
 *
 * libuv tells when the socket is ready (uv_poll) and we do the reading and writing. Its own stream
 * handles were not taken because they know no sendfile on the loop, want a buffer for each read
 * and a request object for each write.
 *
 * Output is queued in up to three pieces, sent in this order: copied bytes, one borrowed piece of
 * memory, one stretch of a file. What a turn of the loop queued leaves at its end, in as few system
 * calls as the kernel allows; nothing is written from inside a queueing call, so no callback ever
 * comes from there either. While a borrowed piece or a file is queued, nothing may be appended.
 *
 * Input is pushed: `data` gets what one read gave, in the loop's own buffer; stream_pause_reading
 * is how a slow consumer holds back the sender.
 *
 * Life: stream_open takes the descriptor; stream_close gives everything up at once and calls
 * `closed` from the loop when the memory may be freed. No other callback comes after stream_close.
 * `error` means the stream is dead: the owner must call stream_close.
 *
 * The process must ignore SIGPIPE: sendfile can't be told to, as send can.
 */

#include <sys/uio.h>

#include "base/buf.h"
#include "net/loop.h"

struct net_stream;

struct net_stream_ops {
        /* Bytes arrived; p is mutable and valid during the call. */
        void (*data)(struct net_stream *s, char *p, size_t n);
        /* The peer will send no more. Reading has stopped; writing may go on. */
        void (*eof)(struct net_stream *s);
        /* All that was queued went to the kernel. */
        void (*drained)(struct net_stream *s);
        /* The socket failed: -ECONNRESET, -EPIPE … */
        void (*error)(struct net_stream *s, int r);
        /* Last call; the memory may go. */
        void (*closed)(struct net_stream *s);
        /* An attempt to send left something behind: bytes_out tells what went, for write
         * timeouts. May be NULL. */
        void (*stalled)(struct net_stream *s);
        /* Reading is paused, and the peer has closed at least its sending side: once, and `eof`
         * comes all the same when everything before it was read. NULL: not watched for. */
        void (*hangup)(struct net_stream *s);
        /* The connection attempt of stream_open_connecting succeeded. May be NULL. */
        void (*connected)(struct net_stream *s);
};

/* A file is sent in portions of this size, a turn of the loop each: large enough that system calls
 * do not count, small enough that a fast reader does not keep the loop from the others. */
#define STREAM_FILE_PORTION (512 * KiB)

struct net_stream {
        const struct net_stream_ops *ops;
        struct net_loop *loop;
        int fd;
        uint8_t _interest; /* what uv_poll was told */
        bool _connecting;
        bool reading;
        bool eof;  /* seen */
        bool hung; /* eof is known to come, see ops->hangup */
        bool _closing;
        bool _blocked; /* the socket took less than we had: wait until it is writable */
        bool _shut;    /* shutdown(SHUT_WR) wanted when drained */
        struct buf out;
        struct str _borrowed;
        int _file;         /* borrowed descriptor */
        bool _file_copied; /* read and written, for want of sendfile */
        uint64_t _file_pos, _file_left;
        struct net_task _flush;
        uv_poll_t _poll;
        uint64_t bytes_in, bytes_out;
};

/* --- life cycle --- */

/* Takes fd, whatever it returns. `out_max` bounds the copied output. */
int stream_open(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                const struct net_stream_ops *ops) must_check;

/* As stream_open for a socket whose connect(2) is under way: output queued meanwhile is sent once
 * it stands, `error` tells if it never will. */
int stream_open_connecting(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                           const struct net_stream_ops *ops) must_check;

/* Output not yet sent is dropped. Calling it twice is fine. */
void stream_close(struct net_stream *s);

/* As stream_close, but a TCP peer sees a reset and not an orderly end. */
void stream_reset(struct net_stream *s);

/* A stream that was never opened, or whose `closed` was called. */
bool stream_is_closed(const struct net_stream *s);

/* --- input --- */

void stream_resume_reading(struct net_stream *s);
void stream_pause_reading(struct net_stream *s);

/* --- output --- */

/* Append to s->out and say so. The buffer remembers an overflow: the stream then fails with
 * -ENOBUFS when it is flushed. */
void stream_queue(struct net_stream *s, struct str bytes);

/* To be called after appending to s->out directly. */
void stream_queue_flush(struct net_stream *s);

/* The memory must stay until drained. */
void stream_queue_borrowed(struct net_stream *s, struct str bytes);

/* The descriptor must stay until drained. A file that ends early fails the stream with -EIO: its
 * length was promised to the peer. */
void stream_queue_file(struct net_stream *s, int fd, uint64_t pos, uint64_t n);

/* Sends FIN when all is drained. */
void stream_shutdown(struct net_stream *s);

/* Forgets what was not sent. For an owner that wants to read what a peer left behind after sending
 * to it failed; nothing may be queued after that. */
void stream_drop_output(struct net_stream *s);

/* Bytes waiting, files included. */
uint64_t stream_pending(const struct net_stream *s);

#endif
