/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_CALL_H
#define HUTCH_API_PURISTA_CALL_H

/*
 * One command on its way: from the bytes of a request to an operation of the service, and back.
 *
 *         body ─ parse ─ decode ─ who asks? ─ is it he whom the payload names? ─ command->start
 *                  │ 400     │ 400      │ 401, 403            │ 403                 │ inner
 *                  └─────────┴──────────┴─────────────────────┴─► answer ◄──────────┘
 *
 * The call holds the request, and everything of its own, until the answer is out or the client is gone;
 * then it frees itself. While `inner` is under way the client's leaving cancels it and its `done` is the
 * end; so a `done` begins with purista_call_continue.
 */

#include "api/access/bridge.h"
#include "api/purista/payload.h"
#include "api/purista/purista.h"
#include "api/purista/text.h"

struct purista_call;

struct purista_command {
        const char *name;
        const struct purista_field *fields;
        void (*start)(struct purista_call *c);
        void (*entered)(
                struct purista_call *c); /* of those that go into a sandbox: it can be entered */
};

extern const struct purista_command purista_commands[]; /* ends in a NULL name */

/* NULL if there is none. */
const struct purista_command *purista_command_find(struct str name);

struct purista_call {
        struct http_req *req;
        struct purista_config config; /* a copy: a reload may bring another one meanwhile */
        const struct purista_command *command;
        bool bridged; /* the answer is for a bridge */

        struct buf body;
        json_t *doc;
        struct arena arena;
        struct purista_payload in;
        struct caller caller;
        struct owner owner;
        const struct sandbox *record; /* of those that need one; good until the loop turns */

        struct op *inner;        /* what is canceled when the client leaves */
        bool has_exec, has_read; /* u.exec, u.read have results to be freed */
        struct str *paths;       /* of in.files, as the caller wrote them */
        struct service_await await;
        struct service_locate locate;
        struct create_request request;
        union {
                struct service_ensure ensure;
                struct service_command command;
                struct service_exec exec;
                struct service_read read;
                struct service_write write;
        } u;

        struct purista_text out;
        int status;                         /* of a failure, until it is sent */
        void (*go)(struct purista_call *c); /* when the body is there */
};

/* Takes a reference of the request. NULL: the commands are not offered here, and that was answered. */
struct purista_call *purista_call_new(struct http_req *req) must_check;
void purista_call_free(struct purista_call *c);

/* Reads the body and parses it into c->doc; then `go`. The call may be gone when this returns. */
void purista_call_read_body(struct purista_call *c, void (*go)(struct purista_call *c));

/* Decodes c->doc's payload and runs c->command for c->who, which are set. payload may be NULL. */
void purista_call_run(struct purista_call *c, const json_t *payload, struct str sandbox_id);

/* What is under way from now on. */
void purista_call_wait(struct purista_call *c, struct op *op, op_done_fn *done);
/* It is done: false, and everything is freed, if the client is gone. */
bool purista_call_continue(struct purista_call *c);

/* That node has the sandbox: the request goes there, with the body as it came. The call is gone. */
void purista_call_forward(struct purista_call *c, const struct service_node *node);

/* --- the answer --- */

/* The payload goes into c->out between these two. */
void purista_response_begin(struct purista_call *c);
void purista_response_end(struct purista_call *c, bool started);

/* Success without a word: 204, or "" for a bridge. */
void purista_response_empty(struct purista_call *c);

struct purista_failure {
        int status;
        bool unhandled; /* no message but the status's own */
        struct str message;
};

/* `data`, one JSON value, goes into c->out between these two. */
void purista_fail_begin(struct purista_call *c, const struct purista_failure *f);
void purista_fail_end(struct purista_call *c);

/* Without data. */
void purista_fail(struct purista_call *c, int status, const char *fmt, ...) printf_like(3, 4);

/* A domain code and its story. */
void purista_fail_service(struct purista_call *c, const struct service_req *r);

/* http_shape_fn: what the engine and access_authorize have to say, in PURISTA's shape. */
struct str purista_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body);

#endif
