/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_BUILD_H
#define HUTCH_WARDEN_BUILD_H

/*
 * The child that becomes a sandbox: it carries out a plan, step by step, and ends as the agent.
 *
 * It starts as a copy of the warden, born in its own namespaces (but for those of users, control
 * groups and networks), as root. Everything that an image can have a say in is found through
 * descriptors in the image's own root (os/in_root.h): a link where a directory should be ends the build.
 *
 * Before anybody asks for a sandbox (warden/zygote.h), build_prepare leaves the host's mounts for a
 * tree with the data directory, /usr and nothing else, so that it neither keeps a disk of the host
 * busy nor finds anything there; makes the sandbox's directory; and takes the first steps as if the
 * host's image were wanted, which is what most want. build_execute is the rest, and builds the root
 * anew for who wants another one.
 *
 * If a step fails, the child writes which one and why to `report` and ends. If none does, it writes
 * that it is complete, and the report's end is closed by execve. So an end of file alone means that
 * the child has died on the way, and one behind that word that the agent runs.
 */

#include "base/compiler.h"
#include "os/cgroup.h"
#include "plan/plan.h"

/* What is known before the plan. */
struct build_context {
        const char *data;               /* path of the data directory */
        const struct cgroup_tree *tree; /* may be NULL: no group */
        const struct cgroup *group;
        uint32_t uid_first;
        bool host;          /* the host's image is there, and is built ahead */
        int userns;         /* of the sandbox */
        int agent;          /* the program, open */
        const char *resolv; /* /etc/resolv.conf of sandboxes with a network */
};

struct build_order {
        const struct plan *plan;
        int fds[PLAN_FDS]; /* of the agent */
        int netns;
        int report; /* writing end of a pipe */
};

struct builder {
        const struct build_context *ctx;
        const struct build_order *order;
        int ns_root;     /* of our mount namespace */
        int stage;       /* our root, until the sandbox has its own */
        int data;        /* the data directory, as our mount namespace has it */
        int lowers;      /* where views of layers are attached */
        int upper, work; /* of the sandbox's own directory, whatever that is called by now */
        int root;        /* of the sandbox, when it is mounted */
        size_t done;     /* steps of the host's plan */
        bool groups;     /* a view of its cgroups stands in DATA_STAGE_GROUPS */
};

#define BUILDER_NULL                                                                              \
        ((struct builder){ NULL, NULL, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, 0, \
                           false })

/* The name of its directory in DATA_ZYGOTES, and of its cgroup: its uids are its alone while it
 * lives, and are known before its id. */
#define BUILD_NAME_MAX 16
void build_name(uint32_t uid_first, char ret[static BUILD_NAME_MAX]);

/* The namespaces that the child is to be born in. */
#define BUILD_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* In the child; `g` must outlive the builder. */
int build_prepare(struct builder *x, const struct build_context *g) must_check;
never_returns void build_execute(struct builder *x, const struct build_order *o);

/* In the child, for one that can't even begin: ends it. */
never_returns void build_give_up(int report, int error);

/* In the parent, with the reading end, when its own writing end is closed: waits for the end of file,
 * and returns the error, with *ret_step telling where (BUILD_NOWHERE: at no step), or 0 when the agent
 * runs. -ECHILD if the child was killed on the way. */
#define BUILD_NOWHERE (-1)
int build_wait(int report, int *ret_step) must_check;

#endif
