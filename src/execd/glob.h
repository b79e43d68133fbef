/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_GLOB_H
#define HUTCH_EXECD_GLOB_H

/*
 * Patterns for file names.
 *
 *         *        any number of characters; ** is the same, as a name has no slash
 *         ?        one character
 *         [a-z_]   one of these; [!a] and [^a] one that is not
 *         {a,b*}   either; may be nested
 *         \c       c itself
 *         !(p)q    at the very beginning: what pq does not match
 *
 * A name is the last component of a path, so a pattern with a slash matches nothing, with two exceptions
 * for patterns that were written for complete paths: a leading "**" with a slash, and a trailing slash
 * with "**", match no directory at all: "**" "/" "*.c" finds everything that "*.c" finds.
 *
 * A character is one of UTF-8; a byte that belongs to none is a character of its own. A leading dot is
 * not special.
 *
 * The time to match is bounded by the length of the name times that of the pattern: all ways to match are
 * followed at the same time.
 */

#include "base/compiler.h"
#include "base/str.h"

#define GLOB_MAX       1024 /* bytes of a pattern */
#define GLOB_DEPTH_MAX 16   /* of braces */

struct glob;

/* -EINVAL: an unterminated bracket, brace or backslash; -E2BIG: too long or too deep. */
int glob_new(struct str pattern, struct glob **ret) must_check;
void glob_free(struct glob *g);

bool glob_matches(struct glob *g, struct str name);

#endif
