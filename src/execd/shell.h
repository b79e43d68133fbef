/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_H
#define HUTCH_EXECD_SHELL_H

/*
 * A living shell that does one run after the other.
 *
 * The process is `bash -s` (or `sh -s`), a process like any other. For each run the agent writes two
 * files into a private directory, `run` (the command as the client gave it) and `step` (what the shell
 * has to do around it), and sends one line to the shell's standard input: source `step`. That sources
 * `run` with descriptor 0 on /dev/null and 1 and 2 both on the output pipe, saves the exported
 * variables into a file, and says in a record that the run is over.
 *
 *                  stdin   ". step"                      one line for each run
 *         agent ── stdout  what the runs print
 *                  stderr  records, and whatever else the shell itself has to say between runs
 *
 * The shell's own stderr is the way back because nothing else can be trusted to be there: a FIFO in
 * the directory goes when somebody cleans up /tmp, and a further descriptor would be inherited by
 * everything the shell starts. While a run goes on the shell keeps its stderr aside under a number
 * that is closed on exec (as all shells do for a redirected `.`), so commands have 0, 1 and 2 only
 * and can't reach it; afterwards it puts its three descriptors back, whatever the run did to them.
 * A record begins and ends with a NUL byte and carries random digits made for this run: traces
 * (`set -x`, `set -v`), warnings, and records of another run are told from it and ignored.
 *
 * What a run does to the shell stays: variables, functions, aliases, options, traps, processes. If the
 * shell ends (exit, exec, set -e, a signal, a timeout), the run ends with it, and the next one gets
 * a fresh shell with the variables that were exported when the last run came to its end, and in the
 * directory where that one ended.
 *
 * A run can make a shell useless, for instance by a function named `command`: then its record does
 * not come, and the run lasts until its timeout.
 */

#include "execd/process.h"
#include "execd/shell_record.h"
#include "execd/shell_script.h"

struct agent;
struct arena;
struct shell;

struct shell_ops {
        /* Of the run that goes on; what comes between two runs is dropped. */
        void (*output)(struct shell *sh, struct str bytes);
        /* The run is over; the next may begin, from inside this call too. */
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
        bool _fresh; /* the run that goes on, or the last, is its first */
        struct shell_script _script;
        char *_cwd;                  /* where the last run ended */
        struct shell_record _record; /* of the run that goes on, or the last */
};

struct shell_run {
        struct str command;
        const char *cwd; /* NULL: where the last run ended */
        usec_t timeout;
        struct arena *arena; /* for the time of the call */
};

/* Makes the directory; starts nothing. The first run begins in cwd. */
int shell_init(struct shell *sh, struct agent *a, const char *cwd, const struct shell_ops *ops)
        must_check;

/* Removes the directory. A process that still runs is killed; nothing is called any more. */
void shell_done(struct shell *sh);

/* Not while busy. Negative: it has not begun, nothing will be called. */
int shell_run(struct shell *sh, const struct shell_run *r) must_check;

/* The shell and all that it has started since it began; run_ended and gone follow. False: there is
 * no process, nothing follows. */
bool shell_kill(struct shell *sh);

void shell_pause_output(struct shell *sh);
void shell_resume_output(struct shell *sh);

#endif
