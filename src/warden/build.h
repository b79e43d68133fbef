/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_BUILD_H
#define HUTCH_WARDEN_BUILD_H

/*
 * The builder: the child process that carries out a plan, step by step, and becomes the agent.
 *
 * It starts as a copy of the warden, as root, in new namespaces (except user, cgroup and network). Every
 * path that an image can influence is opened inside of the image's own root (os/in_root.h): a link where a
 * directory should be ends the build.
 *
 * build_prepare runs before there is a request (warden/zygote.h). It replaces the host's mounts by a tree with
 * the data directory, /usr and nothing else, so that it neither keeps a disk of the host busy nor finds anything
 * there; makes the directory of the sandbox; and takes the first steps for the image "host", which is what most
 * sandboxes use. build_execute does the rest, and builds the rootfs anew for another image.
 *
 * If a step fails, the child writes its number and the error to `report` and exits. If none does, it writes
 * that it is complete, and execve closes the pipe. So an end of file alone means that the child died on
 * the way, and an end of file behind that message that the agent runs.
 */

#include "base/compiler.h"
#include "os/cgroup.h"
#include "plan/plan.h"

/* What does not depend on the plan. */
struct build_context {
        const char *data;               /* path of the data directory */
        const struct cgroup_tree *tree; /* NULL: no cgroups */
        const struct cgroup *group;
        uint32_t uid_first;
        bool host;          /* the image "host" exists, and is pre-built */
        int userns;         /* of the sandbox */
        int agent;          /* the program, a descriptor */
        const char *resolv; /* /etc/resolv.conf of sandboxes with a network */
};

struct build_order {
        const struct plan *plan;
        int fds[PLAN_FDS]; /* of the agent */
        int netns;
        int report; /* write end of a pipe */
};

struct builder {
        const struct build_context *ctx;
        const struct build_order *order;
        int ns_root;     /* of the mount namespace */
        int stage;       /* the root, until the sandbox has its own */
        int data;        /* the data directory in this mount namespace */
        int lowers;      /* where clones of layers are attached */
        int upper, work; /* of the sandbox's directory */
        int root;        /* of the sandbox, once it is mounted */
        size_t done;     /* steps of the plan for the image "host" */
        bool groups;     /* its cgroups are mounted at DATA_STAGE_GROUPS */
};

#define BUILDER_NULL                                                                              \
        ((struct builder){ NULL, NULL, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, 0, \
                           false })

/* The name of its directory in DATA_ZYGOTES and of its cgroup, derived from the uid range, which is known before
 * the id of the sandbox and belongs to one sandbox at a time. */
#define BUILD_NAME_MAX 16
void build_name(uint32_t uid_first, char ret[static BUILD_NAME_MAX]);

/* The new namespaces of the child. */
#define BUILD_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* In the child; `g` must outlive the builder. */
int build_prepare(struct builder *x, const struct build_context *g) must_check;
never_returns void build_execute(struct builder *x, const struct build_order *o);

/* In the child, if there is no plan to carry out: reports the error and exits. */
never_returns void build_give_up(int report, int error);

/* In the parent, with the read end: waits for the end of file. 0: the agent runs. Else the error, with *ret_step
 * telling where (BUILD_NOWHERE: at no step); -ECHILD: the child was killed on the way. */
#define BUILD_NOWHERE (-1)
int build_wait(int report, int *ret_step) must_check;

#endif
