/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_PROCTREE_H
#define HUTCH_OS_PROCTREE_H

/*
 * The descendants of a process.
 *
 * Parents are read from /proc, which is out of date at once: use it below a subreaper, where processes
 * cannot be reparented away.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* Sends sig to every descendant of root (not to root itself). Returns how many there were that are not
 * zombies and may be signalled by us, or a negative errno if /proc cannot be read. */
int proctree_signal(pid_t root, int sig) must_check;

/* Kills every descendant of the calling process, which must be a subreaper, and reaps them, until none
 * is left except those that we may not kill (set-user-ID programs). `reaped` gets each pid and status. A
 * tree that forks while it is killed is stopped first. */
typedef void proctree_reaped_fn(void *data, pid_t pid, int status);
void proctree_kill_children(proctree_reaped_fn *reaped, void *data);

#endif
