/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_MAKE_H
#define HUTCH_OS_CGROUP_MAKE_H

/*
 * Control groups that we make: one for each sandbox, with its limits, below one of our own.
 *
 *         /sys/fs/cgroup/OURS/NAME                            unified (version 2)
 *         /sys/fs/cgroup/memory/OURS/NAME, …/cpu/…, …/pids/…  version 1
 *         /sys/fs/cgroup/unified/OURS/NAME                    hybrid: beside those of version 1
 *
 * On hybrid machines the controllers are those of version 1, and the unified tree, which has none,
 * still freezes, kills and takes newborn processes (os/clone.h). On a machine with version 1 only,
 * the freezer's tree does what it can. The rest of the program does not see the difference.
 *
 * What is read from and written to a disk is limited in the unified hierarchy only: version 1 does
 * not know whose the bytes are that the kernel writes later.
 *
 * A tree is open for the life of the program; a group is its folders' descriptors. All is done by
 * these: names come from us and have no slash.
 */

#include <sys/types.h>

#include "base/compiler.h"

#define CGROUP_NAME_MAX 100
#define CGROUP_KEEP     0 /* as it is; a new group has no limits */
#define CGROUP_NO_LIMIT UINT64_MAX

/* Hierarchies that may be mounted apart. */
enum cgroup_part {
        CGROUP_UNIFIED,
        CGROUP_MEMORY,
        CGROUP_CPU,
        CGROUP_PIDS,
        CGROUP_FREEZER,
        CGROUP_PART_MAX_,
};

struct cgroup_tree {
        int ours[CGROUP_PART_MAX_]; /* folders, -EBADF where a hierarchy is missing or not needed */
        bool unified_controls;      /* the unified hierarchy has the controllers */
        bool io;                    /* and among them that of disks */
        const char *folders[CGROUP_PART_MAX_]; /* names of those of version 1, NULL of others */
        char name[CGROUP_NAME_MAX + 1];        /* of our group in each */
};

struct cgroup {
        int parts[CGROUP_PART_MAX_]; /* the same for one group */
};

struct cgroup_limits {
        uint64_t memory;     /* bytes, without any swap besides */
        uint64_t cpu_millis; /* thousandths of a processor */
        uint64_t pids;
        uint64_t io_bytes;      /* in a second, read and written each; of one disk: */
        uint64_t io_operations; /* the same */
        dev_t disk;             /* os/disk.h */
        /* CGROUP_KEEP or CGROUP_NO_LIMIT for each but the disk */
};

#define CGROUP_TREE_NULL \
        ((struct cgroup_tree){ .ours = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })
#define CGROUP_NULL ((struct cgroup){ { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

/* --- the tree --- */

/* Makes our own group `ours` if it is missing and hands the controllers on to it. `root` is "" but in
 * tests. `pids` limits all sandboxes together: the machine has only so many process numbers. -ENODATA
 * if a hierarchy for memory, processors or processes is missing. */
int cgroup_tree_open(struct cgroup_tree *t, const char *root, const char *ours, uint64_t pids)
        must_check;
void cgroup_tree_close(struct cgroup_tree *t);

/* Removes our own group, which must be empty. */
int cgroup_tree_remove(struct cgroup_tree *t, const char *root, const char *ours) must_check;

/* --- a group --- */

/* -EEXIST. What was made before a failure is removed. */
int cgroup_make(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *limits,
                struct cgroup *ret) must_check;
int cgroup_open(const struct cgroup_tree *t, const char *name, struct cgroup *ret) must_check;
void cgroup_close(struct cgroup *g);

/* The folder of a group in a hierarchy of version 1, found by its path in the mount namespace that the
 * caller is in now, as an O_PATH descriptor; -ENOENT if the hierarchy is not there or not of version
 * 1. */
int cgroup_open_v1(const struct cgroup_tree *t, enum cgroup_part part, const char *name) must_check;

/* -ENOTSUP for a limit of io without t->io, -ENODEV without a disk. */
int cgroup_set_limits(const struct cgroup_tree *t, const struct cgroup *g,
                      const struct cgroup_limits *limits) must_check;

/* The caller moves into all parts where a process can't be born: none if the unified hierarchy has
 * the controllers. Waits for a lock of the whole machine, for milliseconds at times: not while
 * somebody waits for us. */
int cgroup_join(const struct cgroup_tree *t, const struct cgroup *g) must_check;

/* Frozen processes do not run, whatever they are sent, but for SIGKILL in the unified hierarchy. The
 * call returns before the last one stands still. */
int cgroup_freeze(const struct cgroup *g, bool frozen) must_check;

/* 1 if all that is in there stands still, 0 if not yet. */
int cgroup_is_frozen(const struct cgroup *g) must_check;

/* SIGKILL to every process of the group, those being born included; then it is thawed, because the
 * frozen of version 1 do not die. */
int cgroup_kill(const struct cgroup *g) must_check;

/* 1 if there is any process in it, zombies not counted in the unified hierarchy; else 0. */
int cgroup_is_populated(const struct cgroup *g) must_check;

/* A pidfd of one of its processes, -ESRCH if there is none. */
int cgroup_pidfd(const struct cgroup *g) must_check;

/* -EBUSY while processes are in it; 0 if there is no such group. */
int cgroup_remove(const struct cgroup_tree *t, const char *name) must_check;

#endif
