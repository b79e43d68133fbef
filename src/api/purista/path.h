/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_PATH_H
#define HUTCH_API_PURISTA_PATH_H

/* Paths of callers. They mean what they say: where the agent would replace a variable or a home folder
 * (execd's own clients expect that), the name is written so that it does not. */

#include "base/arena.h"
#include "base/str.h"

/* Where relative paths begin. */
#define PURISTA_WORKSPACE "/workspace"

/* 0, or -ENOMEM. The null view and "" stay. */
int purista_agent_path(struct arena *a, struct str path, struct str *ret) must_check;

/* For messages: without control characters, and not longer than that. */
#define TEXT_CUT 128
const char *purista_printable(struct str text, char ret[static TEXT_CUT]);

#endif
