/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_IN_ROOT_H
#define HUTCH_OS_IN_ROOT_H

/*
 * Paths in a tree that was made by somebody else: an image, a sandbox.
 *
 * Its links may point anywhere and its folders may be exchanged while we look. So a path is walked
 * by the kernel with the tree's root as its root (openat2, RESOLVE_IN_ROOT): "/" and ".." end there,
 * whatever happens meanwhile, and the links of /proc are not followed. What comes back is a
 * descriptor, and all that follows uses it and not the path.
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

/* With O_PATH, O_RDONLY …; O_CLOEXEC is added, and mode counts for O_CREAT. */
struct in_root_how {
        int flags;
        mode_t mode;
        bool no_symlinks; /* -ELOOP if there is any in the path, also on the way */
};

int in_root_open(int root, const char *path, const struct in_root_how *how, int *ret_fd) must_check;

/* O_PATH descriptor of a folder, which is made with those above it if it is missing (mode 0755, of
 * the uid and gid `owner`). A link in the path is refused with -ELOOP: who mounts something upon a folder of a
 * foreign tree wants that folder and no other. -ENOTDIR for what is no folder. */
int in_root_mkdirs(int root, const char *path, uid_t owner, int *ret_fd) must_check;

/* --- is it what we think? --- */

/* -EINVAL if it is not on such a file system (PROC_SUPER_MAGIC …). */
int in_root_check_fs(int fd, long magic) must_check;

#endif
