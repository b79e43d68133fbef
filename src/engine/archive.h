/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_ARCHIVE_H
#define HUTCH_ENGINE_ARCHIVE_H

/* The agent as an archive (tar), to be unpacked into a container that sees no folder of ours: the program
 * and the folder for its socket, all of it root's. */

#include "base/buf.h"
#include "base/compiler.h"

#define ARCHIVE_MAX (64 * MiB)

/* Appends; a failure is b's, or a negative errno of reading the program. */
int archive_write(struct buf *b, const char *agent) must_check;

#endif
