/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_WIRE_H
#define HUTCH_PLAN_WIRE_H

/*
 * What hutchd and hutch-warden say to each other, over a pair of sockets that keep messages apart
 * (SOCK_SEQPACKET) and carry descriptors.
 *
 *         hutchd                          warden
 *         ──────                          ──────
 *                       ◄──  news         started
 *         request hello ──►  ◄── answer   from now on it listens to the rest
 *         request …     ──►  ◄── answer   one for each, in any order, with the request's ticket
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
 * Numbers, texts and pieces are encoded as in plan/bytes.h. A message begins with a magic number that
 * says which of the three it is, its kind (8 bits) and its ticket (64 bits; 0 in news).
 *
 * Descriptors:
 *         create     request: the sandbox's record, as bytes that mean nothing to the warden, in a sealed
 *                    memfd (os/memfd.h): what can't change nor keep a reader waiting. It is kept
 *                    beside the sandbox, for scan
 *                    answer: WIRE_FD_PIDFD, WIRE_FD_SOCKET
 *         inspect    answer: the same, if it lives
 *         scan       answer: one for each sandbox found, its record, open for reading
 * WIRE_FD_SOCKET leads to the socket of the sandbox's agent (O_PATH): who holds it connects by
 * /proc/self/fd/N, with no right to any folder on the way.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/str.h"
#include "plan/spec.h"

#define WIRE_VERSION     2U
#define WIRE_MESSAGE_MAX (PLAN_SPEC_MAX + 256)
#define WIRE_TEXT_MAX    ERR_MESSAGE_MAX
#define WIRE_RECORD_MAX  (4 * MiB)
#define WIRE_PAGE_MAX    32 /* sandboxes in one answer to scan */
#define WIRE_FDS_MAX     WIRE_PAGE_MAX

/* --- requests --- */

enum wire_call {
        WIRE_HELLO,
        WIRE_CREATE,
        WIRE_DESTROY, /* 0 also if there is none */
        WIRE_PAUSE,
        WIRE_RESUME,
        WIRE_INSPECT,
        WIRE_SCAN,
        WIRE_USAGE,
        WIRE_CALL_MAX_,
        WIRE_CALL_INVALID = -EINVAL,
};

ENUM_DECLARE(wire_call);

/* How far the two have come. */
enum wire_phase {
        WIRE_PHASE_NEW,
        WIRE_PHASE_READY,
};

struct wire_rule {
        unsigned phases; /* 1 << enum wire_phase */
        size_t size_max;
        unsigned fds; /* sealed memfds all */
};

extern const struct wire_rule wire_rules[WIRE_CALL_MAX_];

struct wire_request {
        enum wire_call call;
        uint64_t ticket;
        uint32_t version; /* hello */
        const char *id;   /* destroy to usage. scan: begin behind this one, or "" */
        struct str spec;  /* create: see plan/spec.h; names no uids */
};

int wire_request_encode(const struct wire_request *q, struct buf *b, struct err *e) must_check;

/* Texts are copied into the arena, the spec is a view into the message and not looked at. ERR_INVALID,
 * and ERR_CONFLICT for one that is not allowed in this phase. */
struct wire_envelope {
        struct str message;
        size_t n_fds; /* that came with it */
};
int wire_request_decode(const struct wire_envelope *m, enum wire_phase phase, struct arena *a,
                        struct wire_request *ret, struct err *e) must_check;

/* Of a request that was refused, as far as it can be read: whom the refusal is for. */
bool wire_request_peek(struct str message, enum wire_call *ret_call, uint64_t *ret_ticket);

/* --- what is told of a sandbox --- */

enum wire_life {
        WIRE_RUNNING,
        WIRE_PAUSED,
        WIRE_ENDED, /* its agent, or its entrypoint, has ended with 0 */
        WIRE_DEAD,
        WIRE_LIFE_MAX_,
        WIRE_LIFE_INVALID = -EINVAL,
};

enum wire_reason {
        WIRE_REASON_NONE, /* it lives */
        WIRE_EXITED,      /* status is the exit code */
        WIRE_SIGNALED,    /* status is the signal */
        WIRE_OOM_KILLED,
        WIRE_LOST, /* ended while nobody looked: a new start of the machine, say */
        WIRE_REASON_MAX_,
        WIRE_REASON_INVALID = -EINVAL,
};

ENUM_DECLARE(wire_life);
ENUM_DECLARE(wire_reason);

struct wire_state {
        enum wire_life life;
        enum wire_reason reason;
        uint32_t status;
};

static inline bool wire_lives(const struct wire_state *s)
{
        return s->life == WIRE_RUNNING || s->life == WIRE_PAUSED;
}

/* Encoded as three numbers; what makes no sense together fails the reader. */
struct bytes;
void wire_state_put(struct buf *b, const struct wire_state *s);
struct wire_state wire_state_take(struct bytes *r);

/* --- answers --- */

struct wire_found {
        const char *id;
        struct wire_state state;
};

struct wire_answer {
        enum wire_call call;
        uint64_t ticket;
        int result;       /* 0, or ERR_RETURN(…) */
        const char *text; /* of a failure */

        /* If the result is 0: */
        uint32_t version;                           /* hello */
        struct wire_state state;                    /* inspect */
        uint64_t cpu_usec, memory_bytes, processes; /* usage */
        const struct wire_found *found;             /* scan: in the order of their ids */
        size_t n_found;
        bool more;        /* scan: ask again behind the last of these */
        uint32_t skipped; /* scan, in the last page: ours, but incomplete */
};

enum wire_answer_fd {
        WIRE_FD_PIDFD,
        WIRE_FD_SOCKET,
        WIRE_FD_LIVING, /* how many there are of what lives */
};

/* How many descriptors belong to it. */
size_t wire_answer_fds(const struct wire_answer *w);

int wire_answer_encode(const struct wire_answer *w, struct buf *b, struct err *e) must_check;
int wire_answer_decode(const struct wire_envelope *m, struct arena *a, struct wire_answer *ret,
                       struct err *e) must_check;

/* --- news --- */

enum wire_news_kind {
        WIRE_STARTED, /* a new warden: no id */
        WIRE_DIED,    /* without destroy having been asked for */
        WIRE_OOM,     /* a process of it was killed for want of memory; the sandbox lives */
        WIRE_NEWS_MAX_,
        WIRE_NEWS_INVALID = -EINVAL,
};

ENUM_DECLARE(wire_news_kind);

struct wire_news {
        enum wire_news_kind kind;
        const char *id;
        struct wire_state state; /* died */
};

int wire_news_encode(const struct wire_news *n, struct buf *b, struct err *e) must_check;

int wire_news_decode(const struct wire_envelope *m, struct arena *a, struct wire_news *ret,
                     struct err *e) must_check;

/* Which of the two hutchd has received. */
bool wire_is_news(struct str message);

#endif
