/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_USERNS_H
#define HUTCH_OS_USERNS_H

/*
 * User namespaces as descriptors.
 *
 * A namespace maps the ids 0 to count-1 to a range of the host's ids. A short-lived child creates it,
 * and it lives as long as the descriptor: to be entered (setns), or as the map of an idmapped mount
 * (os/mount.h).
 *
 * The child has the first id of the range as its effective uid when it creates the namespace. The
 * kernel charges what the namespace's processes use (inotify watches, message queues …) also to the
 * namespace's owner, in the parent namespace: if that were root for all sandboxes, one of them could
 * exhaust the limit of all.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "os/cgroup.h"

struct userns_range {
        uint32_t first, count;
};

/* Needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN. -EINVAL for a range that includes root or exceeds the
 * last id. */
int userns_make(const struct userns_range *range, int *ret_fd) must_check;

/* The same for a sandbox. No further namespace of any kind can be made inside, whatever a process there is
 * allowed otherwise: clone3 has its flags in memory, where no seccomp filter sees them. *ret_cgroupns is a
 * cgroup namespace that shows `group` as its root (os/cgroup.h), and belongs to our user namespace. */
int userns_make_sandbox(const struct userns_range *range, const struct cgroup *group, int *ret_fd,
                        int *ret_cgroupns) must_check;

/* The calling process enters the namespace and becomes its root, without supplementary groups. It has
 * all capabilities inside and none outside. */
int userns_enter(int fd) must_check;

#endif
