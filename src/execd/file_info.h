/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_INFO_H
#define HUTCH_EXECD_FILE_INFO_H

/*
 * What the API tells about a file: the same object in answers to /files/info, in searches and in
 * lists of directories.
 *
 *         {"path":"/a/b","type":"file","size":5,"modified_at":"…","created_at":"…",
 *          "owner":"root","group":"root","mode":644}
 *
 * type is file, directory, symlink or other; mode has the permission bits as octal digits. A path
 * that is not UTF-8 is shown with replacement characters and has its true bytes in "uri".
 */

#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/users.h"

/* Looks at a name without following it, and without waking an automounter. dirfd may be AT_FDCWD.
 * 0 or a negative errno. */
int file_info_stat(int dirfd, const char *name, struct statx *ret) must_check;

/* Appends the object. users_refresh is the caller's, once for many. */
void file_info_add(struct buf *b, struct str abs_path, const struct statx *st,
                   const struct users *u);

#endif
