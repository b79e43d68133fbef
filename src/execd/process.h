/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROCESS_H
#define HUTCH_EXECD_PROCESS_H

/*
 * A program that runs below a supervisor, with its output coming in through pipes.
 *
 * Output. `output` gets what the pipes deliver. While output is paused nothing is read, and the program
 * blocks on its full pipe.
 *
 * The end. `ended` is called exactly once, from the loop: when the program is gone and everything that was
 * in its pipes at that moment was passed to `output`. It waits neither for a timer nor for end of file,
 * because a process that the program left behind may hold the pipes for days. That process must not be
 * killed by SIGPIPE either: the pipes are read until their last writer is gone, and the bytes go to
 * `output` (keep_output) or are discarded.
 *
 * Markers. A program that does several things in sequence (a shell) may have its own way to report that
 * one of them is done. What it had printed by then is in the pipes: process_drain passes that to `output`
 * and then calls `drained`; bytes that arrive after it are discarded.
 *
 * Lifetime. The owner gives the process up with process_release; nothing is called after that. A program
 * that still runs continues with its output discarded and its timeout in force.
 */

#include "execd/command_group.h"
#include "execd/supervisor.h"
#include "net/pipe.h"

struct process;

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_STREAMS };

struct process_result {
        int error;          /* negative errno: it never started */
        int status;         /* of wait(2), if it did */
        bool timed_out;     /* killed by its timeout */
        bool lost;          /* its supervisor was killed; status is SIGKILL's */
        bool out_of_memory; /* killed because the sandbox had no more memory */
};

/* Called with the owner of the process. */
struct process_ops {
        /* The program runs; not called if it has ended already. May be NULL. */
        void (*started)(void *owner);
        void (*output)(void *owner, enum process_stream stream, char *p, size_t n);
        /* Once for each process_drain, from the loop, unless `ended` comes first. May be NULL. */
        void (*drained)(void *owner);
        void (*ended)(void *owner, const struct process_result *r);
};

struct process_spec {
        char *const *argv;
        char *const *envp;
        const char *search; /* see os/spawn.h */
        const char *cwd;
        const struct spawn_user *user;
        usec_t timeout;   /* 0: none */
        bool merge;       /* stderr goes into the pipe of stdout */
        bool keep_output; /* `output` continues after `ended` */
        bool pipe_stdin;  /* else it is /dev/null */
        int *ret_stdin;   /* with pipe_stdin: the writing end, non-blocking, the caller's */
};

/* All processes of an agent. */
struct processes {
        struct net_loop *loop;
        struct command_groups groups;
        unsigned _n_dying;
        struct list _all;
};

struct process {
        const struct process_ops *ops;
        void *owner;
        bool running; /* until `ended` */
        bool killed;  /* by process_kill or its timeout: only its end is still to come */

        struct processes *_processes;
        struct list _node;
        int _supervisor; /* socket, or -EBADF once it is gone */
        pid_t _supervisor_pid;
        struct command_group *_group; /* until the supervisor is gone; NULL without cgroups */
        uv_poll_t _control;           /* of that socket */
        struct process_pipe {
                struct process *process;
                struct net_pipe pipe;
                bool open;
                size_t due; /* bytes that still belong to the program, after its end or a marker */
        } _pipes[PROCESS_STREAMS];
        uv_timer_t _timer;
        bool _timer_open;
        bool _exited, _draining, _interrupted, _keep_output;
        bool _dying; /* SIGKILL was sent to its group */
        struct process_result _result;
        struct net_task _finish;
        unsigned
                _open; /* references: the owner, and handles that must close before the memory is freed */
};

/* `cgroup_fds`: the first of the descriptors for cgroups (execd/command_group.h), or 0. */
void processes_init(struct processes *all, struct net_loop *l, int cgroup_fds);

/* Kills everything that runs; no callback is called any more. Owners still release their processes. The
 * loop must run once more. */
void processes_close(struct processes *all);

/* A child of the agent was stopped: if it is a supervisor of these processes, it is continued
 * (a reaper_stopped_fn). */
void processes_continue(void *processes, pid_t child);

/* Children of the agent were reaped (a reaper_reaped_fn). */
void processes_reaped(void *processes);

/* Negative: nothing was started (-EMFILE, -ENOMEM, -EAGAIN when there are too many processes). Failures in
 * the child are reported through `ended`. */
int process_start(struct processes *all, const struct process_spec *spec,
                  const struct process_ops *ops, void *owner, struct process **ret) must_check;
void process_release(struct process *proc);

void process_pause_output(struct process *proc);
void process_resume_output(struct process *proc);

/* Passes what is in the pipes now to `output`, from inside. Not while output is paused. */
void process_read_now(struct process *proc);

/* May call `output` from inside. Does nothing if a drain is in progress or the program is gone. */
void process_drain(struct process *proc);

/* Restarts the timeout from now; 0: none. */
void process_set_timeout(struct process *proc, usec_t length);

/* Sends a signal to the process group of the program. */
void process_signal(struct process *proc, int sig);

/* Kills the program and all its descendants. */
void process_kill(struct process *proc);

/* SIGTERM, and process_kill if the program still runs after PROCESS_GRACE. */
#define PROCESS_GRACE (3 * USEC_PER_SEC)
void process_interrupt(struct process *proc);

#endif
