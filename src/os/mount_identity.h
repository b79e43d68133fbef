/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MOUNT_IDENTITY_H
#define HUTCH_OS_MOUNT_IDENTITY_H

/*
 * Verifies that a mount is of the file that was checked.
 *
 * A file can be checked by descriptor, but container engines mount by path and resolve it again later; a
 * tenant that can change a directory of that path decides what they find. So the checked file is kept
 * open, which keeps its inode from being reused, and its device and inode are passed to a program that
 * verifies the mount before anything else can use it.
 *
 *         checker:   fd = in_root_open(…); mount_identity_of(fd, &m); mount_identity_write(b, &m, "/mnt/work")
 *         engine:    mount(PATH, "/mnt/work")                    perhaps of something else by now
 *         verifier:  mount_identity_check("2049:131074:/mnt/work") == 0, or exit(MOUNT_IDENTITY_EXIT)
 *
 * The verifier refuses links in the path and requires a mount point: a link could lead to the right file
 * while the wrong one is mounted at its former target, and the right file could have been moved to where
 * nothing is mounted. Both need a process that changes directories on the way to the mount point; so of
 * several such mounts none may be below that of a tree with mounts in it.
 *
 * Device and inode mean the same in all namespaces of one kernel. A verifier on another kernel (another
 * host, gVisor, Kata) finds other numbers, and refuses.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

struct mount_identity {
        uint64_t dev, ino;
};

/* The exit status of a verifier that has found another file. */
#define MOUNT_IDENTITY_EXIT 94

int mount_identity_of(int fd, struct mount_identity *ret) must_check;

/* Appends "DEV:INO:PATH". */
void mount_identity_write(struct buf *b, const struct mount_identity *m, struct str path);

/* -ESTALE: it is another file; -ELOOP: the path contains a link; -ENOTUNIQ: nothing is mounted there;
 * -EINVAL: the text is malformed; or the reason why the path cannot be opened. */
int mount_identity_check(struct str text) must_check;

#endif
