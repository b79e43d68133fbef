/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MEMFD_H
#define HUTCH_OS_MEMFD_H

/*
 * Programs in memory that nobody can change, not even who may write to every file: sealed memfds.
 * All processes that execute one share its pages.
 */

#include "base/compiler.h"
#include "base/str.h"

/* A sealed, executable copy of a file. */
int memfd_sealed_copy(int from, const char *name, int *ret_fd) must_check;

/* Bytes that are no program. */
int memfd_sealed_bytes(struct str bytes, const char *name, int *ret_fd) must_check;

bool memfd_is_sealed(int fd);

#endif
