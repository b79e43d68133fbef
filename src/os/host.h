/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_HOST_H
#define HUTCH_OS_HOST_H

/*
 * CPUs and memory of the host, for use where no cgroup has limits (os/cgroup_self.h).
 *
 * `root` is "" except in tests, which pass a directory with a tree of their own.
 */

#include "base/compiler.h"

/* CPUs this process may run on; at least 1. */
unsigned host_cpus(void);

/* Microseconds of all CPUs since boot, and how many of them were not idle. -ENODATA without a valid
 * /proc/stat. */
int host_cpu_time(const char *root, uint64_t *ret_busy, uint64_t *ret_total) must_check;

/* Bytes. Without /proc/meminfo sysinfo(2) is used, which counts caches as used. */
void host_memory(const char *root, uint64_t *ret_used, uint64_t *ret_total);

#endif
