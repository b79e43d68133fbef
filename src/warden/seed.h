/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_SEED_H
#define HUTCH_WARDEN_SEED_H

/*
 * A process that waits to become a sandbox.
 *
 * What is dear and does not depend on what is asked for is done ahead: its namespaces, its range of
 * uids, its control group and, on machines with groups of version 1, the joining of it, which can
 * take longer than all the rest; its folder; and most of a root of the host's image. Then it waits for
 * one message, the spec with the descriptors of the agent and of its network namespace (which is a
 * pool's, warden/netpool.h), and carries the plan out (warden/build.h). Its spec must name its uids.
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
        dev_t disk;               /* that the folder is on (os/disk.h), or 0: nobody knows */
        int agent;                /* sealed (os/memfd.h) */
        bool host;                /* the host's image is there (warden/host_image.h) */
        const char *resolv; /* /etc/resolv.conf of sandboxes with a network; NULL: an empty one */
        bool nursery;       /* who makes seeds does it for its parent (warden/nursery.h) */
};

struct seed {
        uint32_t uid_first;
        pid_t pid;
        int pidfd;
        int socket;
        struct cgroup group;
};

#define SEED_NULL ((struct seed){ 0, 0, -EBADF, -EBADF, CGROUP_NULL })

/* As build_name. */
#define SEED_GROUP_MAX 16
void seed_group_name(uint32_t uid_first, char ret[static SEED_GROUP_MAX]);

/* It may not be ready when this returns; seed_wait waits for that, whoever wants to know. -EEXIST if
 * there is a group of these uids. */
int seed_make(const struct seed_ground *g, uint32_t uid_first, struct seed *ret) must_check;
int seed_wait(const struct seed *s) must_check;

/* Sends what it is to become. `fds` are the agent's, then the writing end of a pipe for
 * build_wait, and the network namespace. -EPIPE if the seed has died. */
#define SEED_FD_REPORT  PLAN_FDS
#define SEED_FD_NETWORK (PLAN_FDS + 1)
#define SEED_FDS        (PLAN_FDS + 2)
int seed_send(const struct seed *s, struct str spec, const int fds[static SEED_FDS]) must_check;

/* Its folder becomes that of a sandbox. -EEXIST if there is one of that name. */
int seed_take_folder(const struct seed_ground *g, const struct seed *s, int boxes, const char *id)
        must_check;

/* When it has ended, without its folder having been taken: 0 also if there is none. */
int seed_drop_folder(const struct seed_ground *g, uint32_t uid_first) must_check;

/* Ends it, whatever it has become, waits for it, and removes its group, and its folder unless that
 * was taken. */
int seed_remove(const struct seed_ground *g, struct seed *s) must_check;

/* Lets go of the descriptors. */
void seed_close(struct seed *s);

#endif
