/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_CGROUP_OOM_H
#define HUTCH_OS_CGROUP_OOM_H

/*
 * A descriptor that tells when processes of a group (os/cgroup_make.h) die for want of memory, for
 * whoever waits with epoll(7) or poll(2).
 *
 * In the unified hierarchy it is the file of the group's memory events, which also tells of less; so the
 * reader looks what has changed. In version 1 it is an eventfd that the kernel writes to, before it
 * kills.
 */

#include "base/compiler.h"
#include "os/cgroup_make.h"

struct cgroup_oom {
        int fd;
        short events; /* to wait for: POLLIN or POLLPRI, which epoll calls by the same numbers */
        uint64_t kills;
};

#define CGROUP_OOM_NULL ((struct cgroup_oom){ -EBADF, 0, 0 })

int cgroup_oom_open(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_oom *ret)
        must_check;
void cgroup_oom_close(struct cgroup_oom *o);

/* When it is ready: true if there was no memory for a process since the last call. */
bool cgroup_oom_happened(struct cgroup_oom *o);

#endif
