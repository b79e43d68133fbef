/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SESSION_H
#define HUTCH_EXECD_SESSION_H

/*
 * Sessions: a shell that clients use repeatedly (execd/shell.h).
 *
 * The runs of a session queue: one at a time, in the order of arrival. A run that waits has no response
 * yet, so an error (its directory is missing when its turn comes: an earlier run may create it) still gets
 * a status of its own; the events begin when the run does. A run lasts until it ends, until its timeout, or
 * until its client disconnects; the last two kill the shell with everything that it has started, and the
 * next run gets a fresh one. A run whose client disconnects while it waits is skipped.
 *
 * Closing a session ends the current run and the queued ones, and kills what the shell has started. Processes
 * that were started from an earlier shell that ended by itself continue, like those that a command left behind.
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
        struct map by_id; /* without those that are being closed */
        struct list all;
        size_t n;
};

struct session {
        struct sessions *_all;
        struct map_node _by_id;
        struct list _node;
        char id[ID_UUID_LEN + 1];
        struct shell _shell;
        struct session_run *_current; /* while its client is connected */
        struct list _queue;
        size_t _n_queued;
        bool _closing;
        struct http_req *_closer; /* gets its reply when all processes are gone */
};

struct session_input {
        struct str command;
        struct str cwd; /* as the client wrote it; empty: where the last run ended */
        usec_t timeout; /* 0: SESSION_RUN_TIMEOUT */
};

void sessions_init(struct sessions *ss, struct agent *a);

/* After processes_close. */
void sessions_done(struct sessions *ss);

/* cwd: an existing directory. -EMFILE if there are SESSIONS_MAX, or an error of the state directory. */
int session_new(struct sessions *ss, const char *cwd, struct session **ret) must_check;

/* NULL if there is no session with that id, or it is being closed. */
struct session *session_find(struct sessions *ss, struct str id);

/* Replies, with events if the run begins. `in` lives in the request's arena. */
void session_run(struct session *s, struct http_req *req, const struct session_input *in);

/* Replies with an empty 200 when no process of the session is left. */
void session_close(struct session *s, struct http_req *req);

#endif
