/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_TREE_LISTING_H
#define HUTCH_EXECD_TREE_LISTING_H

/*
 * The files of a tree as a JSON array of FileInfo (execd/file_info.h), streamed: in constant memory
 * however many there are. Directories come before their content, names in ascending order.
 *
 * What vanishes while it is looked at, directories that can't be read, and what lies so deep that
 * its path is longer than the kernel takes, is left out. A tree that is moved away under the walk
 * breaks the answer off, and so does a lack of descriptors or memory.
 */

#include "base/str.h"
#include "execd/glob.h"
#include "http/req.h"

struct tree_query {
        struct str root;    /* absolute, NUL-terminated, in the request's arena */
        int rootfd;         /* a directory, or -EBADF: only the root itself is told */
        unsigned depth_max; /* 0: no limit */
        bool files_only;    /* directories are walked, not told */
        struct glob *glob;  /* of the names to be told, or NULL: all */
};

/* Answers. Takes rootfd and glob. */
void tree_listing_start(struct http_req *req, const struct tree_query *q);

/* The path without empty and "." parts: what it shows to clients. NULL view if the arena is full. */
struct str path_clean(struct arena *a, struct str path);

#endif
