/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_COMMAND_H
#define HUTCH_EXECD_COMMAND_H

/*
 * Commands: the record of each program that clients have started, running or not.
 *
 * A foreground command streams its output, as events, to the client that started it. When that client
 * disconnects, the command runs on and its output is discarded; if the client has set `attached`, the
 * command is killed. The output of a background command is kept in a spool and can be read at any time.
 *
 * A record outlives its program, so that clients can query how it ended. Kept are the last COMMANDS_KEPT
 * records (fewer with output, each of which is an open file, where few files may be open), for
 * COMMANDS_KEPT_FOR, and only as long as their output is no more than COMMANDS_OUTPUT_KEPT in total.
 * When a command ends, the oldest records beyond that are dropped.
 */

#include "base/id.h"
#include "base/list.h"
#include "base/map.h"
#include "execd/event_stream.h"
#include "execd/process.h"
#include "execd/spool.h"

#define COMMANDS_KEPT        1024
#define COMMANDS_KEPT_FOR    (24 * 3600 * USEC_PER_SEC)
#define COMMANDS_OUTPUT_KEPT ((uint64_t) GiB)

struct agent;
struct command;

struct commands {
        struct agent *agent;
        struct map by_id;
        struct list running;
        struct list finished; /* oldest first */
        size_t n_finished;
        size_t n_outputs;     /* of the finished, those with output */
        uint64_t output_kept; /* bytes, of the finished */
        size_t _outputs_max;
};

/* Is notified when a command has ended: `ended` is called once, from the loop, unless the waiter was
 * removed from the command's list before. */
struct command_waiter {
        struct list node;
        void (*ended)(struct command_waiter *w);
};

struct command {
        struct commands *_all;
        struct map_node _by_id;
        struct list _node;
        char id[ID_HEX_LEN + 1];
        char *content; /* as requested, truncated to CONTENT_MAX */
        bool background;
        bool attached;
        usec_t started, finished; /* wall; finished is 0 while it runs */
        usec_t _finished_mono;
        struct process_result result; /* once finished */
        struct spool *output;         /* of a background command */
        struct process *process;      /* while it runs; with a spool, until the end of the agent */
        int stdin_fd;                 /* writing end of its standard input, or -EBADF */
        bool stdin_busy;              /* a request is writing to it */
        struct list waiters;          /* struct command_waiter */
        struct command_client *_client; /* the client that started it, while it is connected */
};

struct command_request {
        struct str content;
        struct process_spec process; /* argv, envp, cwd, user, timeout, pipe_stdin */
        bool background;
        bool exact;    /* foreground: output byte for byte, in base64 */
        bool attached; /* foreground: killed when the client that started it disconnects */
};

void commands_init(struct commands *cs, struct agent *a);

/* After processes_close. */
void commands_done(struct commands *cs);

/* Starts a command and replies with a stream of events. */
void command_run(struct commands *cs, struct http_req *req, const struct command_request *r);

/* NULL if there is no command with that id. */
struct command *command_find(struct commands *cs, struct str id);

/* The body of a request becomes standard input of a running command, as it arrives.
 *
 * The command must have been started with "stdin": true. Standard input stays open after the body, for
 * further requests, unless ?close=true says that this was the last one. The reply is 200 once the pipe
 * has accepted everything; a command that does not read holds the client back. One request at a time. */
void command_stdin(struct http_req *req, struct command *c);

#endif
