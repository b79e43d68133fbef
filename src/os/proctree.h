/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_PROCTREE_H
#define HUTCH_OS_PROCTREE_H

/*
 * Processes below a process.
 *
 * Who is whose child is read from /proc. Such a reading is old the moment it is made: use it for
 * processes that can't end up elsewhere, below a subreaper.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* Sends sig to every descendant of root (not to root itself). Returns how many there were that are
 * no zombies and may be signalled by us, or a negative errno if /proc can't be read. */
int proctree_signal(pid_t root, int sig) must_check;

/* Kills every descendant of the calling process, which must be a subreaper, and reaps them, until
 * none is left but those that we may not kill (set-user-ID programs). Each pid that is reaped and its status go to `reaped`. A tree that multiplies while
 * it is killed is stopped first. */
typedef void proctree_reaped_fn(void *data, pid_t pid, int status);
void proctree_kill_children(proctree_reaped_fn *reaped, void *data);

#endif
