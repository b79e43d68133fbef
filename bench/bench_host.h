/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_HOST_H
#define HUTCH_BENCH_HOST_H

/* What programs that make native sandboxes themselves need: a data dir with the host's image, in a
 * mount namespace of the caller's own, and a control group. Whatever goes wrong ends the program. */

#include "base/base.h"
#include "warden/zygote.h"

struct bench_host {
        char path[64];
        const char *group;
        struct cgroup_tree tree;
        struct host_context zygote; /* without an agent */
};

void bench_host_open(struct bench_host *g, const char *group);
void bench_host_close(struct bench_host *g);

void bench_host_remove_tree(int at, const char *name);

/* A program, as a sealed copy. */
int bench_host_seal(const char *path);

/* Ends the program if `r` is negative. */
void must(int r, const char *what);

/* For calls that set errno. */
static inline int sys(int r)
{
        return r < 0 ? -errno : r;
}

#endif
