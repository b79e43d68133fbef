/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_PROTOCOL_H
#define HUTCH_PLAN_PROTOCOL_H

/*
 * What hutchd and hutch-warden say to each other, over a pair of sockets that keep messages apart
 * (SOCK_SEQPACKET) and carry descriptors.
 *
 *         hutchd                          warden
 *         ──────                          ──────
 *                       ◄──  news         started
 *         request hello ──►  ◄── answer   from now on it listens to the rest
 *         request …     ──►  ◄── answer   one for each, in any order, with the request's request_id
 *                       ◄──  news         died, oom
 *
 * The pair outlives either of the two: the launcher holds both ends and gives them to who is started
 * anew. So nobody can tell the other's end by an end of file. `started` tells hutchd that what it had
 * asked for will not be answered; hello tells the warden that there is somebody new, to whom answers
 * to the old one's requests mean nothing: none is sent for those any more. Who says hello drops what it
 * receives until the answer to that.
 *
 * The warden is root and hutchd faces the network, so there is one closed table of requests: what a
 * request is called, when it is allowed, how long it may be, and which descriptors belong to it. A
 * message that is not exactly so is refused as a whole, and its descriptors are closed.
 *
 * Numbers, texts and pieces are encoded as in base/codec.h. A message begins with a magic number that
 * says which of the three it is, its kind (8 bits) and its request_id (64 bits; 0 in news).
 *
 * Descriptors:
 *         create     request: the sandbox's record, as bytes that mean nothing to the warden, in a sealed
 *                    memfd (os/memfd.h): what can't change nor keep a reader waiting. It is kept
 *                    beside the sandbox, for scan
 *                    answer: WARDEN_FD_PIDFD, WARDEN_FD_SOCKET
 *         inspect    answer: the same, if it lives
 *         scan       answer: one for each sandbox found, its record, open for reading
 * WARDEN_FD_SOCKET leads to the socket of the sandbox's agent (O_PATH): who holds it connects by
 * /proc/self/fd/N, with no right to any directory on the way.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/str.h"
#include "model/runtime_status.h"
#include "plan/spec.h"

#define WARDEN_PROTOCOL_VERSION 2U
#define WARDEN_MSG_MAX          (PLAN_SPEC_MAX + 256)
#define WARDEN_TEXT_MAX         ERR_MESSAGE_MAX
#define WARDEN_RECORD_MAX       (4 * MiB)
#define WARDEN_PAGE_MAX         32 /* sandboxes in one answer to scan */
#define WARDEN_FDS_MAX          WARDEN_PAGE_MAX

/* --- requests --- */

enum warden_msg {
        WARDEN_MSG_HELLO,
        WARDEN_MSG_CREATE,
        WARDEN_MSG_DESTROY, /* 0 also if there is none */
        WARDEN_MSG_PAUSE,
        WARDEN_MSG_RESUME,
        WARDEN_MSG_INSPECT,
        WARDEN_MSG_SCAN,
        WARDEN_MSG_USAGE,
        WARDEN_MSG_KIND_MAX_,
        WARDEN_MSG_INVALID = -EINVAL,
};

ENUM_DECLARE(warden_msg);

/* How far the two have come. */
enum warden_phase {
        WARDEN_PHASE_NEW,
        WARDEN_PHASE_READY,
};

struct warden_rule {
        unsigned phases; /* 1 << enum warden_phase */
        size_t size_max;
        unsigned fds; /* sealed memfds all */
};

extern const struct warden_rule warden_rules[WARDEN_MSG_KIND_MAX_];

struct warden_request {
        enum warden_msg call;
        uint64_t request_id;
        uint32_t version; /* hello */
        const char *id;   /* destroy to usage. scan: begin behind this one, or "" */
        struct str spec;  /* create: see plan/spec.h; names no uids */
};

int warden_request_encode(const struct warden_request *q, struct buf *b, struct err *e) must_check;

/* Texts are copied into the arena, the spec is a view into the message and not looked at. ERR_INVALID,
 * and ERR_CONFLICT for one that is not allowed in this phase. */
struct warden_packet {
        struct str message;
        size_t n_fds; /* that came with it */
};
int warden_request_decode(const struct warden_packet *m, enum warden_phase phase, struct arena *a,
                          struct warden_request *ret, struct err *e) must_check;

/* Of a request that was refused, as far as it can be read: whom the refusal is for. */
bool warden_request_peek(struct str message, enum warden_msg *ret_call, uint64_t *ret_request_id);

/* --- what is told of a sandbox --- */

enum warden_exit {
        WARDEN_EXIT_NONE,   /* it lives */
        WARDEN_EXIT_CODE,   /* code is the exit code */
        WARDEN_EXIT_SIGNAL, /* code is the signal */
        WARDEN_EXIT_OOM,
        WARDEN_EXIT_LOST, /* ended while nobody looked: a new start of the host, say */
        WARDEN_EXIT_MAX_,
        WARDEN_EXIT_INVALID = -EINVAL,
};

ENUM_DECLARE(warden_exit);

struct instance_status {
        enum runtime_status status; /* never RUNTIME_GONE */
        enum warden_exit reason;
        uint32_t code; /* exit code or signal, as the reason says */
};

static inline bool instance_is_alive(const struct instance_status *s)
{
        return runtime_is_alive((int) s->status);
}

/* Encoded as three numbers; what makes no sense together fails the reader. */
struct codec_reader;
void instance_status_put(struct buf *b, const struct instance_status *s);
struct instance_status instance_status_take(struct codec_reader *r);

/* --- answers --- */

struct warden_found {
        const char *id;
        struct instance_status state;
};

struct warden_reply {
        enum warden_msg call;
        uint64_t request_id;
        int result;       /* 0, or ERR_RETURN(…) */
        const char *text; /* of a failure */

        /* If the result is 0: */
        uint32_t version;                           /* hello */
        struct instance_status state;               /* inspect */
        uint64_t cpu_usec, memory_bytes, processes; /* usage */
        const struct warden_found *found;           /* scan: in the order of their ids */
        size_t n_found;
        bool more;        /* scan: ask again behind the last of these */
        uint32_t skipped; /* scan, in the last page: ours, but incomplete */
};

enum warden_reply_fd {
        WARDEN_FD_PIDFD,
        WARDEN_FD_SOCKET,
        WARDEN_FDS_ALIVE, /* how many there are of what lives */
};

/* How many descriptors belong to it. */
size_t warden_reply_fds(const struct warden_reply *w);

int warden_reply_encode(const struct warden_reply *w, struct buf *b, struct err *e) must_check;
int warden_reply_decode(const struct warden_packet *m, struct arena *a, struct warden_reply *ret,
                        struct err *e) must_check;

/* --- news --- */

enum warden_event_kind {
        WARDEN_EVENT_STARTED, /* a new warden: no id */
        WARDEN_EVENT_DIED,    /* without destroy having been asked for */
        WARDEN_EVENT_OOM,     /* a process of it was killed for want of memory; the sandbox lives */
        WARDEN_EVENT_KIND_MAX_,
        WARDEN_EVENT_INVALID = -EINVAL,
};

ENUM_DECLARE(warden_event_kind);

struct warden_event {
        enum warden_event_kind kind;
        const char *id;
        struct instance_status state; /* died */
};

int warden_event_encode(const struct warden_event *n, struct buf *b, struct err *e) must_check;

int warden_event_decode(const struct warden_packet *m, struct arena *a, struct warden_event *ret,
                        struct err *e) must_check;

/* Which of the two hutchd has received. */
bool warden_is_event(struct str message);

#endif
