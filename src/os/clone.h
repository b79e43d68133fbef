/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CLONE_H
#define HUTCH_OS_CLONE_H

/*
 * A copy of this process in namespaces of its own.
 *
 * Like fork(2), it returns twice. The child has a copy of our memory and must not use what belongs
 * to the parent's loop or threads; it is meant to prepare itself and execute something. No handlers
 * of pthread_atfork run.
 */

#include <sched.h>
#include <sys/types.h>

#include "base/compiler.h"

struct clone_child {
        uint64_t namespaces; /* CLONE_NEWNS … */
        int cgroup;   /* folder of a group of the unified hierarchy the child is born in, or -EBADF.
                     * Moving a process later takes a lock that all of the machine waits for. */
        bool sibling; /* its parent is ours, who gets what we have been made to send at our end */
};

/* 0 in the child, its process id in the parent, or a negative errno. ret_pidfd is written in the
 * parent only. Not from a process with several threads. */
pid_t clone_child(const struct clone_child *c, int *ret_pidfd) must_check;

/* --- pidfds --- */

/* 0, or a negative errno; -ESRCH if it has ended and was reaped. */
int pidfd_kill(int pidfd, int sig) must_check;

/* Waits for the end of a child of ours and reaps it. *ret_status is that of waitpid(2). */
int pidfd_wait(int pidfd, int *ret_status) must_check;

/* The same of a process that is somebody else's child, once that one has reaped it: -EAGAIN before.
 * -EOPNOTSUPP on kernels before 6.15, which tell nobody but the parent. */
int pidfd_status(int pidfd, int *ret_status) must_check;

#endif
