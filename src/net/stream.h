/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_STREAM_H
#define HUTCH_NET_STREAM_H

/*
 * A byte stream in both directions over a connected, non-blocking socket.
 *
 * libuv reports when the socket is ready (uv_poll) and we read and write. Its own stream handles have
 * no sendfile on the loop and need a buffer for each read and a request object for each write.
 *
 * Output is queued in up to three pieces, sent in this order: copied bytes, one borrowed piece of
 * memory, one range of a file. The output of an iteration leaves at its end, in as few system calls as
 * the kernel allows; nothing is written from inside a queueing call, so no callback is called from
 * there either. While a borrowed piece or a file is queued, nothing may be appended.
 *
 * Input is pushed: `data` gets the bytes of one read, in the loop's read buffer; a slow consumer calls
 * stream_pause_reading to hold back the sender.
 *
 * Lifetime: stream_open takes the descriptor; stream_close drops everything at once and calls `closed`
 * from the loop when the memory may be freed. No other callback is called after stream_close. After
 * `error` the stream is dead: the owner must call stream_close.
 *
 * The process must ignore SIGPIPE: sendfile has no flag against it, as send has.
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
        /* All output was passed to the kernel. */
        void (*drained)(struct net_stream *s);
        /* The socket failed: -ECONNRESET, -EPIPE … */
        void (*error)(struct net_stream *s, int r);
        /* Last call; the memory may be freed. */
        void (*closed)(struct net_stream *s);
        /* The socket did not take all output; bytes_out is what was sent, for write timeouts. May
         * be NULL. */
        void (*stalled)(struct net_stream *s);
        /* Called once when the peer closes at least its sending side while reading is paused; `eof`
         * still follows when everything before it was read. NULL: not watched. */
        void (*hangup)(struct net_stream *s);
        /* The connection attempt of stream_open_connecting succeeded. May be NULL. */
        void (*connected)(struct net_stream *s);
};

/* A file is sent in portions of this size, one per iteration: large enough that system calls do not
 * matter, small enough that a fast reader does not delay other connections. */
#define STREAM_FILE_PORTION (512 * KiB)

struct net_stream {
        const struct net_stream_ops *ops;
        struct net_loop *loop;
        int fd;
        uint8_t _interest; /* events that uv_poll watches */
        bool _connecting;
        bool reading;
        bool eof;  /* seen */
        bool hung; /* eof will follow, see ops->hangup */
        bool _closing;
        bool _blocked; /* the socket is full: wait until it is writable */
        bool _shut;    /* shutdown(SHUT_WR) when drained */
        struct buf out;
        struct str _borrowed;
        int _file;         /* borrowed descriptor */
        bool _file_copied; /* read and written, without sendfile */
        uint64_t _file_pos, _file_left;
        struct net_task _flush;
        uv_poll_t _poll;
        uint64_t bytes_in, bytes_out;
};

/* --- life cycle --- */

/* Takes fd, whatever it returns. `out_max` bounds the copied output. */
int stream_open(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                const struct net_stream_ops *ops) must_check;

/* As stream_open for a socket whose connect(2) is in progress: output queued meanwhile is sent once it
 * is connected; `error` is called if it fails. */
int stream_open_connecting(struct net_stream *s, struct net_loop *l, int fd, size_t out_max,
                           const struct net_stream_ops *ops) must_check;

/* Output not yet sent is dropped. May be called twice. */
void stream_close(struct net_stream *s);

/* As stream_close, but a TCP peer sees a reset and not an orderly end. */
void stream_reset(struct net_stream *s);

/* A stream that was never opened, or whose `closed` was called. */
static inline bool stream_is_closed(const struct net_stream *s)
{
        return s->loop == NULL;
}

/* --- input --- */

void stream_set_reading(struct net_stream *s, bool reading);

static inline void stream_resume_reading(struct net_stream *s)
{
        stream_set_reading(s, true);
}

static inline void stream_pause_reading(struct net_stream *s)
{
        stream_set_reading(s, false);
}

/* --- output --- */

/* Appends to s->out. If that exceeds its maximum, the stream fails with -ENOBUFS when it is
 * flushed. */
void stream_queue(struct net_stream *s, struct str bytes);

/* For callers that append to s->out directly. */
void stream_queue_flush(struct net_stream *s);

/* The memory must stay valid until drained. */
void stream_queue_borrowed(struct net_stream *s, struct str bytes);

/* The descriptor must stay open until drained. A file that ends early fails the stream with -EIO: the
 * peer was promised its length. */
void stream_queue_file(struct net_stream *s, int fd, uint64_t pos, uint64_t n);

/* Sends FIN when all is drained. */
void stream_shutdown(struct net_stream *s);

/* Drops output not yet sent. For an owner that wants to read the remaining input after sending failed;
 * nothing may be queued after that. */
void stream_drop_output(struct net_stream *s);

/* Bytes waiting, files included. */
static inline uint64_t stream_pending(const struct net_stream *s)
{
        return s->out.n + s->_borrowed.n + s->_file_left;
}

#endif
