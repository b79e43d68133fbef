/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MARK_H
#define HUTCH_OS_MARK_H

/*
 * What is to be mounted at a path, told from who has checked it to who finds it there.
 *
 * A file can be checked by descriptor, but some who mount (container engines) take a path, and walk it again
 * later. Who can change a folder on that path decides then what they find. So the file is marked: the one
 * that was checked is kept open, which keeps its inode from being used for another, and its device and inode
 * are told to a program that looks at what was mounted before anybody else can use it.
 *
 *         checks:  fd = inside_open(…); mark_of(fd, &m); mark_write(b, &m, "/mnt/work")
 *         mounts:  mount(PATH, "/mnt/work")                               perhaps of something else by now
 *         looks:   mark_check("2049:131074:/mnt/work") == 0, or it ends with MARK_EXIT
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

struct mark {
        uint64_t dev, ino;
};

/* The exit status of a program that has found something else. */
#define MARK_EXIT 94

int mark_of(int fd, struct mark *ret) must_check;

/* Appends "DEV:INO:PATH". */
void mark_write(struct buf *b, const struct mark *m, struct str path);

/* -ESTALE: it is another file; -ELOOP: there is a link in the path; -ENOTUNIQ: nothing is mounted there;
 * -EINVAL: this is no mark; or why the path can't be opened. */
int mark_check(struct str text) must_check;

#endif
