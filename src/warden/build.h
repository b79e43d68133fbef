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
 * The child has the write end of a pipe. If a step fails, it writes the step's number and the error and exits. If none
 * does, it writes that it is complete and executes the agent, which writes one byte when it serves and has started the
 * entrypoint, and closes the pipe. So the last thing before the end of file tells how far it came.
 */

#include "base/compiler.h"
#include "os/cgroup.h"
#include "plan/plan.h"

/* What does not depend on the plan. */
struct build_context {
        const char *data;               /* path of the data directory */
        const struct cgroup_tree *tree; /* NULL: no cgroups */
        const struct cgroup *group, *agent_group;
        uint32_t uid_first;
        bool host;          /* the image "host" exists, and is pre-built */
        int userns;         /* of the sandbox */
        int cgroupns;       /* of the sandbox */
        int agent;          /* the program, a descriptor */
        const char *resolv; /* /etc/resolv.conf of sandboxes with a network */
};

struct build_order {
        const struct plan *plan;
        int fds[PLAN_FDS]; /* of the agent; PLAN_FD_READY also takes the reports of the builder */
        int netns;
};

struct builder {
        const struct build_context *ctx;
        const struct build_order *order;
        int ns_root;                  /* of the mount namespace */
        int stage;                    /* the root, until the sandbox has its own */
        int data;                     /* the data directory in this mount namespace */
        int lowers;                   /* where clones of layers are attached */
        int upper, work;              /* of the sandbox's directory */
        int root;                     /* of the sandbox, once it is mounted */
        size_t done;                  /* steps of the plan for the image "host" */
        bool groups;                  /* its cgroups are mounted at DATA_STAGE_GROUPS */
        int cgroup[CGROUP_AGENT_FDS]; /* for the agent; what the host does not have is null */
};

#define BUILDER_NULL               \
        ((struct builder){ NULL,   \
                           NULL,   \
                           -EBADF, \
                           -EBADF, \
                           -EBADF, \
                           -EBADF, \
                           -EBADF, \
                           -EBADF, \
                           -EBADF, \
                           0,      \
                           false,  \
                           { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

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

/* In the parent, with the read end: waits for the end of file. BUILD_READY: the agent serves. BUILD_EXECUTED: it was
 * executed, and ended before that. Else the error, with *ret_step telling where (BUILD_NOWHERE: at no step); -ECHILD:
 * the child was killed on the way. */
#define BUILD_NOWHERE (-1)
enum { BUILD_READY, BUILD_EXECUTED };
int build_wait(int report, int *ret_step) must_check;

#endif
