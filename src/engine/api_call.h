/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_API_CALL_H
#define HUTCH_ENGINE_API_CALL_H

/*
 * One call of the engine's HTTP API: method, target, perhaps a document. The response is a status and a bounded
 * text, or a stream of JSON objects (engine/json_stream.h).
 *
 * A call is embedded in its user and may be used again once `done` was called, even from inside it. `done` runs once,
 * from the loop; the memory must stay until then. api_call_cancel leads to `done`, too. Calls carry secrets, so all
 * their memory is wiped.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/json_stream.h"
#include "http/client.h"

struct api_call;
struct engine_worker;

typedef void api_call_done_fn(struct api_call *k);

#define API_RESPONSE_MAX  (32 * MiB)
#define API_BASE          "/v1.41"
#define API_BASE_SUBPATH  "/v1.45" /* since this version engines mount sub-paths of volumes */
#define API_MINOR_SUBPATH 45

struct api_call {
        struct engine_worker *worker;
        struct buf target;
        struct buf body; /* the JSON document to send; empty: none */
        struct str
                borrowed; /* sent instead, if there is one: a tar archive, which the caller keeps */
        struct str auth;  /* value of X-Registry-Auth, or the null view */
        struct json_stream *objects; /* or NULL: the response is collected */
        void (*begun)(
                struct api_call *k); /* the head of a stream has come, with status 200; or NULL */
        bool slow; /* the response may take long: the engine copies something large */

        int status;          /* of HTTP; 0: no response */
        int result;          /* 0, or a negative errno: no response, or an incomplete one */
        struct buf response; /* what was collected; of an error also if objects were expected */
        struct arena arena;

        bool running;
        api_call_done_fn *_done;
        struct http_call _call;
};

void api_call_init(struct api_call *k, struct engine_worker *w);

/* Must not be running. */
void api_call_done(struct api_call *k);

/* Starts over; k->target is then filled by api_call_target, k->body by the caller. */
void api_call_reset(struct api_call *k);

/* Appends to the target; names must be safe or encoded (http/url.h). */
void api_call_target(struct api_call *k, const char *fmt, ...) printf_like(2, 3);

/* `stream`: the response may pause for any time. */
void api_call_start(struct api_call *k, const char *method, bool stream, api_call_done_fn *done);
void api_call_cancel(struct api_call *k);

static inline bool api_call_ok(const struct api_call *k)
{
        return k->result == 0 && k->status >= 200 && k->status < 300;
}

/* The error of a call that is not ok: ERR_UNAVAILABLE without a response, else by its status, with the engine's
 * message. */
int api_call_error(struct api_call *k, struct err *e, const char *what);

#endif
