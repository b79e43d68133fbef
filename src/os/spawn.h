/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_SPAWN_H
#define HUTCH_OS_SPAWN_H

/*
 * Starts a program.
 *
 * The child shares our memory until execve (CLONE_VM|CLONE_VFORK), which costs less than half of a fork
 * and does not depend on our size. It is the leader of a new session, has three descriptors, no signal
 * blocked or ignored, and the soft limit of open files that we were started with: ours is raised, which
 * slows down programs that iterate over all descriptors and breaks those that use select(2).
 *
 * Errors in the child up to and including execve are returned here, so that a missing program is an
 * error and not an exit code.
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
        const char *search; /* directories for argv[0] without a slash; NULL: PATH of envp */
        const char *cwd;    /* NULL: ours */
        int fds[3];         /* become 0, 1, 2; may be equal */
        const struct spawn_user *user; /* NULL: ours */
        bool die_with_parent;          /* SIGKILL when we end */
        bool oom_first;                /* the OOM killer prefers it to us */
        const int *join; /* files that it writes "0" to: tasks of cgroups of v1 (os/cgroup.h) */
        size_t n_join;
        bool deny_clone3; /* as our own filter did if we did not need it (os/confine.h) */
};

/* Used when there is no PATH. */
#define SPAWN_PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The caller must be single-threaded. -ENOENT if there is no such program, -ENOTDIR or -ENOENT if there
 * is no such cwd, -E2BIG, -EACCES, -EPERM … */
int spawn_program(const struct spawn *s, pid_t *ret_pid) must_check;

/* PATH, or SPAWN_PATH_DEFAULT if there is none. */
const char *spawn_search_path(char *const *envp);

/* Whether spawn_program would find an executable file of that name. */
bool spawn_exists(const char *program, char *const *envp);

/* Saves the limit of open files for children; to be called before it is raised. */
void spawn_save_limits(void);

#endif
