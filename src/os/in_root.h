/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_IN_ROOT_H
#define HUTCH_OS_IN_ROOT_H

/*
 * Paths in a tree that is not trusted: an image, a sandbox.
 *
 * Its links may point anywhere and its directories may be exchanged meanwhile. So the kernel resolves a
 * path with the tree's root as its root (openat2, RESOLVE_IN_ROOT): "/" and ".." end there, and magic
 * links of /proc are not followed. The result is a descriptor, and everything that follows uses it and
 * not the path.
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Flags as for open(2); O_CLOEXEC is added, and mode is for O_CREAT. */
struct in_root_how {
        int flags;
        mode_t mode;
        bool no_symlinks; /* -ELOOP if any component of the path is one */
};

int in_root_open(int root, const char *path, const struct in_root_how *how, int *ret_fd) must_check;

/* An O_PATH descriptor of a directory, which is created with its parents if it is missing (mode 0755,
 * uid and gid `owner`). A link in the path is refused with -ELOOP: a mount must be attached to exactly
 * that directory. -ENOTDIR if it is not a directory. */
int in_root_mkdirs(int root, const char *path, uid_t owner, int *ret_fd) must_check;

/* --- checks --- */

/* -EINVAL if it is on another type of file system (PROC_SUPER_MAGIC …). */
int in_root_check_fs(int fd, long magic) must_check;

#endif
