/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROTECT_H
#define HUTCH_EXECD_PROTECT_H

/*
 * Protection of the agent from the processes of the sandbox, which may run under the same uid.
 */

#include "base/compiler.h"
#include "base/secret.h"

/* Takes the access token: reads it from the descriptor to its end and closes that, or takes it from
 * EXECD_ACCESS_TOKEN if fd is negative. Removes the variable in any case and wipes its bytes in
 * /proc/PID/environ. *ret is NULL if the variable was not set. For a token from a descriptor, a trailing newline
 * is not part of it, and an empty one, or one that is longer than a header may be, is -EINVAL. */
int protect_take_token(int fd, struct secret **ret) must_check;

/* Prevents core dumps, ptrace, and access to memory and descriptors through /proc by processes without
 * CAP_SYS_PTRACE. Sets close-on-exec on all inherited descriptors. */
int protect_process(void) must_check;

/* Executes this program again from a sealed copy in memory. Does not return on success; returns 0 if it runs from
 * such a copy already, or a negative errno. The copy costs memory; a driver that mounts the agent read-only
 * does not need it. */
int protect_seal(char **argv, char **envp) must_check;

#endif
