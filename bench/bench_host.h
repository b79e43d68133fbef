/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_HOST_H
#define HUTCH_BENCH_HOST_H

/* The environment of programs that create native sandboxes themselves: a data directory with the host's image, a
 * mount namespace of their own, and a cgroup. Any failure ends the program. */

#include "base/base.h"
#include "warden/zygote.h"

struct bench_host {
        char path[64];
        const char *group;
        struct cgroup_tree tree;
        struct host_context context; /* without an agent */
};

void bench_host_open(struct bench_host *g, const char *group);
void bench_host_close(struct bench_host *g);

void bench_host_remove_tree(int at, const char *name);

/* A sealed copy of a program. */
int bench_host_seal(const char *path);

/* Ends the program if `r` is negative. */
void must(int r, const char *what);

/* For calls that set errno. */
static inline int sys(int r)
{
        return r < 0 ? -errno : r;
}

#endif
