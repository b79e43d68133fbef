/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SUPERVISOR_H
#define HUTCH_EXECD_SUPERVISOR_H

/*
 * The supervisor of a command: a small process between the agent and one command. It can kill
 * everything that the command has started (supervisor.c).
 */

#include "os/spawn.h"

enum supervisor_report_kind {
        SUPERVISOR_FAILED = 1, /* value: negative errno of the start */
        SUPERVISOR_STARTED,    /* only if requested: an exit implies it */
        SUPERVISOR_EXITED,     /* value: wait status of the command */
};

struct supervisor_report {
        int32_t kind;
        int32_t value;
};

/* Starts a supervisor that starts the program. *ret_fd is the agent's end of the socket pair: it becomes
 * readable when there is a report, and ends without one if the supervisor was killed. The supervisor is a
 * child of the agent and reaped like all others. If something stops it, the agent must continue it. `cgroup` is the
 * directory that both are born in, or -EBADF. */
int supervisor_start(const struct spawn *s, int cgroup, bool notify_start, int *ret_fd,
                     pid_t *ret_pid) must_check;

/* Sends a signal to the process group of the command. */
void supervisor_signal(int fd, int sig);

/* Kills everything below the supervisor. Signals are not delivered any more; the report still comes. */
void supervisor_kill(int fd);

/* 1: *ret is the report. 0: none yet. -EPIPE: the supervisor is gone without one. */
int supervisor_read(int fd, struct supervisor_report *ret) must_check;

#endif
