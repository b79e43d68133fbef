/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_OP_H
#define HUTCH_CLIENT_OP_H

/*
 * A running call: an operation, which makes one request after the other and ends once.
 *
 * The public function creates it, writes URL, headers and body (callers may change their options as
 * soon as the function returns), and passes it to op_start, which runs it to its end if the call has no
 * loop:
 *
 *         struct op *op = op_new(sizeof(*op), &kind, client, call);
 *
 *         op_to_server(op, "/sandboxes/{}", id);
 *         return op_start(op, ret);
 *
 * The loop then sends kind.request, or calls kind.begin. on_response sends the next request, or ends the
 * operation with op_succeed or op_fail, which free it. op_new may fail: all functions here accept NULL, so
 * only op_start has to report that.
 */

#include "base/arena.h"
#include "client/client.h"
#include "client/decode.h"
#include "client/exchange.h"
#include "client/framing.h"
#include "client/loop.h"

#define OP_RESPONSE_LATE "the response had begun, but did not end by the deadline"

struct op_kind {
        const char *doing; /* "create a sandbox", for messages */
        /* The first request, and mostly the only one. */
        struct request request;
        /* The other members are optional. */
        const struct decoder *result; /* of a response without on_response */
        void (*begin)(struct op *op); /* called instead of sending `request` */
        int64_t timeout_ms;           /* default of the call's timeout; 0: the client's */
        bool stream;                  /* no deadline unless the call sets one */
        /* Describes what did not happen "by the deadline". */
        const char *(*timeout_text)(struct op *op);
        /* Called at the end, while all descriptors are still open. */
        void (*stop)(struct op *op);
        /* Frees what the operation owns. */
        void (*release)(struct op *op);
};

struct op {
        struct list node, queue_node;
        const struct op_kind *kind;
        struct hutch_client *client;
        struct hutch_loop *loop;
        struct hutch_call *call;
        void **ret;
        void *result;        /* freed by result_free if it is not returned */
        const void *context; /* of decoders */
        struct exchange x;
        struct timer deadline;
        struct timer pause; /* op_wait */
        bool begun, canceled;
        char *sandbox_id;           /* op_to_sandbox: discover its agent first; or NULL */
        struct buf path;            /* of the request to a discovered agent */
        const struct request *then; /* that request */

        int failed; /* while it is being created: a code for op_start */

        /* The request that is being built. */
        struct buf url, body;
        struct hutch_source source; /* instead of the body; of request.has_source */
        struct curl_slist *headers; /* own ones; the client's list may follow them */
        bool headers_shared;
};

/* --- creating --- */

struct op *op_new(size_t size, const struct op_kind *kind, struct hutch_client *client,
                  struct hutch_call *call) must_check;

/* Nothing has failed so far. */
bool op_is_valid(const struct op *op);

/* Copies the caller's options (see options_copy). `name` is for the message if they are rejected. */
void op_take_options(struct op *op, void *to, size_t size, const void *from, const char *name);

/* A copy of a string that must not be empty, or NULL. */
char *op_strdup(struct op *op, const char *text, const char *name);

/* The next request: a path of the lifecycle API, or of an agent, with a pattern of url_add. */
#define op_to_server(op, ...)                             \
        do {                                              \
                if (op__to_server(op))                    \
                        url_add(&(op)->url, __VA_ARGS__); \
        } while (0)
#define op_to_agent(op, agent, ...)                       \
        do {                                              \
                if (op__to_agent(op, agent))              \
                        url_add(&(op)->url, __VA_ARGS__); \
        } while (0)
/* A path of the agent of a sandbox, which is discovered first. */
#define op_to_sandbox(op, id, ...)                         \
        do {                                               \
                if (op__to_sandbox(op, id))                \
                        url_add(&(op)->path, __VA_ARGS__); \
        } while (0)
bool op__to_server(struct op *op);
/* A path of the server outside of the lifecycle API. */
void op_to_root(struct op *op, const char *path);
bool op__to_agent(struct op *op, const struct hutch_endpoint *agent);
bool op__to_sandbox(struct op *op, const char *id);

/* A value with control characters is HUTCH_INVALID. NULL: curl leaves this header out. */
void op_header(struct op *op, const char *name, const char *value);

/* Rejects a missing or empty text. Returns op_is_valid. */
bool op_need(struct op *op, const char *text, const char *name);

/* op_start will fail with this error. */
void op_refuse(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);

/* Runs the operation, or queues it on its loop. ret may be NULL; an on_response whose result is no object
 * takes op->ret and writes to it. */
int op_start(struct op *op, void *ret);

/* --- running --- */

void op_send(struct op *op, const struct request *r);

/* Whether the response is a success; if not, the operation has ended. */
bool op_check_response(struct op *op);

void op_succeed(struct op *op, void *result);
void op_fail(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);
/* Fails with the error of the exchange. */
void op_fail_exchange(struct op *op, int code);
/* The decoded response. NULL: it is not a success or cannot be decoded, and the operation has ended. */
void *op_decode(struct op *op, const struct decoder *decoder);
/* Succeeds with the content of a buffer, which the result takes over; n: bytes of the result. */
void op_finish_data(struct op *op, struct buf *b, uint64_t n);

/* Passes bytes of the response to a framing; null bytes: the response has ended. Failures are those of the
 * exchange. */
int op_feed(struct op *op, struct framing *f, struct str bytes, framing_event_fn *event) must_check;

/* Calls `next` after a time. */
void op_wait(struct op *op, usec_t time, void (*next)(struct op *op));

/* Requests the endpoint of a sandbox's agent, then sends `then` to op->path there; or ends the operation. */
void op_discover(struct op *op, const char *id, const struct request *then);

/* A kind with one request and one response. */
#define SIMPLE(what, verb, body, decoder)                                             \
        {                                                                             \
                .doing = (what), .request = { .method = (verb), .has_body = (body) }, \
                .result = (decoder)                                                   \
        }

/* --- for the loop --- */

void op__run_queued(struct op *op);
void op__ended(struct exchange *x, CURLcode result);
void op__cancel_now(struct op *op);

#endif
