/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_REAPER_H
#define HUTCH_EXECD_REAPER_H

/*
 * Signals, and the reaping of children.
 *
 * As PID 1 the agent becomes the parent of every orphan of the sandbox; as another process it requests the same
 * (PR_SET_CHILD_SUBREAPER). All children are reaped as they end. Only the entrypoint is awaited by its
 * number: commands report through their supervisors.
 *
 * Signals are read from a signalfd, because that reports the sender. Every process of a sandbox can signal a
 * PID 1 that has a handler, and must not be able to stop the agent. The kernel shows a sender outside the
 * pid namespace as pid 0; PID 1 obeys only those.
 *
 * That is not proof against everything. When the sandbox has queued as many signals as its uid may have, the
 * kernel drops the sender information of the next one, which then looks as if it came from outside. Where
 * no process outside sends signals, the agent takes none (--ignore-signals), and the kernel discards signals
 * for which PID 1 has no handler.
 */

#include <sys/types.h>

#include "net/loop.h"

struct reaper;

/* A signal that the agent has to obey. */
typedef void reaper_signal_fn(void *data, int sig);

/* The awaited child has ended. */
typedef void reaper_ended_fn(void *data, int status);

/* A child was stopped, by SIGSTOP say. */
typedef void reaper_stopped_fn(void *data, pid_t pid);

/* Children have ended. */
typedef void reaper_reaped_fn(void *data);

struct reaper {
        reaper_signal_fn *signalled;
        void *signalled_data;
        pid_t awaited; /* 0: none */
        reaper_ended_fn *ended;
        void *ended_data;
        reaper_stopped_fn *stopped;
        reaper_reaped_fn *reaped;
        void *children_data;
        struct net_loop *_loop;
        struct net_task _reap;
        int _fd;
        bool _is_init;
        uv_poll_t _poll;
};

/* `stopped` and `reaped` are called for all children, adopted ones included. */
int reaper_start(struct reaper *r, struct net_loop *l, reaper_stopped_fn *stopped,
                 reaper_reaped_fn *reaped, void *data) must_check;

/* The memory must stay valid until the loop has run once more. */
void reaper_stop(struct reaper *r);

/* From now on SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH go to `signalled` instead of their
 * default actions. */
void reaper_take_signals(struct reaper *r, reaper_signal_fn *signalled, void *data);

/* One at a time. Must be called before the loop runs again after the start of the child. */
void reaper_await(struct reaper *r, pid_t pid, reaper_ended_fn *ended, void *data);

#endif
