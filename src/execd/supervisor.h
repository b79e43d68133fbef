/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SUPERVISOR_H
#define HUTCH_EXECD_SUPERVISOR_H

/*
 * The supervisor: a small process between the agent and one command.
 *
 * A timeout has to end everything a command has started, also what has called setsid or lost its
 * parent. Such processes are adopted by the nearest subreaper above them: that is the supervisor, one for
 * each command, so whatever a command leaves behind while it runs stays below its supervisor and can be
 * told from all others. (The command itself as the subreaper would be cheaper and was rejected: it
 * would get children it never made, and programs that wait for all their children would hang.)
 *
 *         agent ── supervisor ── command ── …
 *                     └───── orphans of the command
 *
 * The two speak over a socket pair. The agent says: send this signal; and when it hangs up, because it
 * wants the end of the command or has met its own, the supervisor kills everything. The supervisor says once:
 * could not start, or has ended like this; then it is gone. (And, if wanted, before that: has
 * started.) If the command ended by itself, what it left running goes on, below the agent: `server &`
 * is an ordinary thing to ask for.
 *
 * A supervisor is a fork of the agent that has closed all its descriptors; it can't be traced, as the
 * agent can't. Who kills it kills the command, too (but not what the command has started: that goes
 * on below the agent, and no timeout is in force any more).
 */

#include "os/spawn.h"

enum supervisor_report_kind {
        SUPERVISOR_FAILED = 1, /* value: negative errno of the start */
        SUPERVISOR_STARTED,    /* only if asked for: an exit tells as much */
        SUPERVISOR_EXITED,     /* value: wait status of the command */
};

struct supervisor_report {
        int32_t kind;
        int32_t value;
};

/* Starts a supervisor that starts the program. *ret_fd is our end of the socket pair: it
 * becomes readable when there is a report, and ends without one if the supervisor was killed. The
 * supervisor is a child of ours and reaped with all others. If somebody stops it, continuing it is up to
 * us. */
int supervisor_start(const struct spawn *s, bool notify_start, int *ret_fd, pid_t *ret_pid)
        must_check;

/* To the command's process group. */
void supervisor_signal(int fd, int sig);

/* Everything below the supervisor, now. No signal goes through any more then; the report still comes. */
void supervisor_kill(int fd);

/* 1: *ret is the report. 0: none yet. -EPIPE: the supervisor is gone without one. */
int supervisor_read(int fd, struct supervisor_report *ret) must_check;

#endif
