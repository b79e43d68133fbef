/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_AGENT_H
#define HUTCH_DRIVER_AGENT_H

/*
 * The agent of a sandbox as hutchd uses it: run a command, read a file, write files; for all drivers, on
 * the byte stream of driver_connect.
 *
 * What an agent says is hostile input: code in the sandbox may have taken its place. Responses are bounded and parsed
 * strictly; whatever does not fit is ERR_UNAVAILABLE with a message of ours, and the agent's own words are quoted,
 * escaped and cut. A deadline ends every call.
 *
 * Operations follow net/op.h. Arguments, the record too, stay as they are until `done`; results are
 * the caller's and are there until its _done function frees them. What the agent refuses is
 *
 *         ERR_INVALID      a path or command that can't be
 *         ERR_NOT_FOUND    no such file
 *         ERR_CONFLICT     the sandbox does not allow it: permissions, a full disk, a directory in the way
 *         ERR_UNAVAILABLE  it does not respond, or not as an agent does
 *
 * and what the driver says when it can't connect.
 *
 * Texts are UTF-8; what is not is refused, because JSON would make something else of it. Paths are read
 * by the agent as its other clients' are: relative to the working directory, or absolute; "~" at the
 * beginning and "$NAME" anywhere are replaced. "file:///…" is taken as it is, percent-encoded: for
 * names that hold a dollar sign, or are not UTF-8.
 */

#include "base/buf.h"
#include "driver/driver.h"

struct agents;

/* Shared by all drivers of a loop. */
struct agents *agents_new(struct net_loop *loop) must_check;

/* Calls under way end with ERR_CANCELED, and no new ones may be started. `freed` comes from the loop,
 * when the memory is gone; it may be NULL. */
void agents_free(struct agents *a, void (*freed)(void *data), void *data);

struct agent_req {
        struct op op;
        struct err err;
        usec_t timeout; /* of the whole call; 0: AGENT_TIMEOUT */
        void *_impl;
};

#define AGENT_TIMEOUT (30 * USEC_PER_SEC)

/* It responds, and speaks our version of the protocol (GET /version). ERR_UNSUPPORTED for another. */
struct agent_ping {
        struct agent_req req;
};

void agent_ping(struct agents *a, struct agent_ping *p, struct driver *d,
                const struct sandbox *record);

/* The same over a stream that a driver has before it can connect by record. The descriptor is
 * taken. */
void agent_ping_fd(struct agents *a, struct agent_ping *p, int fd);

/* Runs `command` in a shell. A command that fails is a result, not an error; one that could not be
 * started (no such directory) is ERR_INVALID. On ERR_TIMEOUT and ERR_TOO_LARGE the output so far is
 * there. Whatever ends the call early, cancel too, kills everything the command has started. Output
 * is exact, byte by byte. */
struct agent_exec {
        struct agent_req req; /* .timeout: of the command; the call has some seconds more */
        struct str command;
        struct str cwd;      /* null view: the sandbox's own */
        struct json_map env; /* added */
        size_t out_max;      /* of each of the two; 0: AGENT_OUT_MAX */

        int exit_code; /* results; of a signal: 128 and its number */
        struct buf out, err_out;
};

#define AGENT_OUT_MAX (8 * MiB)

void agent_exec(struct agents *a, struct agent_exec *x, struct driver *d,
                const struct sandbox *record);
void agent_exec_done(struct agent_exec *x); /* frees the results */

/* ERR_NOT_FOUND if there is no such file, ERR_TOO_LARGE if it has more than `max` bytes. */
struct agent_read {
        struct agent_req req;
        struct str path;
        size_t max; /* 0: AGENT_FILE_MAX */

        struct buf bytes; /* result */
};

#define AGENT_FILE_MAX (16 * MiB)

void agent_read(struct agents *a, struct agent_read *x, struct driver *d,
                const struct sandbox *record);
void agent_read_done(struct agent_read *x);

struct agent_file {
        struct str path;
        struct str bytes;
        int mode; /* 0: 0644 */
};

/* Each file is replaced as a whole; the first that fails ends it, and `failed` tells which. */
struct agent_write {
        struct agent_req req;
        const struct agent_file *files;
        size_t n;

        size_t failed; /* result: index, or n if none is to blame */
};

void agent_write(struct agents *a, struct agent_write *x, struct driver *d,
                 const struct sandbox *record);

/* Hands a credential for one host to the agent, which keeps it in its memory and gives it to git. An
 * agent that can't do that says ERR_NOT_FOUND. */
struct agent_git {
        struct agent_req req;
        struct str host, username, secret_password; /* an empty password takes it away */

        char socket
                [108]; /* result: what git is to ask, a path without anything that a shell minds */
};

void agent_git(struct agents *a, struct agent_git *x, struct driver *d,
               const struct sandbox *record);

#endif
