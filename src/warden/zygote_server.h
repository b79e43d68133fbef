/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ZYGOTE_SERVER_H
#define HUTCH_WARDEN_ZYGOTE_SERVER_H

/*
 * The process that makes seeds (warden/zygote.h), and removes the cgroups of what they became.
 *
 * To make one takes milliseconds in which the warden could not serve anybody, and a copy of the warden
 * has a descriptor of every sandbox, to be copied and closed again. To remove a group takes as long where
 * there are many, because the kernel looks at every file system that is mounted, under the lock that
 * all cgroups have in common. So the warden has a child that was made before there were any
 * sandboxes, and has nothing else to do:
 *
 *         warden                            nursery
 *            uids, to make    ──────────►   zygote_make, as a child of the warden's (CLONE_PARENT)
 *                             ◄──────────   the zygote's descriptors, or why there is none
 *            uids, to remove  ──────────►   cgroup_remove
 *                             ◄──────────   done, or why not
 *
 * Answers come in the order of the questions. The nursery ends when the warden does, or closes its end. A
 * zygote whose descriptors did not arrive sees the end of its socket, and ends, too.
 */

#include "base/compiler.h"
#include "warden/zygote.h"

/* *ret_socket is the warden's end, *ret_pidfd the process, a child of the caller. */
int zygote_server_start(const struct host_context *g, int *ret_socket, int *ret_pidfd) must_check;

enum zygote_server_op { ZYGOTE_SERVER_MAKE, ZYGOTE_SERVER_REMOVE };

struct zygote_server_reply {
        enum zygote_server_op work;
        int result;           /* of zygote_make or cgroup_remove */
        struct zygote zygote; /* of one that was removed: only its uids */
};

/* -EAGAIN: it has enough to do. */
int zygote_server_request(int socket, enum zygote_server_op work, uint32_t uid_first) must_check;

/* 1, or 0 when the nursery has ended; -EAGAIN. */
int zygote_server_receive(int socket, struct zygote_server_reply *ret) must_check;

#endif
