/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_SEED_H
#define HUTCH_WARDEN_SEED_H

/*
 * A process that waits to become a sandbox.
 *
 * What is dear and does not depend on what is asked for is done ahead: its namespaces, its range of
 * uids, its control group and, on machines with groups of version 1, the joining of it, which can
 * take longer than all the rest. Then it waits for one message, the spec with the descriptors of the
 * agent, and carries the plan out (warden/build.h). Its spec must name its uids.
 *
 * A seed is part of the warden: when the warden ends, or closes its end, it ends. From the message
 * on it is on its own.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "os/cgroup_make.h"
#include "plan/plan.h"

/* What all sandboxes have in common. */
struct seed_ground {
        const char *data_path;
        int data;                 /* the folder (warden/data.h) */
        struct cgroup_tree *tree; /* NULL: without groups, and without their limits */
        int agent;                /* sealed (os/sealed.h) */
};

struct seed {
        uint32_t uid_first;
        pid_t pid;
        int pidfd;
        int socket;
        struct cgroup group;
};

#define SEED_NULL ((struct seed){ 0, 0, -EBADF, -EBADF, CGROUP_NULL })

/* The control group of a sandbox is named after its uids: they are its alone while it lives, and are
 * known before its id. */
#define SEED_GROUP_MAX 16
void seed_group_name(uint32_t uid_first, char ret[static SEED_GROUP_MAX]);

/* It may not be ready when this returns; seed_wait waits for that, whoever wants to know. -EEXIST if
 * there is a group of these uids. */
int seed_make(const struct seed_ground *g, uint32_t uid_first, struct seed *ret) must_check;
int seed_wait(const struct seed *s) must_check;

/* Sends what it is to become. `fds` are the agent's, then the writing end of a pipe for
 * build_wait. -EPIPE if the seed has died. */
#define SEED_FDS (PLAN_FDS + 1)
int seed_send(const struct seed *s, struct str spec, const int fds[static SEED_FDS]) must_check;

/* Ends it, whatever it has become, waits for it, and removes its group. */
int seed_remove(const struct seed_ground *g, struct seed *s) must_check;

/* Lets go of the descriptors. */
void seed_close(struct seed *s);

#endif
