/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_COMMAND_GROUP_H
#define HUTCH_EXECD_COMMAND_GROUP_H

/*
 * A cgroup for each command, so that a command can be killed as a whole, whatever it has started and however
 * fast it forks, and so that running out of memory ends one command and not some process.
 *
 *         commands  the limits of the sandbox        v1: tasks of memory, CPU, pids
 *           1       a command with all it has left behind
 *           2
 *
 * The driver passes descriptors (os/cgroup.h: enum cgroup_agent_fd). Without a directory, as in a container of an
 * engine, there are no groups, and a supervisor kills what it finds below itself.
 *
 * Reuse. Making a cgroup with memory takes a millisecond; so a group is used again once its last process is gone.
 * Commands that leave processes behind keep theirs. A group that was killed is not used again: some kernels (6.14 to
 * 6.18 at least) then kill every process that is born in it.
 *
 * Memory. With cgroup v2 the OOM killer kills all of a group, and counts it. With v1 it is turned off: processes that
 * need memory wait, and the agent kills the group that uses most.
 */

#include "base/list.h"
#include "net/loop.h"
#include "os/cgroup.h"

struct command_groups;

struct command_group {
        struct command_groups *_all;
        struct list _node;
        int dir;
        unsigned _number;
        bool _killed;
        uint64_t _oom_kills; /* counted by the kernel before it was taken */
        bool _out_of_memory; /* killed by us for that */
};

struct command_groups {
        struct net_loop *loop;
        int tasks[3]; /* to be joined by each command */
        size_t n_tasks;
        int _dir; /* -EBADF: there are no groups */
        struct list _taken, _released;
        unsigned _n;
        int _oom; /* eventfd, or -EBADF */
        uv_poll_t _oom_poll;
        uv_timer_t _oom_timer;
        struct command_group *_victim; /* being killed for its memory */
        usec_t _victim_since;
};

/* The descriptors from `fds` on are taken; 0: there are none. */
void command_groups_init(struct command_groups *all, struct net_loop *l, int fds);
void command_groups_close(struct command_groups *all);

/* Makes one for the first command. Without it that would take longer. */
void command_groups_prepare(struct command_groups *all);

/* An empty group; *ret is NULL if there are none at all. -EAGAIN: too many. */
int command_group_take(struct command_groups *all, struct command_group **ret) must_check;

/* Its processes may go on. */
void command_group_release(struct command_group *g);

void command_group_kill(struct command_group *g);
bool command_group_is_populated(const struct command_group *g); /* zombies do not count */

/* Whether it lost a process to a lack of memory since it was taken. */
bool command_group_out_of_memory(const struct command_group *g);

#endif
