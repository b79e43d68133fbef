/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_DISK_H
#define HUTCH_OS_DISK_H

/*
 * Which disk a folder is on, as the kernel numbers it where it limits what is read and written
 * (os/cgroup.h): a whole disk, never a part of one. A volume of several disks that the kernel
 * shows as one (LVM, RAID) is a disk here.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* `root` is "" but in tests; the descriptor may be O_PATH. -ENODEV if the file system has no disk, or
 * does not say which (btrfs, zfs, overlay, tmpfs and those of a network have numbers that the kernel made up). */
int disk_of(const char *root, int folder, dev_t *ret) must_check;

/* The same for the number of a file system's device. */
int disk_of_number(const char *root, dev_t number, dev_t *ret) must_check;

#endif
