/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_ENVIRONMENT_H
#define HUTCH_EXECD_ENVIRONMENT_H

/*
 * The environment of the sandbox's processes: what the agent itself was started with, less the
 * agent's own configuration, plus the variables of the file that EXECD_ENVS names (read anew for
 * every process, because people edit it), plus what a request brings.
 *
 * The agent's own configuration is every variable whose name begins with EXECD_ or HUTCH_EXECD_.
 */

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

#define ENV_FILE_DEFAULT "/opt/opensandbox/.env"
#define ENV_FILE_MAX     (1 * MiB) /* a longer file is not read */

struct environment {
        char **vars; /* "NAME=value", NULL at the end */
        size_t n;
        char *file; /* path, or NULL */
};

/* Copies what is fit for children out of `environ`. */
void environment_init(struct environment *e, char *const *environ_now);
void environment_done(struct environment *e);

/* The value a new process would see; the null view if there is none. `a` holds the value if it comes
 * from the file. */
struct str environment_get(const struct environment *e, struct arena *a, struct str name);

/* The whole vector for execve, `more` on top. NULL when the arena is full. The last of several
 * variables of one name wins. */
char **environment_build(const struct environment *e, struct arena *a, const struct json_map *more)
        must_check;

/* Whether a name may stand before '='. */
bool environment_name_is_valid(struct str name);

#endif
