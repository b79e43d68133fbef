/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_ASK_H
#define HUTCH_ENGINE_ASK_H

/*
 * One question to the engine: method, target, perhaps a document; the answer is a status and a bounded
 * text, or a stream of objects (engine/pieces.h).
 *
 * An ask is embedded in who asks and may be used again once `done` was called, also from inside it.
 * `done` comes once, from the loop. Until then its memory stays; ask_cancel leads to `done`, too. What it
 * is asked about may be secret, so all its memory is wiped.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/pieces.h"
#include "http/client.h"

struct ask;
struct worker;

typedef void ask_done_fn(struct ask *k);

#define ASK_ANSWER_MAX  (32 * MiB)
#define ASK_API         "/v1.41"
#define ASK_API_BELOW   "/v1.45" /* from this one on an engine mounts sub-paths of volumes */
#define ASK_MINOR_BELOW 45

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
        ask_done_fn *_done;
        size_t _sent;
        struct http_call _call;
};

void ask_init(struct ask *k, struct worker *w);

/* Must not be running. */
void ask_free(struct ask *k);

/* Forgets the last question; k->target is then filled by ask_to, k->body by the caller. */
void ask_reset(struct ask *k);

/* Right behind it: another version of the API. */
void ask_use_api(struct ask *k, const char *api);

/* Appends to the target; names are to be harmless or encoded (http/url.h). */
void ask_to(struct ask *k, const char *fmt, ...) printf_like(2, 3);

/* `stream`: it may be silent for as long as it likes. */
void ask_start(struct ask *k, const char *method, bool stream, ask_done_fn *done);
void ask_cancel(struct ask *k);

static inline bool ask_is_good(const struct ask *k)
{
        return k->result == 0 && k->status >= 200 && k->status < 300;
}

/* What a bad answer means: ERR_UNAVAILABLE for none, else by its status, with the engine's words. */
int ask_error(struct ask *k, struct err *e, const char *what);

#endif
