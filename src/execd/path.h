/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PATH_H
#define HUTCH_EXECD_PATH_H

/*
 * Paths as clients write them.
 *
 *         ~/x, ~name/x       the home directory of the agent's user, or of that user (/etc/passwd)
 *         $VAR, ${VAR}       from the environment that commands get; an undefined one is an error
 *         file:///a/%FF      a URI: percent-decoded, nothing else is expanded; the form in which names
 *                            that are not UTF-8 travel in JSON
 *         a/b                relative to the workspace
 *
 * Variables are expanded first, so a variable may hold a "~". A '$' that no name follows stands for
 * itself.
 *
 * The result is absolute, NUL-terminated, at most PATH_MAX - 1 bytes long, and lives in the request's
 * arena. "." and ".." are left to the kernel, which resolves links. A NUL byte is refused.
 */

#include "base/err.h"
#include "execd/agent.h"

/* Negative with *e filled: ERR_INVALID (empty, NUL, bad URI, unclosed brace, too long), or
 * ERR_NOT_FOUND for an undefined variable or unknown user. */
int path_resolve(const struct agent *a, struct arena *arena, struct str given, struct str *ret,
                 struct err *e) must_check;

/* The path without empty and "." components, as it is shown to clients. Null view if the arena is full. */
struct str path_clean(struct arena *arena, struct str path);

/* Appends the URI of an absolute path; it needs no escapes in JSON. */
void path_add_uri(struct buf *b, struct str path);

#endif
