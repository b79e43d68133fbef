/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_GROUND_H
#define HUTCH_BENCH_GROUND_H

/* What programs that make native sandboxes themselves need: a data folder with the host's image, in a
 * mount namespace of the caller's own, and a control group. Whatever goes wrong ends the program. */

#include "base/base.h"
#include "warden/seed.h"

struct ground {
        char path[64];
        const char *group;
        struct cgroup_tree tree;
        struct seed_ground seed; /* without an agent */
};

void ground_open(struct ground *g, const char *group);
void ground_close(struct ground *g);

void ground_remove_tree(int at, const char *name);

/* A program, as a sealed copy. */
int ground_seal(const char *path);

/* Ends the program if `r` is negative. */
void must(int r, const char *what);

/* For calls that set errno. */
static inline int sys(int r)
{
        return r < 0 ? -errno : r;
}

#endif
