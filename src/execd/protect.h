/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROTECT_H
#define HUTCH_EXECD_PROTECT_H

/*
 * What keeps the sandbox's processes away from the agent, which may run under their own uid.
 */

#include "base/compiler.h"
#include "base/secret.h"

/* Takes the token out of EXECD_ACCESS_TOKEN, wipes its bytes where the kernel shows them
 * (/proc/PID/environ), and removes the variable. NULL if there is none. */
struct secret *protect_token_from_env(void);

/* Reads the token from a descriptor to its end and closes it. A last newline is not part of it.
 * -EINVAL for an empty one or one longer than a header may be. */
int protect_token_from_fd(int fd, struct secret **ret) must_check;

/* No core dumps, no ptrace, no reading of our memory and descriptors through /proc, by processes
 * without CAP_SYS_PTRACE. */
int protect_memory(void) must_check;

/* Whatever we inherited closes when a child executes something. */
void protect_descriptors(void);

/* Executes this very program again from a sealed copy in memory, unless it runs from one already:
 * returns 0 then, a negative errno on failure, and not at all on success. The copy costs memory; a
 * driver that gives the agent a read-only file does not need it. */
int protect_seal(char **argv, char **envp) must_check;

#endif
