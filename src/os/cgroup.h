/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_H
#define HUTCH_OS_CGROUP_H

/*
 * Cgroups that we create, below a parent cgroup of ours. A sandbox NAME has:
 *
 *         cgroup v2                hybrid
 *         /sys/fs/cgroup/PARENT/   /sys/fs/cgroup/unified/PARENT/   …/memory/PARENT/, …/cpu/…, …/pids/…
 *           NAME                     NAME                             NAME      its commands, with limits
 *             agent                    agent                          agents    the agents of all sandboxes
 *             commands                 commands
 *               N                        N
 *
 * The agent is not in the cgroup whose limits it watches over: it must run, and be able to kill, when the
 * commands have used up their memory, their processes or their CPU time. NAME/commands has the limits of v2, and a
 * cgroup for each command, which the agent makes: it owns the directory.
 *
 * On hybrid hosts v1 has the controllers, and the v2 hierarchy, which has none, still freezes, kills
 * and takes newborn processes (os/clone.h). On a host with v1 only, the freezer hierarchy does what it
 * can, and commands have no cgroups of their own. Agents share a cgroup of v1, because one with memory
 * takes a millisecond to make.
 *
 * Disk I/O is limited by v2 only: v1 does not attribute bytes that the kernel writes back later.
 *
 * A tree is open for the life of the program; a cgroup is the descriptors of its directories, one for
 * each hierarchy. Names come from us and have no slash. os/cgroup_self.h is about the cgroup that the
 * calling process runs in.
 */

#include <sys/types.h>

#include "base/compiler.h"

#define CGROUP_NAME_MAX 100
#define CGROUP_KEEP     0 /* as it is; a new cgroup has no limits */
#define CGROUP_NO_LIMIT UINT64_MAX

/* Hierarchies that may be mounted separately, and one directory within the first. */
enum cgroup_part {
        CGROUP_UNIFIED,  /* the sandbox as a whole */
        CGROUP_COMMANDS, /* v2: its commands */
        CGROUP_MEMORY,   /* v1: its commands, here and below */
        CGROUP_CPU,
        CGROUP_PIDS,
        CGROUP_FREEZER,
        CGROUP_PART_MAX_,
};

struct cgroup_tree {
        int dirs[CGROUP_PART_MAX_]; /* of our parent cgroup; -EBADF: missing, or not needed */
        bool unified_controls;      /* v2 has the controllers */
        bool io;                    /* and the one for disk I/O among them */
        const char *v1_names[CGROUP_PART_MAX_]; /* of the mount points of v1, NULL of others */
        char name[CGROUP_NAME_MAX + 1];         /* of our parent cgroup in each */
};

struct cgroup {
        int parts[CGROUP_PART_MAX_]; /* directories, as above */
};

/* The part of `memory` that buffers of TCP and UDP sockets may take besides, on v1. */
#define CGROUP_V1_SOCKETS 4U

/* CGROUP_KEEP or CGROUP_NO_LIMIT for each number. */
struct cgroup_limits {
        uint64_t memory;     /* bytes, without any swap besides */
        uint64_t cpu_millis; /* thousandths of a CPU */
        uint64_t pids;
        uint64_t io_bytes;      /* per second, for reads and for writes; of one disk: */
        uint64_t io_operations; /* the same */
        dev_t disk;             /* os/disk.h */
};

#define CGROUP_TREE_NULL \
        ((struct cgroup_tree){ .dirs = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })
#define CGROUP_NULL ((struct cgroup){ { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

/* --- the tree --- */

/* Creates our parent cgroup if it is missing and delegates the controllers to it. `root` is "" except
 * in tests. `pids` limits all sandboxes together: the host has only so many process ids. -ENODATA
 * if a hierarchy for memory, CPU or pids is missing. */
int cgroup_tree_open(struct cgroup_tree *t, const char *root, const char *parent, uint64_t pids)
        must_check;

/* Limits the memory of all sandboxes together. At the limit the OOM killer takes a process of a sandbox, never one that is
 * not below our parent cgroup. If they use more already and nothing can be reclaimed, v1 refuses (-EBUSY), and v2 kills
 * until they use less. */
int cgroup_tree_limit_memory(const struct cgroup_tree *t, uint64_t bytes) must_check;
void cgroup_tree_close(struct cgroup_tree *t);

/* Removes our parent cgroup, which must be empty. */
int cgroup_tree_remove(struct cgroup_tree *t, const char *root, const char *parent) must_check;

/* --- a cgroup --- */

/* -EEXIST. What was created before a failure is removed. */
int cgroup_make(const struct cgroup_tree *t, const char *name, struct cgroup *ret) must_check;

/* Enables the controllers, and lets `owner` make cgroups for commands and start processes in them. Before
 * that there are no limits; afterwards no process can be in the sandbox's own directory of v2. */
int cgroup_delegate(const struct cgroup_tree *t, const struct cgroup *g, uid_t owner) must_check;

int cgroup_open(const struct cgroup_tree *t, const char *name, struct cgroup *ret) must_check;

/* The cgroup of its agent. Only for processes: the limits are those of the other. */
int cgroup_open_agent(const struct cgroup_tree *t, const char *name, struct cgroup *ret) must_check;
void cgroup_close(struct cgroup *g);

/* An O_PATH descriptor of a cgroup's directory in a v1 hierarchy, found by its path in the mount
 * namespace that the caller is in now; -ENOENT if the hierarchy is missing or not v1. */
int cgroup_open_v1(const struct cgroup_tree *t, enum cgroup_part part, const char *name) must_check;

/* What an agent, which can't reach the file systems of cgroups, needs to put commands into theirs. What the
 * host does not have is -EBADF.
 *
 * In v1 the OOM killer is turned off for the commands: it would kill one process after another, write a
 * record of each to the host's log, and not say which command it belonged to. Processes that need memory
 * wait instead, the last descriptor becomes readable, and the agent kills a command. */
enum cgroup_agent_fd {
        CGROUP_AGENT_DIR,   /* the directory of v2 */
        CGROUP_AGENT_TASKS, /* of memory, CPU and pids in v1: who writes "0" has joined */
        CGROUP_AGENT_OOM = CGROUP_AGENT_TASKS + 3, /* v1: an eventfd */
        CGROUP_AGENT_FDS,
};

int cgroup_agent_fds(const struct cgroup_tree *t, const struct cgroup *g,
                     int ret[static CGROUP_AGENT_FDS]) must_check;

/* -ENOTSUP for an I/O limit without t->io, -ENODEV without a disk. */
int cgroup_set_limits(const struct cgroup_tree *t, const struct cgroup *g,
                      const struct cgroup_limits *limits) must_check;

/* Moves the caller, which has one thread, into all parts in which a process can't be born: those of v1. */
int cgroup_join(const struct cgroup *g) must_check;

/* Frozen processes do not run, whatever signal they get, except for SIGKILL in v2. Returns before the
 * last one has stopped. */
int cgroup_freeze(const struct cgroup *g, bool frozen) must_check;

/* 1 if all processes have stopped, 0 if not yet. */
int cgroup_is_frozen(const struct cgroup *g) must_check;

/* Sends SIGKILL to every process, those being forked included, and thaws: frozen processes of v1 do not
 * die. */
int cgroup_kill(const struct cgroup *g) must_check;

/* 1 if it has any process, in v2 zombies not counted; else 0. */
int cgroup_is_populated(const struct cgroup *g) must_check;

/* A pidfd of its agent; -ESRCH if there is none. */
int cgroup_pidfd(const struct cgroup *g) must_check;

/* Blocks until it has no process. */
int cgroup_wait_empty(const struct cgroup *g) must_check;

/* Before the removal of one without processes: frees the page cache that is charged to it, unless that is more than
 * is worth it, so that nothing of the cgroup stays in the kernel. May take milliseconds. -EAGAIN: some is left. */
int cgroup_reclaim(const struct cgroup_tree *t, const struct cgroup *g) must_check;

/* -EBUSY while it has processes; 0 if there is no such cgroup. */
int cgroup_remove(const struct cgroup_tree *t, const char *name) must_check;

/* --- usage, seen from outside --- */

struct cgroup_stats {
        uint64_t cpu_usec; /* since it was created, with that of the agent */
        uint64_t
                memory; /* of its commands, in bytes, without page cache that can be dropped at once */
        uint64_t processes; /* and threads, of its commands */
        uint64_t oom_kills; /* processes killed by the OOM killer so far */
};

/* What this host does not count is 0. */
int cgroup_stats(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_stats *ret)
        must_check;

/* A descriptor for epoll(7) or poll(2) that becomes ready when processes of a cgroup are killed for
 * lack of memory. In v2 it is the memory.events file, which also reports other events; so the reader
 * checks what has changed. In v1 it is an eventfd that the kernel writes to before it kills. */
struct cgroup_oom {
        int fd;
        short events; /* to wait for: POLLIN or POLLPRI, which epoll calls by the same numbers */
        uint64_t kills;
};

#define CGROUP_OOM_NULL ((struct cgroup_oom){ -EBADF, 0, 0 })

int cgroup_oom_open(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_oom *ret)
        must_check;
void cgroup_oom_close(struct cgroup_oom *o);

/* v1 notifies all cgroups below one without memory. True unless this one never reached its own limit. */
bool cgroup_was_full(const struct cgroup_tree *t, const struct cgroup *g);

/* When it is ready: true if the OOM killer was at work since the last call. */
bool cgroup_oom_happened(struct cgroup_oom *o);

#endif
