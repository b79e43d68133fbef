/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_STATS_H
#define HUTCH_OS_CGROUP_STATS_H

/* What a group of ours (os/cgroup_make.h) has used and uses, seen from outside. */

#include "base/compiler.h"
#include "os/cgroup_make.h"

struct cgroup_stats {
        uint64_t cpu_usec;  /* since it was made */
        uint64_t memory;    /* bytes, without cached files that can be dropped at once */
        uint64_t processes; /* and threads */
        uint64_t oom_kills; /* processes that were killed for want of memory, so far */
};

/* What this machine does not count is 0. */
int cgroup_stats(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_stats *ret)
        must_check;

#endif
