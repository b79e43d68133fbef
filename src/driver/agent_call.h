/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_AGENT_CALL_H
#define HUTCH_DRIVER_AGENT_CALL_H

/*
 * One call to an agent: connect, ask, read the answer, all before a deadline. Private to agent*.c.
 *
 *         agent__call_new ─► driver_start ─► connected ─► http ─► kind->ended ─► op done
 *                │ wrong arguments                 │ agent__call_stop, at any time
 *                └─────────────────────────────────┴─────────────────────────────► op done
 *
 * A kind describes what is asked and what is made of the answer; its state is the operation that the
 * starter gave. The call is freed when its timer has closed, which may be after `done`.
 */

#include "base/base.h"
#include "driver/agent.h"
#include "http/client.h"

struct agent_call;

struct agent_call_kind {
        const char *what; /* "run a command", for messages */
        usec_t grace;     /* that the call has beyond req->timeout */
        /* A part of an answer with status 200; others are collected for their message. */
        void (*body)(struct agent_call *c, struct str bytes);
        /* The answer with status 200 is complete: the result, with req->err set. NULL: it says
         * nothing more. */
        int (*ended)(struct agent_call *c);
        /* The connection takes more of the request's body. NULL: it has none. */
        void (*drain)(struct agent_call *c);
        /* Frees c->own. May be NULL. */
        void (*free)(struct agent_call *c);
};

struct agent_call {
        struct agents *agents;
        struct list node;
        const struct agent_call_kind *kind;
        struct agent_req *req; /* NULL once its end was told */
        void *own;             /* of the kind */
        struct driver_connect connect;
        struct http_call http;
        bool talking; /* http was started and has not ended */
        bool ended;
        int result; /* of agent__call_stop, or 0 */
        struct arena arena;
        struct buf answer; /* small ones, and what errors say */
        uv_timer_t timer;
};

/* Answers of a fixed kind, and errors, are no longer. */
#define AGENT_ANSWER_MAX (16 * KiB)

/* Begins the operation. The caller describes the request in c->http; then it starts c->connect, or ends the call. */
struct agent_call *agent__call_new(struct agents *a, struct agent_req *req,
                                   const struct agent_call_kind *kind);

/* While nothing of it is under way. The call is gone, and `done` comes with the result. */
void agent__call_end(struct agent_call *c, int result);

/* How much of the time a starter has asked for. */
static inline usec_t agent__timeout(const struct agent_req *req)
{
        return req->timeout ? req->timeout : AGENT_TIMEOUT;
}

void agent__call_add_header(struct agent_call *c, struct str name, struct str value);

/* Ends it early with a code whose err is set. The first reason counts. */
void agent__call_stop(struct agent_call *c, int result);

/* A new err: "run a command: the agent …". */
int agent__refuse(struct agent_call *c, enum err_code code, const char *fmt, ...) printf_like(3, 4);

#endif
