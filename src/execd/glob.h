/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_GLOB_H
#define HUTCH_EXECD_GLOB_H

/*
 * Patterns for names of files.
 *
 *         *        any number of characters; ** is the same, as a name has no slash
 *         ?        one character
 *         [a-z_]   one of these; [!a] and [^a] one that is not
 *         {a,b*}   either; may be nested
 *         \c       c itself
 *         !(p)q    at the very beginning: what pq does not match
 *
 * A name is the last part of a path. So a pattern with a slash matches nothing, with two
 * exceptions that patterns for whole paths bring along: "**" and a slash in front of it, and a
 * slash and "**" behind it, stand for no directory at all: "**" "/" "*.c" finds all that "*.c" finds.
 *
 * A character is one of UTF-8; a byte that belongs to none is a character of its own. Names that
 * begin with a dot are nothing special.
 *
 * The time to match is bounded by the length of the name times that of the pattern, whatever they
 * are: all ways to match are followed at once.
 */

#include "base/compiler.h"
#include "base/str.h"

#define GLOB_MAX       1024 /* bytes of a pattern */
#define GLOB_DEPTH_MAX 16   /* of braces */

struct glob;

/* -EINVAL: a bracket, a brace or a backslash without its end; -E2BIG. */
int glob_new(struct str pattern, struct glob **ret) must_check;
void glob_free(struct glob *g);

bool glob_matches(struct glob *g, struct str name);

#endif
