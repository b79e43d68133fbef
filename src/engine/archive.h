/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_ARCHIVE_H
#define HUTCH_ENGINE_ARCHIVE_H

/* tar archives for an engine: the agent, to be unpacked into a container that has none of our directories mounted (the
 * program and the directory for its socket, all owned by root), and small documents. */

#include "base/buf.h"
#include "base/compiler.h"

#define ARCHIVE_MAX (64 * MiB)

/* Appends; a failure is b's, or a negative errno of reading the program. */
int archive_write(struct buf *b, const char *agent) must_check;

/* One file, not empty, and the end. Append; a failure is b's. */
void archive_add(struct buf *b, const char *name, struct str content);
void archive_end(struct buf *b);

#endif
