/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_USERNS_H
#define HUTCH_OS_USERNS_H

/*
 * User namespaces as descriptors.
 *
 * A namespace maps the ids 0 to count-1 to a range of the machine's ids. It is made by a child that
 * lives for a moment, and stays as long as the descriptor: to be entered (setns), or to say how a
 * mount translates owners (os/mount.h).
 *
 * The child has the first id of the range as its effective uid when it makes the namespace. The
 * kernel counts what the namespace's processes use (inotify watches, message queues …) also against
 * the namespace's owner, in the namespace above: were that root for all sandboxes, one of them could
 * use up what all may have.
 */

#include <sys/types.h>

#include "base/compiler.h"

struct userns_range {
        uint32_t first, count;
};

/* Needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN. -EINVAL for a range with root or beyond the last
 * id. */
int userns_make(const struct userns_range *range, int *ret_fd) must_check;

/* The calling process goes into the namespace and becomes its root, without further groups. It has
 * all capabilities in there, and none outside. */
int userns_enter(int fd) must_check;

#endif
