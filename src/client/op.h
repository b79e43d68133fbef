/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_OP_H
#define HUTCH_CLIENT_OP_H

/*
 * A call while it runs: an operation, which asks one thing after the other and ends once.
 *
 * A starting function makes it, puts into it everything that is needed later (addresses, headers and
 * bodies are written there and then: callers may change their options the moment it returns), and gives
 * it to op_start, which runs it to its end if the call has no loop:
 *
 *         struct op *op = op_new(sizeof(*op), &kind, client, call);
 *
 *         op_to_server(op, "/sandboxes/{}", id);
 *         return op_start(op, ret);
 *
 * kind.begin is called from the loop and sends the first request; what comes back is told to its
 * `on_response`, which sends the next one or ends the operation with op_succeed or op_fail. After either
 * the operation is gone. op_new may fail: all functions here take NULL for an operation that could not
 * be made, so that a starting function asks once, in op_start.
 */

#include "base/arena.h"
#include "client/client.h"
#include "client/exchange.h"
#include "client/loop.h"

#define OP_RESPONSE_LATE "the answer had begun, but did not end by the deadline"

struct op_kind {
        const char *doing; /* "create a sandbox", for messages */
        void (*begin)(struct op *op);
        /* The rest may be left out. */
        int64_t timeout_ms; /* if the call does not say; 0: the client's */
        bool stream;        /* no deadline unless the call has one */
        /* What was not to be had "by the deadline". */
        const char *(*timeout_text)(struct op *op);
        /* At the end, while all descriptors are still open. */
        void (*stop)(struct op *op);
        /* What the operation owns besides. */
        void (*release)(struct op *op);
};

struct op {
        struct list node, queue_node;
        const struct op_kind *kind;
        struct hutch_client *client;
        struct hutch_loop *loop;
        struct hutch_call *call;
        void **ret;
        void *result; /* freed by result_free if nobody gets it */
        struct exchange x;
        struct timer deadline;
        struct timer pause; /* for kinds that wait */
        bool begun, canceled;
        void (*on_endpoint)(struct op *op, const struct hutch_endpoint *agent); /* endpoints.h */
        int failed; /* while it is being made: a code, told by op_start */

        /* The request that is being made. */
        struct buf url, body;
        struct curl_slist *headers; /* own ones; the client's may hang behind them */
        bool headers_shared;
};

/* --- making --- */

struct op *op_new(size_t size, const struct op_kind *kind, struct hutch_client *client,
                  struct hutch_call *call) must_check;

/* What is asked for next: a path of the lifecycle API, or of an agent, by url_add's pattern. */
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

/* The same, of what the server has besides the lifecycle API. */
void op_to_root(struct op *op, const char *path);
bool op__to_agent(struct op *op, const struct hutch_endpoint *agent);

/* A value with control characters is HUTCH_INVALID. NULL: curl is to leave this header out. */
void op_header(struct op *op, const char *name, const char *value);

/* A text that must not be empty. Returns whether all is well so far. */
bool op_need(struct op *op, const char *text, const char *name);

/* It can't be started: op_start will say so. */
void op_refuse(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);

/* Runs the operation, or puts it on its loop. Where the result is to go may be NULL. */
int op_start(struct op *op, void *ret);

/* --- running --- */

/* The next request is of this method; for exchange_send. */
void op_send(struct op *op, const struct request *r);

/* Whether the answer is a success; if not, the operation has ended. */
bool op_check_response(struct op *op);

void op_succeed(struct op *op, void *result);
void op_fail(struct op *op, int code, const char *fmt, ...) printf_like(3, 4);

/* Without request: after a time, `next` is called. */
void op_wait(struct op *op, usec_t time, void (*next)(struct timer *t));

/* --- for the loop --- */

void op__run_queued(struct op *op);
void op__ended(struct exchange *x, CURLcode result);
void op__cancel_now(struct op *op);

#endif
