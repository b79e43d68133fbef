/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_JOB_H
#define HUTCH_EXECD_JOB_H

/*
 * A program that runs under a keeper, with its output coming in through pipes.
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
 * to say that one of them is done. What it had printed by then is in the pipes: job_drain gives that
 * to `output` and then calls `drained`; what came behind it is dropped.
 *
 * Life. The owner gives the job up with job_release; nothing is called any more then. A program
 * that still runs goes on, its output lost, its timeout in force.
 */

#include "execd/keeper.h"
#include "net/pipe.h"

struct job;

enum job_stream { JOB_STDOUT, JOB_STDERR, JOB_STREAMS };

struct job_result {
        int error;      /* negative errno: it never started */
        int status;     /* of wait(2), if it did */
        bool timed_out; /* killed by its timeout */
        bool lost;      /* its keeper was killed; status is SIGKILL's */
};

struct job_ops {
        /* The program runs; not called if it has ended already. NULL: nobody wants to know. */
        void (*started)(struct job *j);
        void (*output)(struct job *j, enum job_stream stream, char *p, size_t n);
        /* Once for each job_drain, from the loop, unless `ended` comes first. NULL: never asked. */
        void (*drained)(struct job *j);
        void (*ended)(struct job *j, const struct job_result *r);
};

struct job_spec {
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

/* All jobs of an agent. */
struct jobs {
        struct net_loop *loop;
        struct list _all;
};

struct job {
        const struct job_ops *ops;
        void *owner;
        bool running; /* until `ended` */
        bool killed;  /* by job_kill or its timeout: there is only its end to come */

        struct jobs *_jobs;
        struct list _node;
        int _keeper; /* the socket to the keeper, or -EBADF once it is gone */
        pid_t _keeper_pid;
        uv_poll_t _control;
        struct job_pipe {
                struct job *job;
                struct net_pipe pipe;
                bool open;
                size_t due; /* bytes that belong to the program, after its end */
        } _pipes[JOB_STREAMS];
        uv_timer_t _timer;
        bool _timer_open;
        bool _exited, _draining, _interrupted, _keep_output;
        struct job_result _result;
        struct net_task _finish;
        unsigned _open; /* the owner, and handles that must close before the memory goes */
};

void jobs_init(struct jobs *js, struct net_loop *l);

/* Everything that runs is killed and nothing is called any more; owners still release their jobs.
 * The loop must run once more. */
void jobs_close(struct jobs *js);

/* A child of ours has been stopped: if it is a keeper, it goes on. */
void jobs_continue(struct jobs *js, pid_t child);

/* Negative: nothing was started (-EMFILE, -ENOMEM, -EAGAIN when there are too many processes). What
 * goes wrong in the child comes through `ended`. */
int job_start(struct jobs *js, const struct job_spec *spec, const struct job_ops *ops, void *owner,
              struct job **ret) must_check;
void job_release(struct job *j);

void job_pause_output(struct job *j);
void job_resume_output(struct job *j);

/* Gives what is in the pipes now to `output`, from inside. Not while output is paused. */
void job_read_now(struct job *j);

/* May call `output` from inside. Does nothing if one is under way or the program is gone. */
void job_drain(struct job *j);

/* Counts from now, in place of the timeout before; 0: none. */
void job_set_timeout(struct job *j, usec_t length);

/* To the program's process group. */
void job_signal(struct job *j, int sig);

/* The program and all its descendants, now. */
void job_kill(struct job *j);

/* SIGTERM, and job_kill if that has not helped after JOB_GRACE. */
#define JOB_GRACE (3 * USEC_PER_SEC)
void job_interrupt(struct job *j);

#endif
