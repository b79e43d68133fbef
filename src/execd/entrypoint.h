/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_ENTRYPOINT_H
#define HUTCH_EXECD_ENTRYPOINT_H

/*
 * The program that a sandbox is for: started by the agent, with the agent's environment, in the
 * workspace. What it and its children print is kept in a spool (`entrypoint_max`), for people who
 * ask why their sandbox does not do what it should:
 *
 *         GET /entrypoint           is it running, since when, how did it end
 *         GET /entrypoint/logs      what it printed; ?cursor= and ?follow= as with commands
 */

#include "base/compiler.h"
#include "execd/spool.h"
#include "net/pipe.h"
#include "os/spawn.h"

struct agent;

enum entrypoint_state {
        ENTRYPOINT_NONE,    /* never asked for; entrypoint_start leads out */
        ENTRYPOINT_RUNNING, /* its end leads out */
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

/* To the program itself, as if it were PID 1. */
void entrypoint_signal(struct entrypoint *e, int sig);

/* The exit code of a program that ends because this one has: its own, or 128 + signal. */
int entrypoint_exit_code(const struct entrypoint *e);

#endif
