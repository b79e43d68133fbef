/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_INSTANCE_FLOOR_H
#define HUTCH_BENCH_INSTANCE_FLOOR_H

/*
 * What the kernel alone takes for a sandbox: the same namespaces, layers, mounts, masks, capabilities
 * and filter as ours have, made by the shortest way, with constant paths and without a plan, a
 * spec, a seed, a socket or a word about what went wrong. Its directories must be there.
 */

#include <sys/types.h>

struct cgroup;
struct cgroup_tree;

struct instance_floor {
        const char *data; /* as warden/data.h has it, with boxes/NAME/{upper,work} */
        const char *name;
        int userns, netns;              /* made before, as ours are */
        int program;                    /* to execute */
        int input, output;              /* become 0 and 1; without input: -EBADF */
        const struct cgroup_tree *tree; /* with the group that it joins; NULL: none */
        const struct cgroup *group;
};

/* The process id, or -1. */
pid_t instance_floor_start(const struct instance_floor *f);

#endif
