/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SESSION_WORLD_H
#define HUTCH_TESTS_SESSION_WORLD_H

/*
 * Sessions of an agent under test: the events of a run, in a form that can be compared.
 *
 *         struct session_world s;
 *         session_world_open(&s, "bash");
 *         check_z_eq(run_command(&s, "echo hi; false"), "hi|1");
 *         session_world_close(&s);
 *
 * The other shells are dash and busybox: the agent's PATH then is a directory with `sh` and a few tools
 * in it, and no bash. Runs that must overlap are started one by one (struct pending).
 */

#include "tests/lib/agent_world.h"

struct session_world {
        struct agent_world w;
        char id[ID_UUID_LEN + 1]; /* of a first session */
        char tools[64];
        char *path_before;
        struct buf output;
};

/* shell: "bash", "dash" or "busybox"; the test is skipped if it is missing. "none": the agent finds no shell. */
void session_world_open(struct session_world *s, const char *shell);
void session_world_close(struct session_world *s);

/* Creates a further session; body may be NULL. */
void session_open(struct session_world *s, const char *body, char ret_id[static ID_UUID_LEN + 1]);

/* Runs a command in the first session. Returns "line\nline|code": the code is the exit code, or the text of
 * evalue if that is not a number, or "?" if there was not exactly one last event. A refused run is
 * "status CODE". Valid until the next call. */
const char *run_command(struct session_world *s, const char *command);

/* The same in another session, with more members of the body (", \"cwd\":…" or ""). */
const char *run_command_in(struct session_world *s, const char *id, const char *command,
                           const char *more);

/* --- runs that overlap --- */

struct pending {
        struct session_world *s;
        struct http_loopback lb;
        struct buf body;
        char target[80];
};

void pending_start(struct pending *p, struct session_world *s, const char *id, const char *command);

/* Turns the loop until the text was printed, or the response has ended. */
void pending_until(struct pending *p, const char *text);
const char *pending_end(struct pending *p);

/* --- files and processes --- */

/* Turns the loop until the file is not empty, and returns the number in it. */
long number_in(struct session_world *s, const char *name);

/* Turns the loop until the process is gone. */
void until_dead(struct session_world *s, long pid);

/* Writes into a FIFO of the workspace that a process reads, or will read. */
void put_fifo(struct session_world *s, const char *name, const char *text);

/* The number of private directories. */
size_t count_dirs(const struct session_world *s);

#endif
