/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_DISK_H
#define HUTCH_OS_DISK_H

/*
 * Which disk a directory is on, by the device number that cgroup I/O limits use (os/cgroup.h): a
 * complete disk, never a partition. A volume that the kernel builds of several disks (LVM, RAID) is a
 * disk here.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* `root` is "" except in tests; the descriptor may be O_PATH. -ENODEV if the file system has no disk or
 * does not report it (btrfs, zfs, overlay, tmpfs and network file systems have anonymous numbers). */
int disk_of(const char *root, int dirfd, dev_t *ret) must_check;

/* The same for the device number of a file system. */
int disk_of_number(const char *root, dev_t number, dev_t *ret) must_check;

#endif
