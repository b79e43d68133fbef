/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SESSION_H
#define HUTCH_EXECD_SESSION_H

/*
 * Sessions: a shell that clients use again and again (execd/shell.h).
 *
 * The runs of a session queue: one at a time, in the order in which they came. A run that waits has
 * not been answered yet, so what is wrong with it (its directory is missing when its turn comes: the run
 * before may well make it) still has a status of its own; the events begin when the run does. A run
 * lasts until it ends, until its timeout, or until its client goes away; the last two kill the shell
 * with everything that it has started, and the next run gets a fresh one. A run whose client goes
 * away while it waits is left out.
 *
 * Closing a session ends the run that goes on and those that wait, and kills what the shell has
 * started. What was started from an earlier shell that ended by itself goes on: nobody has a hold on
 * it any more than on the leftovers of a command.
 */

#include "base/id.h"
#include "base/list.h"
#include "base/map.h"
#include "execd/shell.h"
#include "http/req.h"

#define SESSIONS_MAX        256
#define SESSION_QUEUE_MAX   64
#define SESSION_RUN_TIMEOUT (24 * 3600 * USEC_PER_SEC) /* of a run that names none */

struct agent;

struct sessions {
        struct agent *agent;
        struct map by_id; /* those that are not being closed */
        struct list all;
        size_t n;
};

struct session {
        struct sessions *_all;
        struct map_node _by_id;
        struct list _node;
        char id[ID_UUID_LEN + 1];
        struct shell _shell;
        struct session_run *_current; /* its client listens */
        struct list _queue;
        size_t _n_queued;
        bool _closing;
        struct http_req *_closer; /* to be answered when all is gone */
};

struct session_input {
        struct str command;
        struct str cwd; /* as the client wrote it; empty: where the last run ended */
        usec_t timeout; /* 0: SESSION_RUN_TIMEOUT */
};

void sessions_init(struct sessions *ss, struct agent *a);

/* After processes_close. */
void sessions_done(struct sessions *ss);

/* cwd: an existing directory. -EMFILE if there are SESSIONS_MAX, or what was wrong with the state
 * directory. */
int session_new(struct sessions *ss, const char *cwd, struct session **ret) must_check;

/* NULL if there is none of that id, or it is being closed. */
struct session *session_find(struct sessions *ss, struct str id);

/* Answers the request, with events if it comes to a run. in lives in the request's arena. */
void session_run(struct session *s, struct http_req *req, const struct session_input *in);

/* Answers the request with an empty 200 when no process of the session is left. */
void session_close(struct session *s, struct http_req *req);

#endif
