/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROTECT_H
#define HUTCH_EXECD_PROTECT_H

/*
 * Protection of the agent from the processes of the sandbox, which may run under the same uid.
 */

#include "base/compiler.h"
#include "base/secret.h"

/* Takes the token from EXECD_ACCESS_TOKEN, wipes its bytes in /proc/PID/environ, and removes the variable. NULL
 * if there is none. */
struct secret *protect_token_from_env(void);

/* Reads the token from a descriptor to its end and closes it. A trailing newline is not part of it. -EINVAL for
 * an empty token or one that is longer than a header may be. */
int protect_token_from_fd(int fd, struct secret **ret) must_check;

/* Prevents core dumps, ptrace, and access to memory and descriptors through /proc by processes without
 * CAP_SYS_PTRACE. */
int protect_memory(void) must_check;

/* Sets close-on-exec on all inherited descriptors. */
void protect_descriptors(void);

/* Executes this program again from a sealed copy in memory. Does not return on success; returns 0 if it runs from
 * such a copy already, or a negative errno. The copy costs memory; a driver that mounts the agent read-only
 * does not need it. */
int protect_seal(char **argv, char **envp) must_check;

#endif
