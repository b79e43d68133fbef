/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_REAPER_H
#define HUTCH_EXECD_REAPER_H

/*
 * Signals, and the end of children.
 *
 * As PID 1 the agent gets every orphan of the sandbox as a child; elsewhere it asks for the same
 * (PR_SET_CHILD_SUBREAPER). All of them are reaped as they end. Of those it started itself only the
 * entrypoint is waited for by number: commands report through their supervisors.
 *
 * Signals come through a descriptor, because it tells who sent them: a PID 1 with a handler can be
 * signalled by every process of its sandbox, and those must not be able to stop the agent. The
 * kernel shows a sender from outside of the pid namespace as pid 0; so PID 1 obeys those only.
 *
 * That is not proof against everything: a signal for which the kernel has no room, because somebody has
 * queued as many as the uid may have, arrives without its sender, and looks like one from outside.
 * Where nobody outside sends signals the agent takes none (--ignore-signals), and the kernel drops
 * what a process 1 has no handler for.
 */

#include <sys/types.h>

#include "net/loop.h"

struct reaper;

/* A signal that the agent should obey. */
typedef void reaper_signal_fn(void *data, int sig);

/* The awaited child has ended. */
typedef void reaper_ended_fn(void *data, int status);

/* A child was stopped, by SIGSTOP say. */
typedef void reaper_stopped_fn(void *data, pid_t pid);

struct reaper {
        reaper_signal_fn *signalled;
        void *signalled_data;
        pid_t awaited; /* 0: none */
        reaper_ended_fn *ended;
        void *ended_data;
        reaper_stopped_fn *stopped;
        void *stopped_data;
        struct net_loop *_loop;
        struct net_task _reap;
        int _fd;
        bool _is_init;
        uv_poll_t _poll;
};

int reaper_start(struct reaper *r, struct net_loop *l) must_check;

/* The memory must stay until the loop ran once more. */
void reaper_stop(struct reaper *r);

/* From now on SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH go to `signalled`, and
 * not to the kernel's defaults. */
void reaper_take_signals(struct reaper *r, reaper_signal_fn *signalled, void *data);

/* One at a time; called before the loop can have run since the child was started. */
void reaper_await(struct reaper *r, pid_t pid, reaper_ended_fn *ended, void *data);

/* For all children, not only those that we started. */
void reaper_watch_stops(struct reaper *r, reaper_stopped_fn *stopped, void *data);

#endif
