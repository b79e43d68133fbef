/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_LAUNCH_H
#define HUTCH_EXECD_LAUNCH_H

/*
 * What a new process of the sandbox starts with: environment, working directory, user, arguments.
 *
 * The environment is the agent's own, without the agent's configuration (variables that begin with EXECD_
 * or HUTCH_EXECD_), plus the variables of the file that EXECD_ENVS names, plus those of the request. The
 * file is read for each process, because users edit it. The last of several variables of one name wins.
 *
 * Everything that is built here lives in the caller's arena.
 */

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "os/spawn.h"

struct agent;

/* --- environment --- */

#define ENV_FILE_DEFAULT "/opt/opensandbox/.env"
#define ENV_FILE_MAX     (1 * MiB) /* a longer file is not read */

struct environment {
        char **vars; /* "NAME=value", terminated by NULL */
        size_t n;
        char *file; /* path, or NULL */
};

/* Copies from `environ` what children may have. */
void environment_init(struct environment *e, char *const *environ_now);
void environment_done(struct environment *e);

/* The value that a new process would see; the null view if there is none. A value from the file lives
 * in `a`. */
struct str environment_get(const struct environment *e, struct arena *a, struct str name);

/* The vector for execve, with `more` on top (may be NULL). NULL when the arena is full. */
char **environment_build(const struct environment *e, struct arena *a, const struct json_map *more)
        must_check;

/* Whether a name may precede '='. */
bool environment_name_is_valid(struct str name);

/* --- the rest --- */

/* An existing directory, or the workspace if `given` is empty ("/" if there is no workspace). ERR_INVALID
 * if it is not a directory. */
int launch_cwd(const struct agent *a, struct arena *arena, struct str given, const char **ret,
               struct err *e) must_check;

/* The shell that runs commands: bash, or sh where there is no bash. */
const char *launch_shell(const struct agent *a);

/* A user by number. Primary and supplementary groups come from /etc/passwd and /etc/group, unless gid
 * names one (gid < 0: none). NULL when the arena is full. */
const struct spawn_user *launch_user(struct agent *a, struct arena *arena, int64_t uid, int64_t gid)
        must_check;

/* A NULL-terminated copy; NULL when the arena is full. */
char **launch_argv(struct arena *arena, const struct str *items, size_t n) must_check;

#endif
