/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_INSTANCE_FLOOR_H
#define HUTCH_BENCH_INSTANCE_FLOOR_H

/*
 * The floor of a native sandbox: what the kernel alone takes. It has the same namespaces, layers, mounts, masks,
 * capabilities and seccomp filter as a sandbox of Hutch, made in the shortest way: constant paths, no plan, no
 * spec, no zygote, no socket, no error messages. The directories of the sandbox must exist.
 */

#include <sys/types.h>

struct cgroup;
struct cgroup_tree;

struct instance_floor {
        const char *
                data; /* laid out as in warden/data.h, with the upper and work directories of NAME */
        const char *name;
        int userns, netns;              /* pre-created, as those of Hutch are */
        int program;                    /* to execute */
        int input, output;              /* become 0 and 1; no input: -EBADF */
        const struct cgroup_tree *tree; /* of the cgroup to join; NULL: none */
        const struct cgroup *group;
};

/* The process id, or -1. */
pid_t instance_floor_start(const struct instance_floor *f);

#endif
