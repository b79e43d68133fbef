/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROCESS_H
#define HUTCH_EXECD_PROCESS_H

/*
 * A program that runs under a supervisor, with its output coming in through pipes.
 *
 * Output. `output` gets what the pipes gave. While paused, nothing is read and the program is held
 * back by its full pipe.
 *
 * The end. `ended` comes exactly once, from the loop: when the program is gone and everything that
 * was in its pipes at that moment has been given to `output`; it waits for no clock and for no end
 * of file, because a process that the program left behind may hold the pipes for days. Such a
 * process must not be killed by SIGPIPE either: the pipes are read on, to `output` if the owner
 * wants it (keep_output) and to nowhere else, until their last writer is gone.
 *
 * Markers. A program that does several things one after the other (a shell) may have a way of its own
 * to say that one of them is done. What it had printed by then is in the pipes: process_drain gives that
 * to `output` and then calls `drained`; what came behind it is dropped.
 *
 * Life. The owner gives the process up with process_release; nothing is called any more then. A program
 * that still runs goes on, its output lost, its timeout in force.
 */

#include "execd/supervisor.h"
#include "net/pipe.h"

struct process;

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_STREAMS };

struct process_result {
        int error;      /* negative errno: it never started */
        int status;     /* of wait(2), if it did */
        bool timed_out; /* killed by its timeout */
        bool lost;      /* its supervisor was killed; status is SIGKILL's */
};

struct process_ops {
        /* The program runs; not called if it has ended already. NULL: nobody wants to know. */
        void (*started)(struct process *j);
        void (*output)(struct process *j, enum process_stream stream, char *p, size_t n);
        /* Once for each process_drain, from the loop, unless `ended` comes first. NULL: never asked. */
        void (*drained)(struct process *j);
        void (*ended)(struct process *j, const struct process_result *r);
};

struct process_spec {
        char *const *argv;
        char *const *envp;
        const char *search; /* see os/spawn.h */
        const char *cwd;
        const struct spawn_user *user;
        usec_t timeout;   /* 0: none */
        bool merge;       /* stderr goes into stdout's pipe */
        bool keep_output; /* `output` goes on after `ended` */
        bool pipe_stdin;  /* else it is /dev/null */
        int *ret_stdin;   /* with pipe_stdin: the writing end, non-blocking, the caller's */
};

/* All processes of an agent. */
struct processes {
        struct net_loop *loop;
        struct list _all;
};

struct process {
        const struct process_ops *ops;
        void *owner;
        bool running; /* until `ended` */
        bool killed;  /* by process_kill or its timeout: there is only its end to come */

        struct processes *_processes;
        struct list _node;
        int _supervisor; /* the socket to the supervisor, or -EBADF once it is gone */
        pid_t _supervisor_pid;
        uv_poll_t _control;
        struct process_pipe {
                struct process *process;
                struct net_pipe pipe;
                bool open;
                size_t due; /* bytes that belong to the program, after its end */
        } _pipes[PROCESS_STREAMS];
        uv_timer_t _timer;
        bool _timer_open;
        bool _exited, _draining, _interrupted, _keep_output;
        struct process_result _result;
        struct net_task _finish;
        unsigned _open; /* the owner, and handles that must close before the memory goes */
};

void processes_init(struct processes *js, struct net_loop *l);

/* Everything that runs is killed and nothing is called any more; owners still release their processes.
 * The loop must run once more. */
void processes_close(struct processes *js);

/* A child of ours has been stopped: if it is a supervisor, it goes on. */
void processes_continue(struct processes *js, pid_t child);

/* Negative: nothing was started (-EMFILE, -ENOMEM, -EAGAIN when there are too many processes). What
 * goes wrong in the child comes through `ended`. */
int process_start(struct processes *js, const struct process_spec *spec,
                  const struct process_ops *ops, void *owner, struct process **ret) must_check;
void process_release(struct process *j);

void process_pause_output(struct process *j);
void process_resume_output(struct process *j);

/* Gives what is in the pipes now to `output`, from inside. Not while output is paused. */
void process_read_now(struct process *j);

/* May call `output` from inside. Does nothing if one is under way or the program is gone. */
void process_drain(struct process *j);

/* Counts from now, in place of the timeout before; 0: none. */
void process_set_timeout(struct process *j, usec_t length);

/* To the program's process group. */
void process_signal(struct process *j, int sig);

/* The program and all its descendants, now. */
void process_kill(struct process *j);

/* SIGTERM, and process_kill if that has not helped after PROCESS_GRACE. */
#define PROCESS_GRACE (3 * USEC_PER_SEC)
void process_interrupt(struct process *j);

#endif
