/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ZYGOTE_H
#define HUTCH_WARDEN_ZYGOTE_H

/*
 * A pre-built process that becomes a sandbox.
 *
 * What is expensive and does not depend on the request is done beforehand: its namespaces, its uid
 * range, its cgroup and joining it (with cgroup v1 that can take longer than everything else), its
 * directory, and most of the rootfs of the image "host". Then the zygote waits for one message, the spec
 * with the descriptors of the agent and of a network namespace (warden/netns_pool.h), and carries out
 * the plan (warden/build.h).
 *
 * Until that message a zygote belongs to the warden: it exits when the warden exits or closes its socket.
 * From then on it is on its own.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "os/cgroup.h"
#include "plan/plan.h"

/* What all sandboxes of this host share. */
struct host_context {
        const char *data_path;
        int data;                 /* the data directory (warden/data.h) */
        struct cgroup_tree *tree; /* NULL: no cgroups, and so no limits */
        dev_t disk;               /* of the data directory (os/disk.h); 0: unknown */
        int agent;                /* a sealed memfd */
        bool host;                /* the image "host" exists (warden/host_image.h) */
        const char *resolv;       /* /etc/resolv.conf of sandboxes with a network; NULL: empty */
        bool for_parent; /* zygotes become children of our parent (warden/zygote_server.h) */
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

/* Returns before the zygote is ready, which zygote_wait waits for. -EEXIST: the cgroup of this uid range
 * exists. */
int zygote_make(const struct host_context *ctx, uint32_t uid_first, struct zygote *ret) must_check;
int zygote_wait(const struct zygote *s) must_check;

/* The message that it waits for is a spec with these descriptors: those of the agent, of which PLAN_FD_READY is the
 * write end of a pipe for build_wait, and the network namespace (warden/spawn.c sends it). */
#define ZYGOTE_FD_NETNS PLAN_FD_CGROUP
#define ZYGOTE_FDS      (ZYGOTE_FD_NETNS + 1)

/* Removes the directory if no sandbox took it; the zygote has exited. 0 if there is none. */
int zygote_drop_dir(const struct host_context *ctx, uint32_t uid_first) must_check;

/* Kills it, whatever it has become, waits for it, and removes its cgroup and, if it was not taken, its
 * directory. */
int zygote_remove(const struct host_context *ctx, struct zygote *s) must_check;

/* Closes the descriptors. */
void zygote_close(struct zygote *s);

#endif
