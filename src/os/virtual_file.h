/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_VIRTUAL_FILE_H
#define HUTCH_OS_VIRTUAL_FILE_H

/*
 * Small text files by which the kernel shows and takes settings: /proc, /sys, cgroups.
 *
 * Reading is safe in a root file system that is not trusted, where anything may stand in the place
 * of such a file: only regular files are read, no more than the caller has room for, and open(2) never
 * blocks. The functions with `_at` take a directory and a path in it; the others use absolute paths.
 */

#include "base/compiler.h"
#include "base/str.h"

/* The beginning of the file, at most size - 1 bytes, and a NUL; a longer file is cut. Returns the
 * number of bytes, or a negative errno; -EINVAL if it is not a regular file. */
ssize_t virtual_file_read(const char *path, char *ret, size_t size) must_check;
ssize_t virtual_file_read_at(int dirfd, const char *path, char *ret, size_t size) must_check;

/* A file that holds one number. */
int virtual_file_number_at(int dirfd, const char *path, uint64_t *ret) must_check;

/* A number out of a file of "key value" lines: "inactive_file 123", "MemTotal:  123 kB" (key
 * "MemTotal:"). -ENODATA if there is no such line. */
int virtual_file_value(struct str text, struct str key, uint64_t *ret) must_check;
int virtual_file_value_at(int dirfd, const char *path, struct str key, uint64_t *ret) must_check;

/* Writes the text in one write(2), as the kernel wants it. */
int virtual_file_write_at(int dirfd, const char *path, const char *text) must_check;

#endif
