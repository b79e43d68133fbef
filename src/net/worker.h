/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_NET_WORKER_H
#define HUTCH_NET_WORKER_H

/*
 * A helper process and the conversation with it: requests with ids, replies in any order, events,
 * descriptors, timeouts, and another process when this one ends.
 *
 *         DOWN ── start ──► STARTING ── worker_ready ──► READY
 *          ▲                    │                          │
 *          └── process gone ─ ENDING ◄── connection lost ──┘
 *
 * Where the process comes from:
 *   - `argv`: spawned here, with one end of a socket pair as standard input. When it ends, another one
 *     is spawned after a delay that doubles with each failure.
 *   - `address`: another program starts it, once per connection. Reconnected in the same way.
 *   - `fd`: a packet socket that outlives the process; the program that restarts the process passes it the
 *     same socket. The owner recognises the new process by its first message and calls
 *     worker_restarted. If this socket breaks, the worker stays down.
 *
 * The messages belong to the owner: `connected` sends the hello, `message` decodes a message, finds
 * the request by its id (worker_request_get) and ends it (worker_request_end). The owner drops messages
 * for requests that have ended.
 *
 * Requests sent while STARTING wait for worker_ready. Requests sent while DOWN or ENDING fail, from
 * the loop. A request fails because the worker is gone only when the process has ended and its
 * connection is closed: nothing that it began is still carried out.
 *
 * Nothing is logged here; the owner logs in `lost` and when it calls worker_ready.
 */

#include "base/err.h"
#include "base/map.h"
#include "net/backoff.h"
#include "net/channel.h"
#include "net/timeout.h"
#include "os/socket.h"

#define WORKER_BACKOFF_MIN (50 * USEC_PER_MSEC)

enum worker_state {
        WORKER_DOWN,     /* no process; the timer starts one, unless it is inherited */
        WORKER_STARTING, /* connected, requests wait: worker_ready leads out */
        WORKER_READY,
        WORKER_ENDING, /* the connection closes, or the process has not ended yet */
};

struct worker;

struct worker_ops {
        /* There is a (new) process: the owner sends its hello by worker_post, or waits for the first
         * message. */
        void (*connected)(struct worker *w);

        /* A message. Descriptors: worker_take_fd. Invalid messages lead to worker_fail. */
        void (*message)(struct worker *w, struct str bytes);

        /* The process is gone, or could not be started: w->error says why, w->backoff.failures how
         * often in a row. Requests fail after this. May be NULL. */
        void (*lost)(struct worker *w);

        /* All output has been written. May be NULL. */
        void (*drained)(struct worker *w);

        /* After worker_close: the memory may be freed. */
        void (*closed)(struct worker *w);
};

/* Everything it points to must stay valid until `closed`. */
struct worker_config {
        const char *name; /* for messages: "the worker of docker" */

        char *const *argv;
        const struct sock_addr *address; /* if argv is NULL */
        int fd;                          /* if both are NULL; taken */

        size_t frame_max;
        size_t out_max;       /* 0: CHANNEL_OUT_MAX */
        bool may_receive_fds; /* from the worker */
        bool die_with_parent;

        usec_t start_timeout;   /* from connected to worker_ready; 0: none */
        usec_t request_timeout; /* from worker_request_send to the reply; 0: none */
        usec_t exit_timeout;    /* from the end of the connection to SIGKILL; 0: at once */
        usec_t backoff_max;     /* of WORKER_BACKOFF_MIN, doubled */
};

struct worker {
        struct worker_config config;
        const struct worker_ops *ops;
        struct net_loop *loop;
        enum worker_state state;
        struct err error; /* ERR_UNAVAILABLE: why it is not ready */
        struct backoff backoff;

        struct channel _channel;
        pid_t _pid; /* 0: none */
        int _pidfd;
        uv_poll_t _exit;
        uv_timer_t _timer;  /* by state: next start; start_timeout; exit_timeout */
        unsigned _open;     /* channel, process */
        bool _channel_open; /* not closed yet */
        bool _explained;    /* error is the owner's and not to be replaced by an exit status */
        bool _closing;
        uint64_t _last_id;
        struct map _by_id;
        struct list _waiting; /* requests to be sent */
        struct list _sent;
        struct list _refused; /* requests that fail in the next iteration */
        struct net_task _refuse, _closed;
        struct timeout_kind _timeouts;
};

/* Makes the first start; only an `fd` that cannot be used is an error (-errno). */
int worker_open(struct worker *w, struct net_loop *loop, const struct worker_ops *ops,
                const struct worker_config *config) must_check;

/* Ends the connection, waits for the process (exit_timeout, then SIGKILL), then calls `closed`, from
 * the loop. Pending requests are dropped: `failed` is not called. */
void worker_close(struct worker *w);

/* --- for ops->message and ops->connected --- */

void worker_ready(struct worker *w);

/* The process misbehaves: kills it and starts another one. */
void worker_fail(struct worker *w, const char *fmt, ...) printf_like(2, 3);

/* `fd` only: another process has the socket. Requests marked `retry` are sent again, in their order,
 * once it is ready; others that were sent fail. Then `connected`. */
void worker_restarted(struct worker *w);

/* A message that is no request here: hello, cancel; with an id of its own if it needs one. Dropped if
 * there is no connection. */
static inline uint64_t worker_next_id(struct worker *w)
{
        return ++w->_last_id;
}

void worker_post(struct worker *w, struct str bytes);

/* The next descriptor of the message, or -EBADF; and how many there are. */
static inline int worker_take_fd(struct worker *w)
{
        return channel_take_fd(&w->_channel);
}

static inline size_t worker_n_fds(const struct worker *w)
{
        return channel_n_fds(&w->_channel);
}

/* Ready, and a message of n bytes can be sent now. */
bool worker_has_room(const struct worker *w, size_t n);

/* --- requests --- */

struct worker_request {
        uint64_t id;
        bool retry;     /* may be sent twice: to the next process, if this one ends (`fd` only) */
        bool resent;    /* was sent to a process that ended */
        bool timed_out; /* was sent, and not replied to in time */

        /* No reply will come: timeout, or the worker is gone. From the loop; the request is ended. */
        void (*failed)(struct worker_request *r, const struct err *e);

        struct worker *_worker; /* NULL: not pending */
        struct list _node;
        struct map_node _by_id;
        struct timeout _timeout;
        struct buf _bytes; /* until they are sent; of `retry`, until the end */
        int _fd;
        bool _sent;
        enum err_code _refusal; /* 0: that of w->error */
};

/* Gives the request its id, so that it can be encoded. It must not be pending. */
void worker_request_init(struct worker *w, struct worker_request *r,
                         void (*failed)(struct worker_request *r, const struct err *e));

/* The bytes are copied; an empty message, or one of more than frame_max bytes, fails the request with
 * ERR_TOO_LARGE. The caller keeps the descriptor (or -EBADF), which must stay open until the end of the
 * request. */
void worker_request_send(struct worker_request *r, struct str bytes, int fd);

/* It has its reply, or is no longer needed: `failed` is not called. A no-op if it is not pending. */
void worker_request_end(struct worker_request *r);

/* The pending request with this id, or NULL. */
struct worker_request *worker_request_get(const struct worker *w, uint64_t id);

static inline bool worker_request_pending(const struct worker_request *r)
{
        return r->_worker != NULL;
}

/* Whether a process may have it. */
static inline bool worker_request_sent(const struct worker_request *r)
{
        return r->_worker && r->_sent;
}

#endif
