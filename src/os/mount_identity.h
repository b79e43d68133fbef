/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MOUNT_IDENTITY_H
#define HUTCH_OS_MOUNT_IDENTITY_H

/*
 * What is to be mounted at a path, told from who has checked it to who finds it there.
 *
 * A file can be checked by descriptor, but some who mount (container engines) take a path, and walk it again
 * later. Who can change a folder on that path decides then what they find. So the file is marked: the one
 * that was checked is kept open, which keeps its inode from being used for another, and its device and inode
 * are told to a program that looks at what was mounted before anybody else can use it.
 *
 *         checks:  fd = in_root_open(…); mount_identity_of(fd, &m); mount_identity_write(b, &m, "/mnt/work")
 *         mounts:  mount(PATH, "/mnt/work")                               perhaps of something else by now
 *         looks:   mount_identity_check("2049:131074:/mnt/work") == 0, or it ends with MOUNT_IDENTITY_EXIT
 *
 * The look takes a path without any link and insists on a mount point: a link could lead to the right file
 * while the wrong one is mounted where it led to before, and the right file could have been moved to where
 * nothing was mounted. Both need somebody who changes folders on the way to the mount point meanwhile; so of
 * several marks none is to be below the mount of a tree that has mounts in it.
 *
 * Device and inode mean the same for all processes of one kernel, in all namespaces. A program that runs on
 * another one (another machine, gVisor, Kata) finds other numbers, and refuses.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

struct mount_identity {
        uint64_t dev, ino;
};

/* The exit status of a program that has found something else. */
#define MOUNT_IDENTITY_EXIT 94

int mount_identity_of(int fd, struct mount_identity *ret) must_check;

/* Appends "DEV:INO:PATH". */
void mount_identity_write(struct buf *b, const struct mount_identity *m, struct str path);

/* -ESTALE: it is another file; -ELOOP: there is a link in the path; -ENOTUNIQ: nothing is mounted there;
 * -EINVAL: this is no mount_identity; or why the path can't be opened. */
int mount_identity_check(struct str text) must_check;

#endif
