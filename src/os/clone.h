/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CLONE_H
#define HUTCH_OS_CLONE_H

/*
 * A child process in new namespaces (clone3), and pidfds.
 *
 * Like fork(2), it returns twice. The child has a copy of our memory and must not use the parent's loop
 * or threads; it is meant to prepare itself and execute a program. No pthread_atfork handlers run.
 */

#include <sched.h>
#include <sys/types.h>

#include "base/compiler.h"

struct clone_child {
        uint64_t namespaces; /* CLONE_NEWNS … */
        int cgroup;   /* directory of the cgroup v2 that the child is born in, or -EBADF. Moving a
                       * process later takes a lock of the whole host. */
        bool sibling; /* its parent is ours, and no signal is sent when it ends */
};

/* 0 in the child, its pid in the parent, or a negative errno. *ret_pidfd is written in the parent only.
 * The caller must be single-threaded. */
pid_t clone_child(const struct clone_child *c, int *ret_pidfd) must_check;

/* --- pidfds --- */

/* 0, or a negative errno; -ESRCH if it has ended and was reaped. */
int pidfd_kill(int pidfd, int sig) must_check;

/* Waits for a child of ours and reaps it. *ret_status is that of waitpid(2). */
int pidfd_wait(int pidfd, int *ret_status) must_check;

/* The exit status of a process that is not our child, once its parent has reaped it: -EAGAIN before.
 * -EOPNOTSUPP on kernels before 6.15, which report it to the parent only. */
int pidfd_status(int pidfd, int *ret_status) must_check;

#endif
