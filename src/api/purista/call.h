/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_CALL_H
#define HUTCH_API_PURISTA_CALL_H

/*
 * One command: from the bytes of a request to an operation of the service, and back to a response.
 *
 *         body ─ parse ─ decode ─ authenticate ─ compare with the payload ─ locate ─ await ─ start
 *                  │ 400     │ 400         │ 401, 403            │ 403               │ inner
 *                  └─────────┴─────────────┴─────────────────────┴──► response ◄─────┘
 *
 * The call holds the request, and everything of its own, until the response is sent or the client is gone; then it frees
 * itself. While `inner` runs, a client that leaves cancels it and its `done` ends the call; so a `done` starts with
 * purista_call_continue.
 */

#include "api/access/access.h"
#include "api/purista/payload.h"
#include "api/purista/purista.h"
#include "api/purista/text.h"

struct purista_call;

struct purista_call {
        struct http_req *req;
        struct purista_config config; /* a copy: a reload may replace the original meanwhile */
        const struct purista_command *command;
        bool bridged; /* the response is for a bridge */

        struct buf body;
        json_t *doc;
        struct arena arena;
        struct purista_payload in;
        struct caller caller;
        struct owner owner;
        const struct sandbox *record; /* valid until the callback returns to the loop */

        struct op *inner;        /* canceled when the client leaves */
        bool has_exec, has_read; /* u.exec, u.read hold results to free */
        struct str *paths;       /* of in.files, as the caller wrote them */
        struct service_await await;
        struct service_locate locate;
        bool located; /* service_locate was called: once is enough */
        struct create_request request;
        union {
                struct service_ensure ensure;
                struct service_command command;
                struct service_exec exec;
                struct service_read read;
                struct service_write write;
        } u;

        struct purista_text out;
        int status; /* of the response; a bridge gets it in the text */
};

/* http_exec_fn of all routes (routes.c): reads the body, then decodes and runs the command. */
void purista_serve(struct http_req *req);

/* Starts the decoded command, once the sandbox is found and up. */
void purista_command_start(struct purista_call *c);

void purista_call_free(struct purista_call *c);

/* Starts waiting for `op`. */
void purista_call_wait(struct purista_call *c, struct op *op, op_done_fn *done);
/* It is done: false, and everything is freed, if the client is gone. */
bool purista_call_continue(struct purista_call *c);

/* Forwards the request, with its body, to the node that has the sandbox. The call is gone. */
void purista_call_forward(struct purista_call *c, const struct service_node *node);

/* --- the response --- */

/* Success. The payload goes into c->out between this and purista_response_end. */
void purista_response_begin(struct purista_call *c);

/* Failure. `data`, one JSON value, goes into c->out between this and purista_response_end. */
void purista_fail_begin(struct purista_call *c, int status, const char *fmt, ...) printf_like(3, 4);

/* Completes the text and sends it. The call is gone, or sends by itself from now on. */
void purista_response_end(struct purista_call *c);

/* Success without content, over HTTP: 204. */
void purista_response_empty(struct purista_call *c);

/* Failure without data. */
void purista_fail(struct purista_call *c, int status, const char *fmt, ...) printf_like(3, 4);

/* A domain code and its message; 500 has the usual text of the status instead. */
void purista_fail_service(struct purista_call *c, const struct service_req *r);

/* http_shape_fn: errors of the HTTP server and of access_authorize, in PURISTA's shape. */
struct str purista_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body);

#endif
