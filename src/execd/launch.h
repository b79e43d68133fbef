/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_LAUNCH_H
#define HUTCH_EXECD_LAUNCH_H

/*
 * From what a request says to what a program starts with: the part that commands and sessions have
 * in common. Everything lives in the request's arena.
 */

#include "base/err.h"
#include "execd/agent.h"

/* An existing directory, or the workspace if `given` is empty or absent ("/" if there is no workspace).
 * ERR_INVALID if it is not a directory. */
int launch_cwd(const struct agent *a, struct arena *arena, struct str given, const char **ret,
               struct err *e) must_check;

/* The shell that commands are for: bash, or sh where there is none. */
const char *launch_shell(const struct agent *a);

/* A user by number: primary group and further groups as /etc/passwd and /etc/group have them, unless
 * a group is named. gid < 0: none named. NULL when the arena is full. */
const struct spawn_user *launch_user(struct agent *a, struct arena *arena, int64_t uid, int64_t gid)
        must_check;

/* A NULL-terminated copy; NULL when the arena is full. */
char **launch_argv(struct arena *arena, const struct str *items, size_t n) must_check;

#endif
