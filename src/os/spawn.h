/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_SPAWN_H
#define HUTCH_OS_SPAWN_H

/*
 * Starts a program.
 *
 * The child borrows our memory until it executes (CLONE_VM|CLONE_VFORK), which costs less than half
 * of a fork and does not depend on our size. It is the leader of a new session, has three
 * descriptors, no signal blocked or ignored, and the soft limit of open files that we were started
 * with: ours is raised, and programs that walk all descriptors or use select(2) suffer from that.
 *
 * What goes wrong in the child before or in execve comes back as the return value, so that a
 * program that does not exist is an error here and not an exit code there.
 */

#include <sys/types.h>

#include "base/compiler.h"

struct spawn_user {
        uid_t uid;
        gid_t gid;
        const gid_t *groups; /* supplementary */
        size_t n_groups;
};

struct spawn {
        char *const *argv;
        char *const *envp;
        const char *search;            /* where argv[0] without a slash is; NULL: PATH of envp */
        const char *cwd;               /* NULL: ours */
        int fds[3];                    /* become 0, 1, 2; may be equal */
        const struct spawn_user *user; /* NULL: ours */
        bool die_with_parent;          /* SIGKILL when we end */
        bool oom_first;                /* rather than we, when memory is short */
};

/* Where argv[0] is looked for when there is no PATH. */
#define SPAWN_PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Not from a process with several threads. -ENOENT if there is no such program, -ENOTDIR or
 * -ENOENT if there is no such cwd, -E2BIG, -EACCES, -EPERM … */
int spawn_program(const struct spawn *s, pid_t *ret_pid) must_check;

/* PATH, or SPAWN_PATH_DEFAULT if there is none. */
const char *spawn_search_path(char *const *envp);

/* Whether there is an executable file of that name where spawn_program would look for it. */
bool spawn_exists(const char *program, char *const *envp);

/* Remembers the limit of open files for children; to be called before it is raised. */
void spawn_save_limits(void);

#endif
