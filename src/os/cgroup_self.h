/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_SELF_H
#define HUTCH_OS_CGROUP_SELF_H

/*
 * What the control group we run in has used, and what it may use.
 *
 * /proc/self/cgroup says where we are: in the unified hierarchy (version 2), in one hierarchy for
 * each controller (version 1), or in both (hybrid), where a controller is in one of them. The
 * hierarchies are looked for where everybody mounts them:
 *
 *         /sys/fs/cgroup, /sys/fs/cgroup/unified          version 2
 *         /sys/fs/cgroup/memory, …/cpu, …/cpu,cpuacct     version 1
 *
 * A limit may stand at our group or at any group above it that we can see, and the smallest one is
 * what counts. Use is then that of the group which has this limit: a group of our own below it (the
 * agent's beside those of its commands, say) is only a part of the sandbox. Without any limit it is
 * the use of our own group.
 *
 * A container without a namespace for its groups sees its own group at the mount point while
 * /proc/self/cgroup names the path on the machine; a path that is not there therefore means the
 * mount point itself.
 *
 * `root` is "" but in tests, which give a folder with a tree of their own. What is missing or makes
 * no sense is treated alike: -ENODATA, and the caller asks the machine.
 */

#include "base/compiler.h"

#define CGROUP_UNLIMITED UINT64_MAX

struct cgroup_self_usage {
        uint64_t used;
        uint64_t limit; /* CGROUP_UNLIMITED if there is none */
};

/* used: microseconds of all processors since the group was made. limit: thousandths of a processor. */
int cgroup_self_cpu(const char *root, struct cgroup_self_usage *ret) must_check;

/* Bytes. Cached files that can be dropped at once (inactive_file) do not count as used. */
int cgroup_self_memory(const char *root, struct cgroup_self_usage *ret) must_check;

#endif
