/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_KEEPER_H
#define HUTCH_EXECD_KEEPER_H

/*
 * The keeper: a small process between the agent and one command.
 *
 * A timeout has to end everything a command has started, also what has called setsid or lost its
 * parent. Such processes are adopted by the nearest subreaper above them: that is the keeper, one for
 * each command, so whatever a command leaves behind while it runs stays below its keeper and can be
 * told from all others. (The command itself as the subreaper would be cheaper and was rejected: it
 * would get children it never made, and programs that wait for all their children would hang.)
 *
 *         agent ── keeper ── command ── …
 *                     └───── orphans of the command
 *
 * The two speak over a socket pair. The agent says: send this signal; and when it hangs up, because it
 * wants the end of the command or has met its own, the keeper kills everything. The keeper says once:
 * could not start, or has ended like this; then it is gone. (And, if wanted, before that: has
 * started.) If the command ended by itself, what it left running goes on, below the agent: `server &`
 * is an ordinary thing to ask for.
 *
 * A keeper is a fork of the agent that has closed all its descriptors; it can't be traced, as the
 * agent can't. Who kills it kills the command, too (but not what the command has started: that goes
 * on below the agent, and no timeout is in force any more).
 */

#include "os/spawn.h"

enum keeper_report_kind {
        KEEPER_FAILED = 1, /* value: negative errno of the start */
        KEEPER_STARTED,    /* only if asked for: an exit tells as much */
        KEEPER_EXITED,     /* value: wait status of the command */
};

struct keeper_report {
        int32_t kind;
        int32_t value;
};

/* Starts a keeper that starts the program. *ret_fd is our end of the socket pair: it
 * becomes readable when there is a report, and ends without one if the keeper was killed. The
 * keeper is a child of ours and reaped with all others. If somebody stops it, continuing it is up to
 * us. */
int keeper_start(const struct spawn *s, bool tell_start, int *ret_fd, pid_t *ret_pid) must_check;

/* To the command's process group. */
void keeper_signal(int fd, int sig);

/* Everything below the keeper, now. No signal goes through any more then; the report still comes. */
void keeper_kill(int fd);

/* 1: *ret is the report. 0: none yet. -EPIPE: the keeper is gone without one. */
int keeper_read(int fd, struct keeper_report *ret) must_check;

#endif
