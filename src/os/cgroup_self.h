/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_SELF_H
#define HUTCH_OS_CGROUP_SELF_H

/*
 * What the cgroup we run in uses, and what it may use.
 *
 * /proc/self/cgroup says where we are: in the unified hierarchy (v2), in one hierarchy for each
 * controller (v1), or in both (hybrid), where a controller is in one of them. The hierarchies are
 * expected at their usual mount points:
 *
 *         /sys/fs/cgroup, /sys/fs/cgroup/unified          v2
 *         /sys/fs/cgroup/memory, …/cpu, …/cpu,cpuacct     v1
 *
 * A limit may be set on our cgroup or on any ancestor that we can see, and the smallest one counts.
 * Usage is then that of the cgroup which has this limit: a cgroup of our own below it (the agent's
 * beside those of its commands, say) is only a part of the sandbox. Without any limit it is the usage
 * of our own cgroup.
 *
 * A container without a cgroup namespace sees its own cgroup at the mount point while
 * /proc/self/cgroup names the path on the host; a path that does not exist therefore means the mount
 * point itself.
 *
 * `root` is "" except in tests, which pass a directory with a tree of their own. Values that are
 * missing or make no sense are -ENODATA, and the caller falls back to the host's (os/host.h).
 */

#include "base/compiler.h"

#define CGROUP_UNLIMITED UINT64_MAX

struct cgroup_self_usage {
        uint64_t used;
        uint64_t limit; /* CGROUP_UNLIMITED if there is none */
};

/* used: microseconds of all CPUs since the cgroup was created. limit: thousandths of a CPU. */
int cgroup_self_cpu(const char *root, struct cgroup_self_usage *ret) must_check;

/* Bytes. Page cache that can be dropped at once (inactive_file) does not count as used. */
int cgroup_self_memory(const char *root, struct cgroup_self_usage *ret) must_check;

#endif
