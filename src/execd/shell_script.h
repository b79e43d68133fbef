/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_SCRIPT_H
#define HUTCH_EXECD_SHELL_SCRIPT_H

/*
 * The scripts that a persistent shell executes (execd/shell.h), and the private directory they are in:
 *
 *         run                 the command of the current run, as the client gave it
 *         step                what the shell does around it
 *         state.0, state.1    the exported variables, saved in turn: one of them is always complete
 *
 * The scripts are for any POSIX shell. They use no variables or functions of their own, which a run would
 * see and could break, and nothing that a run may have redefined: every command begins with `\command`.
 * The backslash prevents alias expansion, the word itself function lookup.
 */

#include "base/buf.h"
#include "base/str.h"

struct shell_script {
        char *_state_dir;
        char *_dir; /* NULL: none */
        int _saved; /* which state file is valid, or -1 */
};

struct shell_step {
        struct str command;
        const char *cwd;         /* of this run, or NULL */
        const char *nonce;       /* of the records */
        bool fresh;              /* the first step of a shell: */
        bool is_bash;            /* which kind it is, */
        const char *initial_cwd; /* and where it begins */
};

/* Creates the directory. On failure nothing is left behind. */
int shell_script_init(struct shell_script *sc, struct str state_dir) must_check;

/* Removes the directory. */
void shell_script_done(struct shell_script *sc);

/* Called before each step: replaces a directory that is gone, or that other users may write to. The saved
 * variables are lost then. */
int shell_script_check(struct shell_script *sc) must_check;

/* Writes both files. */
int shell_script_write(struct shell_script *sc, const struct shell_step *step) must_check;

/* Appends the line that makes a shell execute the step, at most PIPE_BUF bytes. */
void shell_script_add_line(const struct shell_script *sc, struct buf *b);

/* Discards the saved variables: a shell that sourced them has ended by it. */
void shell_script_forget(struct shell_script *sc);

/* The shell has reported that it has saved its variables. */
void shell_script_saved(struct shell_script *sc);

#endif
