/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_PROTOCOL_H
#define HUTCH_ENGINE_PROTOCOL_H

/*
 * What hutchd and its engine worker say to each other: JSON objects by closed tables, in frames
 * (net/channel.h).
 *
 *         hutchd                          hutch-engine
 *         ──────                          ────────────
 *         request ──────────────►
 *                 ◄──────────────  part   (scan, probe, snapshots: any number)
 *                 ◄──────────────  answer one for each request, in any order, with its request_id
 *                 ◄──────────────  news   when it likes
 *
 * The worker does not believe hutchd: a frame that is not exactly a request of this table ends the
 * conversation, a record or name in it that is none is refused. What makes a container what it is, mounts,
 * capabilities, filters, networks, is not in any request; it is the worker's own. Whoever takes over
 * hutchd can make and remove sandboxes of this installation, and nothing else.
 *
 * Requests hold secrets (values of variables, credentials of registries). Frames with them are wiped when
 * they have been used, and no part of a request is ever logged.
 *
 * Ends. When the pair of sockets closes, hutchd is gone: creates that are under way are undone, and the
 * worker ends. It holds a lock on its folder until then, which the next one waits for: what the next one
 * finds in the engine is all there is.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "model/create.h"
#include "model/runtime_status.h"

#define ENGINE_PROTOCOL_VERSION 2

/* A record, with JSON's escapes once more, and what a request may bring besides. */
#define ENGINE_FRAME_MAX (16 * MiB)

enum engine_call {
        ENGINE_HELLO,   /* first; others are refused before */
        ENGINE_CREATE,  /* answer: a connection to the agent, as descriptor */
        ENGINE_DESTROY, /* done also if there is none */
        ENGINE_PAUSE,
        ENGINE_RESUME,
        ENGINE_INSPECT,
        ENGINE_SCAN,    /* parts: what was found */
        ENGINE_CONNECT, /* answer: a connection to the agent, as descriptor */
        ENGINE_USAGE,
        ENGINE_PROBE,           /* parts: facts */
        ENGINE_SNAPSHOT,        /* of a sandbox, as an image of ours */
        ENGINE_SNAPSHOT_REMOVE, /* done also if there is none */
        ENGINE_SNAPSHOTS, /* parts: ids of those that are there; what was left half-made goes */
        ENGINE_CANCEL,    /* of another request_id, which is answered; itself it has no answer */
        ENGINE_CALL_MAX_,
        ENGINE_CALL_INVALID_ = -EINVAL,
};

ENUM_DECLARE(engine_call); /* hello, create … */

struct engine_request {
        int call; /* enum engine_call */
        int64_t request_id;
        int64_t version;            /* hello */
        struct str installation;    /* hello: whose sandboxes this is about */
        struct str id;              /* destroy to usage, but for scan; snapshot */
        struct str record;          /* create: as sandbox_encode writes it */
        struct json_map secret_env; /* create */
        struct image_auth *auth;    /* create, or NULL */
        int64_t other;              /* cancel: the request_id */
        struct str snapshot;        /* snapshot, snapshot_remove: its id */
};

/* Our words for an end. */
enum engine_reason {
        ENGINE_EXITED,
        ENGINE_SIGNALED,
        ENGINE_OOM_KILLED,
        ENGINE_NEVER_STARTED, /* made, and a crash came before its start */
        ENGINE_REASON_MAX_,
        ENGINE_REASON_INVALID_ = -EINVAL,
};

ENUM_DECLARE(engine_reason); /* EXITED, SIGNALED … */

struct engine_state {
        int status;         /* enum runtime_status */
        int reason;         /* enum engine_reason, if it is ended or dead; else invalid */
        struct str message; /* for people; null if it lives */
};

struct engine_usage {
        int64_t cpu_usec, memory_bytes, processes;
};

struct engine_fact {
        struct str name;
        bool ok;
        struct str text;
};

/* What the worker says. Exactly one of three: an answer (done), a part of one (found, fact or
 * snapshot), news (no request_id). */
struct engine_message {
        int64_t request_id; /* 0: news */

        /* --- an answer --- */
        bool done;
        int64_t code;    /* 0, or 1 + enum err_code */
        struct str text; /* of a failure */
        bool has_fd;     /* a descriptor comes with it */
        int64_t version; /* hello */
        struct engine_state *state;
        struct engine_usage *usage;
        int64_t skipped; /* scan */

        /* --- a part --- */
        struct str found; /* a record; `state` says how it is doing */
        struct engine_fact *fact;
        struct str snapshot; /* the id of one */

        /* --- news --- */
        struct str died; /* the id of a sandbox; `state` says how */
        bool watching;   /* the stream of events has begun (anew): what ended before was not told */
};

extern const struct json_field engine_request_fields[];
extern const struct json_field engine_message_fields[];

/* Append to b, whose failure is the only one. */
void engine_request_encode(struct buf *b, const struct engine_request *q);
void engine_message_encode(struct buf *b, const struct engine_message *m);

/* ERR_INVALID; views are in the arena. A request has what its call needs and nothing else. */
int engine_request_decode(struct str text, struct arena *a, struct engine_request *ret,
                          struct err *e) must_check;
int engine_message_decode(struct str text, struct arena *a, struct engine_message *ret,
                          struct err *e) must_check;

#endif
