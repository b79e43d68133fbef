/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_BUILD_H
#define HUTCH_WARDEN_BUILD_H

/*
 * The child that becomes a sandbox: it carries out a plan, step by step, and ends as the agent.
 *
 * It starts as a copy of the warden, born in its own namespaces (but for those of users and of
 * control groups), as root. Everything that an image can have a say in is found through
 * descriptors in the image's own root (os/inside.h): a link where a folder should be ends the build.
 *
 * The first steps of every plan are the same, and some take long. They are build_prepare, which can be
 * done before anybody asks for a sandbox (warden/seed.h); build_execute is the rest.
 *
 * If a step fails, the child writes which one and why to `report` and ends. If none does, the
 * report's end is closed by execve: an end of file means that the agent runs.
 */

#include "base/compiler.h"
#include "os/cgroup_make.h"
#include "plan/plan.h"

/* What is known before the plan. */
struct build_ground {
        const char *data;               /* path of the data folder */
        const struct cgroup_tree *tree; /* may be NULL: no group */
        const struct cgroup *group;
        int userns, netns; /* of the sandbox */
        int agent;         /* the program, open */
};

struct build_order {
        const struct plan *plan;
        int fds[PLAN_FDS]; /* of the agent */
        int report;        /* writing end of a pipe */
};

struct builder {
        const struct build_ground *ground;
        const struct build_order *order;
        int data;   /* the data folder, as our mount namespace has it */
        int lowers; /* in there: where views of layers are attached */
        int root;   /* of the sandbox, when it is mounted */
};

/* The namespaces that the child is to be born in. */
#define BUILD_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* In the child; `g` must outlive the builder. */
int build_prepare(struct builder *x, const struct build_ground *g) must_check;
never_returns void build_execute(struct builder *x, const struct build_order *o);

/* In the parent, with the reading end, when its own writing end is closed: waits, and returns the
 * error, with *ret_step telling where, or 0 when the agent runs. A child that was killed on the way
 * is 0, too: its pidfd tells. */
int build_wait(int report, int *ret_step) must_check;

#endif
