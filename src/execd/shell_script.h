/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_SCRIPT_H
#define HUTCH_EXECD_SHELL_SCRIPT_H

/*
 * What a living shell is told (execd/shell.h), and the private directory through which it is told:
 *
 *         run                 the command of the current run, as the client gave it
 *         step                what the shell does around it
 *         state.0, state.1    the exported variables, saved in turns: one of them is always whole
 *
 * The texts are for any POSIX shell. They use no variables and no functions of their own, which a run
 * would see and could break, and nothing that a run may have redefined: all commands begin with
 * `\command`, where the backslash keeps aliases away and the word functions.
 */

#include "base/buf.h"
#include "base/str.h"

struct shell_script {
        char *_state_dir;
        char *_dir; /* NULL: none */
        int _saved; /* which file of variables counts, or -1 */
};

struct shell_step {
        struct str command;
        const char *cwd;         /* of this run, or NULL */
        const char *nonce;       /* what the records begin with */
        bool fresh;              /* the first step of a shell, and */
        bool is_bash;            /* this is what kind of shell, and */
        const char *initial_cwd; /* this is where it begins */
};

/* Makes the directory. On failure there is nothing to be undone. */
int shell_script_init(struct shell_script *sc, struct str state_dir) must_check;

/* Removes the directory. */
void shell_script_done(struct shell_script *sc);

/* To be asked before each step: a directory that is gone, or that is not ours alone, is replaced. What
 * was saved is lost then. */
int shell_script_check(struct shell_script *sc) must_check;

/* Writes both files. */
int shell_script_write(struct shell_script *sc, const struct shell_step *step) must_check;

/* The line that makes a shell do the step, at most PIPE_BUF bytes. */
void shell_script_add_line(const struct shell_script *sc, struct buf *b);

/* What is saved is no good: a shell that took it over has ended by it. */
void shell_script_forget(struct shell_script *sc);

/* The shell says that it has saved its variables. */
void shell_script_saved(struct shell_script *sc);

#endif
