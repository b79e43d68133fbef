/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_AGENT_WORLD_H
#define HUTCH_TESTS_AGENT_WORLD_H

/*
 * An agent without sockets, with a temporary workspace of its own.
 *
 *         struct agent_world w;
 *         agent_world_open(&w);
 *         struct reply r = call(&w, "GET", "/ping", NULL);
 *         check_i64_eq(r.status, 200);
 *         agent_world_close(&w);
 *
 * Requests go through real routing and handlers (tests/lib/http_loopback.h). The views of a reply are valid
 * until the next request.
 */

#include "execd/agent.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

struct agent_world {
        struct net_loop loop;
        struct agent *agent;
        char dir[64]; /* the workspace, absolute and without links */
        bool freed;
        bool called;
        uv_async_t awake; /* a real agent listens; without an active handle libuv does not turn */
        struct http_loopback lb;
};

struct reply {
        int status;
        struct str body;
        bool failed; /* the response was aborted */
};

void agent_world_open(struct agent_world *w);

/* The workspace and state directories of config are replaced. */
void agent_world_open_with(struct agent_world *w, const struct agent_config *config);
void agent_world_close(struct agent_world *w);

/* Turns the loop once without waiting. */
void agent_world_turn(struct agent_world *w);

/* Sends a request and waits for the complete response. body may be NULL. */
struct reply call(struct agent_world *w, const char *method, const char *target, const char *body);

/* The same with one header and a binary body. */
struct reply call_with(struct agent_world *w, const char *method, const char *target,
                       const char *header, const char *value, struct str body);

/* A header of the last response; the null view if there is none. */
struct str reply_header(const struct agent_world *w, const char *name);

/* Files below the workspace, by relative name. */
void put_file(const struct agent_world *w, const char *name, struct str content);
bool file_is(const struct agent_world *w, const char *name, struct str content);

/* "<workspace>/name", in one of a few static buffers. */
const char *path_in(const struct agent_world *w, const char *name);

#endif
