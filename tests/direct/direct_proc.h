/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_DIRECT_PROC_H
#define HUTCH_TESTS_DIRECT_PROC_H

/* The processes below a supervisor, as /proc shows them. */

#include <sys/types.h>

#include "base/compiler.h"

struct direct_tree {
        size_t n;       /* no zombies */
        size_t running; /* of these, the ones that are not stopped */
        uint64_t cpu_usec, memory_bytes;
};

/* Sends sig, if it is not 0, to all of them (SIGSTOP: to those that are not stopped). */
int direct_tree_scan(pid_t supervisor, int sig, struct direct_tree *ret) must_check;

/* Whether a process is stopped; false if there is none. */
bool direct_is_stopped(pid_t pid);

#endif
