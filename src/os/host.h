/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_HOST_H
#define HUTCH_OS_HOST_H

/*
 * Processors and memory of the machine, for when no control group tells about a part of it.
 *
 * `root` is "" but in tests, which give a folder with a tree of their own.
 */

#include "base/compiler.h"

/* Processors this process may run on; at least 1. */
unsigned host_cpus(void);

/* Microseconds of all processors since the start, and how many of them were not idle. -ENODATA
 * without a /proc/stat that makes sense. */
int host_cpu_time(const char *root, uint64_t *ret_busy, uint64_t *ret_total) must_check;

/* Bytes. Without /proc/meminfo the kernel is asked directly, which counts caches as used. */
void host_memory(const char *root, uint64_t *ret_used, uint64_t *ret_total);

#endif
