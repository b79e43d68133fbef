/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FD_H
#define HUTCH_OS_FD_H

/* Descriptors. The null descriptor is -EBADF; every descriptor is opened close-on-exec. */

#include "base/compiler.h"

/* Closes if fd >= 0, preserves errno, and returns -EBADF: fd = fd_close(fd). */
int fd_close(int fd);

/* For scoped(fd_closep). */
void fd_closep(int *fd);

/* The n descriptors become 3, 4, …, in their order, and all others except 0, 1 and 2 are closed, for a
 * child that must not keep those of its parent. The variables get the new numbers. */
int fd_keep_only(int *const *fds, size_t n) must_check;

/* Raises the soft limit of open descriptors to the hard one; returns the limit in force, or a
 * negative errno. */
int64_t fd_limit_raise(void);

#endif
