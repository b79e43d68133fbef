/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ZYGOTE_H
#define HUTCH_WARDEN_ZYGOTE_H

/*
 * A process that waits to become a sandbox.
 *
 * What is dear and does not depend on what is asked for is done ahead: its namespaces, its range of
 * uids, its cgroup and, on hosts with cgroups of v1, the joining of it, which can
 * take longer than all the rest; its directory; and most of a root of the host's image. Then it waits for
 * one message, the spec with the descriptors of the agent and of its network namespace (which is a
 * pool's, warden/netns_pool.h), and carries the plan out (warden/build.h). Its spec must name its uids.
 *
 * A zygote is part of the warden: when the warden ends, or closes its end, it ends. From the message
 * on it is on its own.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "os/cgroup.h"
#include "plan/plan.h"

/* What all sandboxes have in common. */
struct host_context {
        const char *data_path;
        int data;                 /* the directory (warden/data.h) */
        struct cgroup_tree *tree; /* NULL: without groups, and without their limits */
        dev_t disk;               /* that the directory is on (os/disk.h), or 0: nobody knows */
        int agent;                /* sealed (os/memfd.h) */
        bool host;                /* the host's image is there (warden/host_image.h) */
        const char *resolv; /* /etc/resolv.conf of sandboxes with a network; NULL: an empty one */
        bool nursery;       /* who makes seeds does it for its parent (warden/zygote_server.h) */
};

struct zygote {
        uint32_t uid_first;
        pid_t pid;
        int pidfd;
        int socket;
        struct cgroup group;
};

#define ZYGOTE_NULL ((struct zygote){ 0, 0, -EBADF, -EBADF, CGROUP_NULL })

/* As build_name. */
#define ZYGOTE_CGROUP_MAX 16
void zygote_cgroup_name(uint32_t uid_first, char ret[static ZYGOTE_CGROUP_MAX]);

/* It may not be ready when this returns; zygote_wait waits for that, whoever wants to know. -EEXIST if
 * there is a group of these uids. */
int zygote_make(const struct host_context *g, uint32_t uid_first, struct zygote *ret) must_check;
int zygote_wait(const struct zygote *s) must_check;

/* Sends what it is to become. `fds` are the agent's, then the writing end of a pipe for
 * build_wait, and the network namespace. -EPIPE if the zygote has died. */
#define ZYGOTE_FD_REPORT PLAN_FDS
#define ZYGOTE_FD_NETNS  (PLAN_FDS + 1)
#define ZYGOTE_FDS       (PLAN_FDS + 2)
int zygote_send(const struct zygote *s, struct str spec, const int fds[static ZYGOTE_FDS])
        must_check;

/* Its directory becomes that of a sandbox. -EEXIST if there is one of that name. */
int zygote_take_dir(const struct host_context *g, const struct zygote *s, int sandboxes,
                    const char *id) must_check;

/* When it has ended, without its directory having been taken: 0 also if there is none. */
int zygote_drop_dir(const struct host_context *g, uint32_t uid_first) must_check;

/* Ends it, whatever it has become, waits for it, and removes its group, and its directory unless that
 * was taken. */
int zygote_remove(const struct host_context *g, struct zygote *s) must_check;

/* Lets go of the descriptors. */
void zygote_close(struct zygote *s);

#endif
