/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_COMMAND_H
#define HUTCH_EXECD_COMMAND_H

/*
 * Commands: the record of each program that clients have started, running or not.
 *
 * A foreground command tells its output to the client that started it, as events; when that client
 * goes away the command runs on and its output is lost, or it is killed, if the client wanted that
 * (`attached`). A background command's output is kept in a spool and can be asked for at any time.
 *
 * A record outlives its program, so that clients can ask how it ended: the last COMMANDS_KEPT of
 * them (fewer with output, each of which is an open file, where few files may be open), for
 * COMMANDS_KEPT_FOR, and only as long as the output of all of them together is no more than
 * COMMANDS_OUTPUT_KEPT. Whenever one ends, the oldest that are too much are dropped.
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

/* Who is told when a command has ended. */
struct command_waiter {
        struct list node; /* initialised by command_wait */
        void (*ended)(struct command_waiter *w);
};

struct command {
        struct commands *_all;
        struct map_node _by_id;
        struct list _node;
        char id[ID_HEX_LEN + 1];
        char *content; /* what was asked for, cut to CONTENT_MAX */
        bool background;
        bool attached;
        usec_t started, finished; /* wall; finished is 0 while it runs */
        usec_t _finished_mono;
        struct process_result result; /* once finished */
        struct spool *output;         /* of a background command */
        struct process *process; /* while it runs; with output, as long as there is more to come */
        int stdin_fd;            /* what it reads from, or -EBADF */
        bool stdin_busy;         /* a request is writing to it */
        struct list waiters;
        struct command_client *_client; /* the client that started it, while it listens */
};

struct command_request {
        struct str content;
        struct process_spec process; /* argv, envp, cwd, user, timeout, pipe_stdin */
        bool background;
        bool exact;    /* output in base64, byte for byte; in the foreground */
        bool attached; /* it ends when the client that started it goes away; in the foreground */
};

void commands_init(struct commands *cs, struct agent *a);

/* After processes_close. */
void commands_done(struct commands *cs);

/* Starts it and answers the request with events. */
void command_run(struct commands *cs, struct http_req *req, const struct command_request *r);

/* NULL if there is none of that id. */
struct command *command_find(struct commands *cs, struct str id);

/* `ended` is called once, from the loop, unless command_unwait comes first. */
void command_wait(struct command *c, struct command_waiter *w);
void command_unwait(struct command_waiter *w);

#endif
