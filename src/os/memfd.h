/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MEMFD_H
#define HUTCH_OS_MEMFD_H

/*
 * Sealed memfds: programs and data in memory that cannot be changed, not even by a process that may
 * write to every file. All processes that execute one share its pages.
 */

#include "base/compiler.h"
#include "base/str.h"

/* A sealed, executable copy of a file. */
int memfd_sealed_copy(int from, const char *name, int *ret_fd) must_check;

/* Bytes that are not executed. */
int memfd_sealed_bytes(struct str bytes, const char *name, int *ret_fd) must_check;

bool memfd_is_sealed(int fd);

#endif
