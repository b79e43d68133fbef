/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_VIRTUAL_FILE_H
#define HUTCH_OS_VIRTUAL_FILE_H

/*
 * The small text files in which the kernel tells about itself (/proc, /sys).
 *
 * They are looked for in whatever root file system we run in, so something else may stand in their
 * place: only regular files are read, no more than the caller has room for, and nothing that could
 * make open(2) wait for somebody.
 */

#include "base/compiler.h"
#include "base/str.h"

/* The file's beginning, at most size - 1 bytes, and a NUL behind it: a longer file is cut. Returns
 * the number of bytes, or a negative errno; -EINVAL if it is not a regular file. */
ssize_t virtual_file_read(const char *path, char *ret, size_t size) must_check;

/* The value of "key value" lines: "inactive_file 123", "MemTotal:  123 kB" (key "MemTotal:"). -ENODATA
 * if there is no such line. */
int virtual_file_value(struct str text, struct str key, uint64_t *ret) must_check;

#endif
