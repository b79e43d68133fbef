/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_ENTRYPOINT_H
#define HUTCH_EXECD_ENTRYPOINT_H

/*
 * The main program of a sandbox. The agent starts it in the workspace, with the environment of commands.
 * The output of the program and its children is kept in a spool (`entrypoint_max`):
 *
 *         GET /entrypoint           whether it runs, since when, how it ended
 *         GET /entrypoint/logs      its output; ?cursor= and ?follow= as for commands
 */

#include "base/compiler.h"
#include "execd/spool.h"
#include "net/pipe.h"
#include "os/spawn.h"

struct agent;

enum entrypoint_state {
        ENTRYPOINT_NONE, /* until entrypoint_start */
        ENTRYPOINT_RUNNING,
        ENTRYPOINT_ENDED,
};

typedef void entrypoint_ended_fn(void *data, int status);

struct entrypoint {
        struct agent *agent;
        enum entrypoint_state state;
        pid_t pid;
        int status;               /* of wait(2), once ended */
        usec_t started, finished; /* wall */
        struct spool *output;     /* NULL before it is started */
        struct net_pipe _pipe;
        bool _pipe_open;
        entrypoint_ended_fn *_ended;
        void *_ended_data;
};

void entrypoint_init(struct entrypoint *e, struct agent *a);
void entrypoint_done(struct entrypoint *e);

/* `ended` is called from the loop when the program is gone. */
int entrypoint_start(struct entrypoint *e, char *const *argv, entrypoint_ended_fn *ended,
                     void *data) must_check;

/* The exit code that the agent passes on: that of the program, or 128 + signal. */
int entrypoint_exit_code(const struct entrypoint *e);

#endif
