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
 * The loop calls kind.begin, which sends the first request. Its on_response sends the next one, or ends
 * the operation with op_succeed or op_fail, which free it. op_new may fail: all functions here accept
 * NULL, so only op_start has to report that.
 */

#include "base/arena.h"
#include "client/client.h"
#include "client/exchange.h"
#include "client/loop.h"

#define OP_RESPONSE_LATE "the response had begun, but did not end by the deadline"

struct op_kind {
        const char *doing; /* "create a sandbox", for messages */
        void (*begin)(struct op *op);
        /* The other members are optional. */
        int64_t timeout_ms; /* default of the call's timeout; 0: the client's */
        bool stream;        /* no deadline unless the call sets one */
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
        void *result; /* freed by result_free if it is not returned */
        struct exchange x;
        struct timer deadline;
        struct timer pause; /* op_wait */
        bool begun, canceled;
        void (*on_endpoint)(struct op *op, const struct hutch_endpoint *agent); /* op_discover */

        int failed; /* while it is being created: a code for op_start */

        /* The request that is being built. */
        struct buf url, body;
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
bool op__to_server(struct op *op);
/* A path of the server outside of the lifecycle API. */
void op_to_root(struct op *op, const char *path);
bool op__to_agent(struct op *op, const struct hutch_endpoint *agent);

/* A value with control characters is HUTCH_INVALID. NULL: curl leaves this header out. */
void op_header(struct op *op, const char *name, const char *value);

/* Rejects a missing or empty text. Returns op_is_valid. */
bool op_need(struct op *op, const char *text, const char *name);

/* op_start will fail with this error. */
void op_refuse(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);

/* Runs the operation, or queues it on its loop. ret may be NULL. */
int op_start(struct op *op, void *ret);

/* --- running --- */

void op_send(struct op *op, const struct request *r);

/* Whether the response is a success; if not, the operation has ended. */
bool op_check_response(struct op *op);

void op_succeed(struct op *op, void *result);
void op_fail(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);
/* Fails with the error of the exchange. */
void op_fail_exchange(struct op *op, int code);
/* Fails because the response could not be decoded. */
void op_fail_response(struct op *op, int code);
/* op_succeed, or op_fail_response if result is NULL. */
void op_finish(struct op *op, void *result, int code);
/* An on_response for requests without a result. */
void op_finish_empty(struct op *op);

/* Calls `next` after a time. */
void op_wait(struct op *op, usec_t time, void (*next)(struct timer *t));

/* Requests the endpoint of a sandbox's agent, then calls `next`, which may use the endpoint until it
 * returns; or ends the operation. */
void op_discover(struct op *op, const char *id,
                 void (*next)(struct op *op, const struct hutch_endpoint *agent));

/* --- calls with one request and one response --- */

struct simple_kind {
        struct op_kind op;
        const char *method;
        bool has_body;
        /* The result of a successful response; NULL after filling *ret_code. NULL: no result. */
        void *(*decode)(struct op *op, struct str text, int *ret_code);
};

void simple_begin(struct op *op);

#define SIMPLE(what, verb, body, decoder)                                           \
        {                                                                           \
                .op = { .doing = (what), .begin = simple_begin }, .method = (verb), \
                .has_body = (body), .decode = (decoder)                             \
        }

/* A decoder with the signature of a simple_kind. */
#define SIMPLE_DECODER(name, decode)                                     \
        static void *name(struct op *op, struct str text, int *ret_code) \
        {                                                                \
                (void) op;                                               \
                return decode(text, ret_code);                           \
        }

/* --- for the loop --- */

void op__run_queued(struct op *op);
void op__ended(struct exchange *x, CURLcode result);
void op__cancel_now(struct op *op);

#endif
