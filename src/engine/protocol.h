/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_PROTOCOL_H
#define HUTCH_ENGINE_PROTOCOL_H

/*
 * The protocol between hutchd and its engine worker: JSON objects by closed tables, in frames (net/channel.h).
 *
 *         hutchd                          hutch-engine
 *         ──────                          ────────────
 *         request ──────────────►
 *                 ◄──────────────  part   (scan, probe, snapshots: any number)
 *                 ◄──────────────  reply  one per request, in any order, with its request_id
 *                 ◄──────────────  event  at any time
 *
 * The worker does not trust hutchd: a frame that is not exactly a request of this table ends the conversation;
 * an invalid record or name is refused. What makes a container what it is (mounts, capabilities, seccomp filter,
 * networks) is not in any request; the worker decides it. Whoever takes over hutchd can create and remove sandboxes
 * of this installation, and nothing else.
 *
 * Requests hold secrets (values of variables, credentials of registries). Frames are wiped after use, and no
 * part of a request is ever logged.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "model/create.h"
#include "model/runtime_status.h"

#define ENGINE_PROTOCOL_VERSION 3

/* A record, escaped once more, and what a request may hold besides. */
#define ENGINE_FRAME_MAX (16 * MiB)

enum engine_call {
        ENGINE_HELLO,   /* the first request */
        ENGINE_CREATE,  /* reply: a connection to the agent, as a descriptor */
        ENGINE_DESTROY, /* succeeds also if there is none */
        ENGINE_PAUSE,
        ENGINE_RESUME,
        ENGINE_INSPECT,
        ENGINE_SCAN,    /* parts: what was found */
        ENGINE_CONNECT, /* reply: a connection to the agent, as a descriptor */
        ENGINE_USAGE,
        ENGINE_PROBE,           /* parts: facts */
        ENGINE_SNAPSHOT,        /* of a sandbox, as an image of ours */
        ENGINE_SNAPSHOT_REMOVE, /* succeeds also if there is none */
        ENGINE_SNAPSHOTS,       /* parts: their ids; removes intermediate images of a crash */
        ENGINE_CANCEL, /* of another request, which is replied to; itself it has no reply */
        ENGINE_CALL_MAX_,
        ENGINE_CALL_INVALID_ = -EINVAL,
};

ENUM_DECLARE(engine_call); /* hello, create … */

struct engine_request {
        int call; /* enum engine_call */
        int64_t request_id;
        int64_t version;            /* hello */
        struct str installation;    /* hello: whose sandboxes */
        struct str id;              /* destroy to usage, but for scan; snapshot */
        struct str record;          /* create: as sandbox_encode writes it */
        struct json_map secret_env; /* create */
        struct image_auth *auth;    /* create, or NULL */
        int64_t other;              /* cancel: the request */
        struct str snapshot;        /* snapshot, snapshot_remove: its id */
};

/* Why a sandbox has ended. */
enum engine_reason {
        ENGINE_EXITED,
        ENGINE_SIGNALED,
        ENGINE_OOM_KILLED,
        ENGINE_NEVER_STARTED, /* created, and a crash came before its start */
        ENGINE_REASON_MAX_,
        ENGINE_REASON_INVALID_ = -EINVAL,
};

ENUM_DECLARE(engine_reason); /* EXITED, SIGNALED … */

struct engine_state {
        int status;         /* enum runtime_status */
        int reason;         /* enum engine_reason, if it is ended or dead; else invalid */
        struct str message; /* for people; the null view if it is alive */
};

struct engine_usage {
        int64_t cpu_usec, memory_bytes, processes;
};

struct engine_fact {
        struct str name;
        bool ok;
        struct str text;
};

/* What the worker sends. Exactly one of: a reply (done), a part of one (found, fact or snapshot), an event (no
 * request_id). */
struct engine_message {
        int64_t request_id; /* 0: an event */

        /* --- a reply --- */
        bool done;
        int64_t code;    /* 0, or 1 + enum err_code */
        struct str text; /* of a failure */
        bool has_fd;     /* a descriptor comes with it */
        int64_t version; /* hello */
        struct engine_state *state;
        struct engine_usage *usage;
        int64_t skipped; /* scan */

        /* --- a part --- */
        struct str found; /* a record, with its `state` */
        struct engine_fact *fact;
        struct str snapshot; /* the id of one */

        /* --- an event --- */
        struct str died; /* the id of a sandbox, with its `state` */
        bool watching;   /* the event stream has begun (again): earlier ends were not reported */
};

extern const struct json_field engine_request_fields[];
extern const struct json_field engine_message_fields[];

/* Append; a failure is b's. */
void engine_request_encode(struct buf *b, const struct engine_request *q);
void engine_message_encode(struct buf *b, const struct engine_message *m);

/* ERR_INVALID; strings are views in the arena. A request has exactly the fields of its call. */
int engine_request_decode(struct str text, struct arena *a, struct engine_request *ret,
                          struct err *e) must_check;
int engine_message_decode(struct str text, struct arena *a, struct engine_message *ret,
                          struct err *e) must_check;

#endif
