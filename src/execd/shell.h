/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_H
#define HUTCH_EXECD_SHELL_H

/*
 * A persistent shell that executes one run after the other (shell.c has the theory of operation).
 *
 * What a run does to the shell stays: variables, functions, aliases, options, traps, background jobs. If the
 * shell ends (exit, exec, set -e, a signal, a timeout), the run ends with it. The next run gets a fresh
 * shell with the variables that were exported when the last run came to its end, in the directory where
 * that run ended.
 */

#include "execd/process.h"
#include "execd/shell_record.h"
#include "execd/shell_script.h"

struct agent;
struct arena;
struct shell;

struct shell_ops {
        /* Output of the current run; output between two runs is discarded. */
        void (*output)(struct shell *sh, struct str bytes);
        /* The run has ended; the next one may begin, even from inside this call. */
        void (*run_ended)(struct shell *sh, const struct process_result *r);
        /* The process is gone, after run_ended if there was a run. */
        void (*gone)(struct shell *sh);
};

struct shell {
        const struct shell_ops *ops;
        bool busy; /* from shell_run to run_ended */

        struct agent *_agent;
        struct process *_process; /* NULL: the next run gets a fresh shell */
        int _stdin;
        bool _is_bash;
        bool _fresh; /* the current run, or the last one, is its first */
        struct shell_script _script;
        char *_cwd;                  /* where the last run ended */
        struct shell_record _record; /* of the current run, or the last one */
};

struct shell_run {
        struct str command;
        const char *cwd; /* NULL: where the last run ended */
        usec_t timeout;
        struct arena *arena; /* during the call */
};

/* Creates the private directory; starts nothing. The first run begins in cwd. */
int shell_init(struct shell *sh, struct agent *a, const char *cwd, const struct shell_ops *ops)
        must_check;

/* Kills the process, if one runs, and removes the private directory; nothing is called any more. */
void shell_done(struct shell *sh);

/* Not while busy. Negative: the run has not begun, and nothing will be called. */
int shell_run(struct shell *sh, const struct shell_run *r) must_check;

/* Kills the shell and everything that it has started; run_ended and gone follow. False: there is no
 * process, and nothing follows. */
bool shell_kill(struct shell *sh);

void shell_pause_output(struct shell *sh);
void shell_resume_output(struct shell *sh);

#endif
