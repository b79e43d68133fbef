/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_COMMITS_H
#define HUTCH_EXECD_FILE_COMMITS_H

/*
 * Files that are complete and wait to take their places.
 *
 * Taking a place waits for the disk. So it is cut into steps, of which the owner takes one per turn
 * of its loop. Files are placed in their order, and all that wait are placed before the first
 * directory is synced: the journal then has to be written for all at once and not for each.
 *
 * After a failure the others are dropped, nothing more is done, and `failed` tells.
 */

#include "base/list.h"
#include "execd/problem.h"
#include "os/file.h"

struct file_commits {
        struct list queue;
        size_t n;
        size_t added;     /* ever */
        int failed;       /* negative errno, or 0 */
        size_t failed_at; /* which of those added, counted from 0 */
        char failed_path[PROBLEM_PATH_MAX + 1];
};

void file_commits_init(struct file_commits *c);

/* Those that have not taken their places never will. */
void file_commits_done(struct file_commits *c);

/* Takes *file. Too many that wait hold too many descriptors: then a step or two are done here. */
void file_commits_add(struct file_commits *c, struct atomic_file *file,
                      const struct file_attrs *attrs, struct str path);

/* One that waits for the disk, once or not at all; false when nothing is left to do. */
bool file_commits_step(struct file_commits *c);

static inline bool file_commits_pending(const struct file_commits *c)
{
        return !list_empty(&c->queue);
}

#endif
