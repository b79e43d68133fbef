/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_API_CALL_H
#define HUTCH_ENGINE_API_CALL_H

/*
 * One question to the engine: method, target, perhaps a document; the answer is a status and a bounded
 * text, or a stream of objects (engine/json_stream.h).
 *
 * An ask is embedded in who asks and may be used again once `done` was called, also from inside it.
 * `done` comes once, from the loop. Until then its memory stays; api_call_cancel leads to `done`, too. What it
 * is asked about may be secret, so all its memory is wiped.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/json_stream.h"
#include "http/client.h"

struct ask;
struct worker;

typedef void api_call_done_fn(struct ask *k);

#define API_RESPONSE_MAX  (32 * MiB)
#define API_BASE          "/v1.41"
#define API_BASE_SUBPATH  "/v1.45" /* from this one on an engine mounts sub-paths of volumes */
#define API_MINOR_SUBPATH 45

struct ask {
        struct worker *worker;
        struct buf target;
        struct buf body; /* the document that is sent; empty: none */
        struct str
                borrowed; /* sent instead, if there is one: an archive that somebody else keeps */
        struct str auth;  /* value of X-Registry-Auth, or null */
        struct pieces *pieces;        /* or NULL: the answer is collected */
        void (*begun)(struct ask *k); /* or NULL: a stream's head has come, status is 200 */
        bool slow; /* the answer may take its time: it copies what may be large */

        int status;        /* of HTTP; 0: there was no answer */
        int result;        /* 0, or a negative errno if there was none, or not a whole one */
        struct buf answer; /* what was collected: of a failure also if there are pieces */
        struct arena arena;

        bool running;
        api_call_done_fn *_done;
        struct http_call _call;
};

void api_call_init(struct ask *k, struct worker *w);

/* Must not be running. */
void api_call_done(struct ask *k);

/* Forgets the last question; k->target is then filled by api_call_target, k->body by the caller. */
void api_call_reset(struct ask *k);

/* Right behind it: another version of the API. */
void api_call_use_base(struct ask *k, const char *api);

/* Appends to the target; names are to be harmless or encoded (http/url.h). */
void api_call_target(struct ask *k, const char *fmt, ...) printf_like(2, 3);

/* `stream`: it may be silent for as long as it likes. */
void api_call_start(struct ask *k, const char *method, bool stream, api_call_done_fn *done);
void api_call_cancel(struct ask *k);

static inline bool api_call_ok(const struct ask *k)
{
        return k->result == 0 && k->status >= 200 && k->status < 300;
}

/* What a bad answer means: ERR_UNAVAILABLE for none, else by its status, with the engine's words. */
int api_call_error(struct ask *k, struct err *e, const char *what);

#endif
