/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_PROTOCOL_H
#define HUTCH_PLAN_PROTOCOL_H

/*
 * The protocol between hutchd and hutch-warden, over a socket pair that preserves packets (SOCK_SEQPACKET) and
 * carries descriptors.
 *
 *         hutchd                          warden
 *         ──────                          ──────
 *                       ◄──  event        started
 *         request hello ──►  ◄── reply    from now on it accepts the other requests
 *         request …     ──►  ◄── reply    one for each, in any order, with the id of the request
 *                       ◄──  event        died, oom
 *
 * The socket pair outlives both programs: the launcher holds both ends and passes them to a process that it
 * restarts. So neither side sees an end of file when the other one ends. `started` tells hutchd that pending
 * requests will not be replied to. hello tells the warden that hutchd is a new process: it does not reply to
 * requests of the old one any more. After hello, hutchd drops everything until the reply to it.
 *
 * The warden is root and hutchd faces the network, so there is one closed table of requests: name, phase, maximum
 * size, and descriptors. A message that does not match is refused as a whole, and its descriptors are closed.
 *
 * Messages are encoded with base/codec.h. A message begins with a magic number for its type (request, reply,
 * event), its kind (8 bits) and its request id (64 bits; 0 in events).
 *
 * Descriptors:
 *         create     request: the record of the sandbox, opaque to the warden, in a sealed memfd (os/memfd.h),
 *                    which can neither change nor block its reader. It is stored beside the sandbox, for scan
 *                    reply: WARDEN_FD_PIDFD, WARDEN_FD_SOCKET
 *         inspect    reply: the same, if the sandbox is alive
 *         scan       reply: one for each sandbox found, its record, open for reading
 * WARDEN_FD_SOCKET refers to the socket of the sandbox's agent (O_PATH). Its holder connects to /proc/self/fd/N,
 * without access to any directory above it.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/str.h"
#include "model/runtime_status.h"
#include "plan/spec.h"

#define WARDEN_PROTOCOL_VERSION 4U
#define WARDEN_MSG_MAX          (PLAN_SPEC_MAX + 256)
#define WARDEN_TEXT_MAX         ERR_MESSAGE_MAX
#define WARDEN_RECORD_MAX       (4 * MiB)
#define WARDEN_PAGE_MAX         32 /* sandboxes in one reply to scan */
#define WARDEN_FDS_MAX          WARDEN_PAGE_MAX

/* --- requests --- */

enum warden_msg {
        WARDEN_MSG_HELLO,
        WARDEN_MSG_CREATE,
        WARDEN_MSG_DESTROY, /* succeeds if there is none */
        WARDEN_MSG_PAUSE,
        WARDEN_MSG_RESUME,
        WARDEN_MSG_INSPECT,
        WARDEN_MSG_SCAN,
        WARDEN_MSG_USAGE,
        WARDEN_MSG_KIND_MAX_,
        WARDEN_MSG_INVALID = -EINVAL,
};

ENUM_DECLARE(warden_msg);

/* Of the conversation. */
enum warden_phase {
        WARDEN_PHASE_NEW,
        WARDEN_PHASE_READY,
};

struct warden_rule {
        unsigned phases; /* 1 << enum warden_phase */
        size_t size_max;
        unsigned fds; /* all of them sealed memfds */
};

extern const struct warden_rule warden_rules[WARDEN_MSG_KIND_MAX_];

struct warden_request {
        enum warden_msg call;
        uint64_t request_id;
        uint32_t version; /* hello */
        const char *id;   /* destroy to usage; scan: list the sandboxes after this one, or "" */
        struct str spec;  /* create: plan/spec.h */
};

int warden_request_encode(const struct warden_request *q, struct buf *b, struct err *e) must_check;

/* A received message. */
struct warden_packet {
        struct str message;
        size_t n_fds; /* received with it */
};
/* Strings are copied into the arena; the spec is a view into the message and not decoded. ERR_INVALID;
 * ERR_CONFLICT: not allowed in this phase. */
int warden_request_decode(const struct warden_packet *m, enum warden_phase phase, struct arena *a,
                          struct warden_request *ret, struct err *e) must_check;

/* What a refusal of an invalid request must refer to; false if even that can't be read. */
bool warden_request_peek(struct str message, enum warden_msg *ret_call, uint64_t *ret_request_id);

/* --- the status of a sandbox --- */

enum warden_exit {
        WARDEN_EXIT_NONE,   /* it is alive */
        WARDEN_EXIT_CODE,   /* code is the exit code */
        WARDEN_EXIT_SIGNAL, /* code is the signal */
        WARDEN_EXIT_OOM,
        WARDEN_EXIT_LOST, /* it ended unobserved, such as by a reboot of the host */
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

/* Three numbers; a combination that can't occur fails the reader. */
struct codec_reader;
void instance_status_put(struct buf *b, const struct instance_status *s);
struct instance_status instance_status_take(struct codec_reader *r);

/* --- replies --- */

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
        struct instance_status state;               /* create, inspect */
        uint64_t cpu_usec, memory_bytes, processes; /* usage */
        const struct warden_found *found;           /* scan: in the order of their ids */
        size_t n_found;
        bool more;        /* scan: there are sandboxes after the last of these */
        uint32_t skipped; /* scan, last page: directories that could not be read */
};

enum warden_reply_fd {
        WARDEN_FD_PIDFD,
        WARDEN_FD_SOCKET,
        WARDEN_FDS_ALIVE, /* how many an instance has that is alive */
};

/* How many descriptors the reply has. */
size_t warden_reply_fds(const struct warden_reply *w);

int warden_reply_encode(const struct warden_reply *w, struct buf *b, struct err *e) must_check;
int warden_reply_decode(const struct warden_packet *m, struct arena *a, struct warden_reply *ret,
                        struct err *e) must_check;

/* --- events --- */

enum warden_event_kind {
        WARDEN_EVENT_STARTED, /* a new warden; has no id */
        WARDEN_EVENT_DIED,    /* without a destroy request */
        WARDEN_EVENT_OOM,     /* a process of it was killed, out of memory; the sandbox is alive */
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

/* Whether a message to hutchd is an event; else it is a reply. */
bool warden_is_event(struct str message);

#endif
